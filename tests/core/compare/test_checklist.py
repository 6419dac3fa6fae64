"""What differs between two runs: compilation, machine, software, command, variables."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from tests.support.comparisons import CPU, GPU, record

from gpudebug.core.compare import checklist
from gpudebug.core.compare.checklist import Checklist, SideFacts


def compare(a: str = "python t.py", b: str = "python t.py", **b_facts: Any) -> Checklist:
    return checklist.compare(SideFacts(record(a)), SideFacts(record(b, **b_facts)))


def differences(found: Checklist) -> dict[str, tuple[str | None, str | None]]:
    return {d.name: (d.a, d.b) for d in found.differences}


def test_a_setting_of_one_gpu_is_named_with_it() -> None:
    cards = tuple(
        GPU.model_copy(
            update={"index": i, "uuid": f"GPU-{i}", "power_limit_w": 400.0, "clocks_mhz": (1410, 1593)}
        )
        for i in (0, 1)
    )
    capped = (cards[0], cards[1].model_copy(update={"power_limit_w": 300.0, "link": "PCIe 4 x8"}))
    sides = [SideFacts(record("python t.py", devices=devices)) for devices in (cards, capped)]
    found = checklist.compare(*sides)
    assert differences(found) == {"power limit": ("400 W", "GPU 0 400 W, GPU 1 300 W")}
    assert found.same["clocks set"] == "1410/1593 MHz"
    assert "link" in found.unknown


def test_parts_of_one_gpu_are_named_by_their_own_names() -> None:
    parts = tuple(GPU.model_copy(update={"index": 0, "uuid": f"MIG-{i}", "nvlinks": 2 - i}) for i in (0, 1))
    sides = [SideFacts(record("python t.py", devices=devices)) for devices in (parts, parts[:1] * 2)]
    found = differences(checklist.compare(*sides))
    assert found["NVLinks"] == ("GPU 0 (MIG-0) 2, GPU 0 (MIG-1) 1", "2")


COMPILED = {
    "a bare flag": ("python t.py --compile", {}, "on"),
    "dotted": ("train --policy.compile-model=true", {}, "on"),
    "false": ("train --policy.compile_model=false", {}, "off"),
    "against": ("python t.py --no-compile", {}, "off"),
    "against it, false": ("python t.py --disable_compile=false", {}, "on"),
    "a backend": ("accelerate launch --dynamo_backend inductor t.py", {}, "on"),
    "no backend": ("accelerate launch --dynamo_backend no t.py", {}, "off"),
    "the last one counts": ("python t.py --compile --no-compile", {}, "off"),
    "how, not whether": ("python t.py --compile_mode=max-autotune", {}, "not set"),
    "another word": ("python t.py --compiler=gcc", {}, "not set"),
    "nothing": ("python t.py", {}, "not set"),
    "a variable": ("python t.py", {"TORCH_COMPILE": "1"}, "on"),
    "a variable that is false": ("python t.py", {"TORCH_COMPILE": "0"}, "off"),
    "switched off from outside": ("python t.py --compile", {"TORCHDYNAMO_DISABLE": "1"}, "off"),
    "not switched off": ("python t.py --compile", {"TORCHDYNAMO_DISABLE": "0"}, "on"),
    "a name without its value": ("python t.py", {"TORCH_COMPILE": None}, "on"),
}


@pytest.mark.parametrize(("command", "variables", "said"), COMPILED.values(), ids=COMPILED)
def test_compilation(command: str, variables: dict[str, str | None], said: str) -> None:
    assert checklist.compilation(shlex.split(command), variables) == said


def test_equal_runs_differ_in_nothing_and_say_what_was_looked_at() -> None:
    found = compare()
    assert found.differences == []
    assert found.unknown == []
    assert found.same["compile"] == "not set"
    assert {"device", "driver", "host", "interpreter", "packages", "command", "folder"} <= found.same.keys()


DIFFERENT: dict[str, tuple[str, str, dict[str, Any], dict[str, tuple[str, str]]]] = {
    "compile, once": ("python t.py", "python t.py --compile", {}, {"compile": ("not set", "on")}),
    "two ways to compile": (
        "python t.py --compile_backend=inductor",
        "python t.py --compile_backend=cudagraphs",
        {},
        {"--compile_backend": ("inductor", "cudagraphs")},
    ),
    "a flag": ("python t.py --lr 1", "python t.py --lr 2", {}, {"--lr": ("1", "2")}),
    "a flag that is new": ("python t.py", "python t.py --amp", {}, {"--amp": ("not set", "set")}),
    "a program": ("python t.py", "python u.py", {}, {"arguments": ("t.py", "u.py")}),
    "how often": ("run t.py t.py", "run t.py", {}, {"arguments": ("run t.py t.py", "run t.py")}),
    "the device": (
        "python t.py",
        "python t.py",
        {"devices": (CPU,)},
        {"device": ("NVIDIA H200 (GPU-0)", "a CPU (CPU, 2 cores)")},
    ),
    "the driver": (
        "python t.py",
        "python t.py",
        {"devices": (GPU.model_copy(update={"driver": "570"}),)},
        {"driver": ("580.1", "570")},
    ),
    "packages": (
        "python t.py",
        "python t.py",
        {"packages": {"torch": "2.6.0", "triton": "3"}},
        {"package torch": ("2.5.1", "2.6.0"), "package triton": ("not there", "3")},
    ),
    "the quota": ("python t.py", "python t.py", {"cpu_quota": 2.0}, {"CPU quota": ("none", "2 cores")}),
    "the code": ("python t.py", "python t.py", {"cwd": "/other"}, {"folder": ("/repo", "/other")}),
    "a change": ("python t.py", "python t.py", {"change": "--patch p"}, {"change": ("none", "--patch p")}),
}


@pytest.mark.parametrize(("a", "b", "facts", "said"), DIFFERENT.values(), ids=DIFFERENT)
def test_what_differs_is_named(
    a: str, b: str, facts: dict[str, Any], said: dict[str, tuple[str, str]]
) -> None:
    found = compare(a, b, **facts)
    assert differences(found) == said
    assert all(d.matters for d in found.differences)


def test_where_it_writes_does_not_matter() -> None:
    found = compare("python t.py --output_dir=a", "python t.py --output_dir=b")
    assert [(d.name, d.matters) for d in found.differences] == [("--output_dir", False)]


def test_another_batch_says_what_it_does() -> None:
    found = compare("python t.py --batch_size=8", "python t.py --batch_size=4")
    assert [d.why for d in found.differences] == ["a step is not the same work"]


def test_a_runs_own_name_and_folder_are_no_difference() -> None:
    found = checklist.compare(
        SideFacts(record("python t.py --out=/x/runs/0001-a/job/out --id 0001-a", name="0001-a")),
        SideFacts(record("python t.py --out=/y/runs/0002-b/job/out --id 0002-b", name="0002-b")),
    )
    assert found.differences == []


UNKNOWN = {
    "host": ({"host": None}, {"host", "CPU quota"}),
    "interpreter": ({"interpreter": None}, {"interpreter"}),
    "packages": ({"packages": {}}, {"packages"}),
    "device": ({"devices": ()}, {"device", "driver"}),
}


@pytest.mark.parametrize(("facts", "names"), UNKNOWN.values(), ids=UNKNOWN)
def test_what_one_side_does_not_know_is_unknown(facts: dict[str, Any], names: set[str]) -> None:
    found = compare(**facts)
    assert set(found.unknown) == names
    assert found.differences == []


def test_variables_are_compared_by_value_where_these_are_known() -> None:
    a, b = record(environment=("A", "B", "C")), record(environment=("A", "B"))
    known = checklist.compare(
        SideFacts(a, {"A": "1", "B": "2", "C": "3"}), SideFacts(b, {"A": "1", "B": "4"})
    )
    assert differences(known) == {"variable B": ("2", "4"), "variable C": ("3", "not set")}
    names = checklist.compare(SideFacts(a), SideFacts(b))
    assert differences(names) == {"variable C": ("set", "not set")}
    assert names.unknown == ["variable A", "variable B"]


@pytest.mark.parametrize(
    ("before", "shown"),
    [
        ({"P": "0"}, {"variable P": ("0", "2")}),
        ({"P": None}, {"variable P": ("not set", "2")}),
        # Recorded before a hypothesis set it.
        ({"Q": "1"}, {}),
        (None, {}),
    ],
)
def test_what_a_hypothesis_sets_is_compared_with_what_was_there(
    before: dict[str, str | None] | None, shown: dict[str, tuple[str, str]]
) -> None:
    a, b = record(variables=before), record(environment=("P",), variables={"P": "2", "Q": "1"})
    assert differences(checklist.compare(SideFacts(a), SideFacts(b))) == shown


def test_one_workloads_variables_are_the_same_though_only_named() -> None:
    one, other = {"command": "digest"}, {"command": "another"}
    a = record(environment=("A",), identity=one)
    same = checklist.compare(SideFacts(a), SideFacts(record(environment=("A",), identity=one)))
    assert (same.differences, same.unknown, same.same["variables"]) == ([], [], "A")
    assert checklist.compare(SideFacts(a), SideFacts(record(environment=("A",), identity=other))).unknown == [
        "variable A"
    ]


def test_surroundings_that_steer_libraries_count_where_both_tell_of_them() -> None:
    a, b = record(knobs={"OMP_NUM_THREADS": "1"}), record(knobs={"OMP_NUM_THREADS": "8"})
    assert differences(checklist.compare(SideFacts(a), SideFacts(b))) == {
        "variable OMP_NUM_THREADS": ("1", "8")
    }
    assert checklist.compare(SideFacts(a), SideFacts(record())).differences == []
    off = record("python t.py --compile", knobs={"TORCHDYNAMO_DISABLE": "1"})
    on = record("python t.py --compile", knobs={})
    assert differences(checklist.compare(SideFacts(off), SideFacts(on))) == {"compile": ("off", "on")}


def test_surroundings_alone_leave_out_the_command_and_what_is_meant() -> None:
    a = record("python t.py --lr=1", knobs={"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "2"})
    b = record(
        "python t.py --lr=2",
        knobs={"OMP_NUM_THREADS": "8"},
        devices=(GPU.model_copy(update={"driver": "590.0"}),),
        packages={"torch": "2.6.0"},
        cpu_quota=2.0,
    )
    found = {d.name: (d.a, d.b) for d in checklist.surroundings(a, b, ["OMP_NUM_THREADS"])}
    assert found == {
        "driver": ("580.1", "590.0"),
        "CPU quota": ("none", "2 cores"),
        "package torch": ("2.5.1", "2.6.0"),
        "variable MKL_NUM_THREADS": ("2", "not set"),
    }
    assert checklist.surroundings(a, a) == []


def test_a_command_on_paper_has_places_for_its_own_name_and_folder() -> None:
    made = record("python t.py --out=/x/runs/0001-a/job/out --id 0001-a", name="0001-a")
    assert checklist.command_of(made) == "python t.py '--out={run_dir}/out' --id '{run}'"
    script = record(name="0001-a", argv=("/bin/sh", "-c", "cd 0001-a && python t.py"), shell=True)
    assert checklist.command_of(script) == "cd {run} && python t.py"
