from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.support.answers import read

from gpudebug.core.answers.diagnosis import DiagnoseAnswer, FromReference, LayerAnswer, LayerResult
from gpudebug.terminal import diagnose as render
from gpudebug.terminal.diagnose import around, layer

TEST: dict[str, Any] = {
    "number": None, "title": "T", "change": "--set --num_workers=4", "instructions": None, "cost_s": 40.0,
    "refused": None,
    "command": "gpudebug propose --from-catalogue dl-no-workers",
}  # fmt: skip
CAUSE: dict[str, Any] = {
    "id": "dl-no-workers", "title": "Loading has no workers", "probability": 0.62, "exposed": 0.6,
    "ceiling_pp": 45.0, "expected_util": 75.0, "ceiling_ratio": 2.5, "ceiling_steps_per_s": 25.0,
    "for": ["training waits 60% of its time for batches"], "against": ["loader workers: 2"],
    "hypothesis": TEST,
}  # fmt: skip
ANSWER: dict[str, Any] = {
    "campaign": "act", "runs": ["0001-baseline-workload", "0002-baseline-workload"], "kind": "vision",
    "framework": "lerobot", "gpu_util": 30.0, "stand_in": False, "abstains": None, "gates": [],
    "causes": [CAUSE],
    "missing": [{"what": "a trace", "why": "none", "next": "gpudebug baseline"}], "facts": {},
    "layers": {}, "difference": None,
    "next_command": "gpudebug next",
}  # fmt: skip


def diagnose(document: dict[str, Any]) -> str:
    return render.diagnose(read(DiagnoseAnswer, document))


def test_a_cause_in_full() -> None:
    assert (
        diagnose(ANSWER)
        == """\
Diagnosis of act (2 runs): vision workload, lerobot, gpu_util 30.0%

1. dl-no-workers  62%  Loading has no workers
   for      training waits 60% of its time for batches
   against  loader workers: 2
   ceiling  +45.0pp, to 75.0%; 2.50x steps/s, to 25 steps/s
   test     gpudebug propose --from-catalogue dl-no-workers, --set --num_workers=4 (40.0 s of the
            device)

Missing: a trace (none). To get it: gpudebug baseline

Next     gpudebug next"""
    )


def test_a_ceiling_says_which_of_several_gpus_it_is_of() -> None:
    for which, text in (("least", "of the least busy GPU"), ("working", "of the working share")):
        told = diagnose({**ANSWER, "facts": {"telling_devices": which, "telling_util": 30.0}})
        assert f"   ceiling  +45.0pp {text}, to 75.0%; 2.50x steps/s" in told


LINE = "train.py:71 load (waiting): `read()`"


def test_the_line_to_read_is_shown_once() -> None:
    assert f"   line     {LINE}\n" in diagnose({**ANSWER, "causes": [{**CAUSE, "line": LINE}]})
    told = {**CAUSE, "line": LINE, "for": [f"57% of the time in {LINE}"]}
    assert "   line " not in diagnose({**ANSWER, "causes": [told]})


def test_causes_that_burn_the_cpu_have_a_ceiling_in_throughput_only() -> None:
    text = diagnose(
        {**ANSWER, "stand_in": True, "causes": [{**CAUSE, "ceiling_pp": None, "expected_util": None}]}
    )
    assert "the CPU stands in for a GPU" in text
    assert "ceiling  2.50x steps/s, to 25 steps/s; utilisation cannot show it on the CPU" in text


def test_a_utilisation_that_nobody_knows_is_no_cause_that_it_cannot_show() -> None:
    text = diagnose({**ANSWER, "gpu_util": None, "causes": [{**CAUSE, "ceiling_pp": None}]})
    assert "ceiling  2.50x steps/s, to 25 steps/s; gpu_util is not known\n" in text


def test_a_cause_of_unknown_share_and_code_to_write() -> None:
    bare = {
        "ceiling_pp": None,
        "ceiling_ratio": None,
        "hypothesis": {**TEST, "change": None, "instructions": "Do."},
    }
    text = diagnose({**ANSWER, "causes": [{**CAUSE, **bare}]})
    assert "ceiling  unknown: its share of the time was not measured" in text
    assert "code to be written" in text


def test_gates_stand_before_causes_and_improbable_causes_are_left_out() -> None:
    gate = {"id": "debug-mode", "title": "Anomaly detection is on", "for": ["it is on: yes"]}
    rare = {**CAUSE, "id": "debug-mode", "probability": 0.01}
    text = diagnose({**ANSWER, "gates": [gate], "causes": [CAUSE, rare]})
    assert "Known without a run: debug-mode: Anomaly detection is on (it is on: yes)" in text
    assert "2. debug-mode" not in text


def test_abstaining_says_why_and_shows_one_guess_at_most() -> None:
    text = diagnose(
        {**ANSWER, "abstains": "the evidence is thin: no probe", "causes": [CAUSE, {**CAUSE, "id": "b"}]}
    )
    assert "No cause is named: the evidence is thin: no probe." in text
    assert "2. b" not in text


def test_nothing_at_all() -> None:
    empty = {
        **ANSWER,
        "campaign": None,
        "runs": [],
        "causes": [],
        "missing": [],
        "gpu_util": None,
        "framework": None,
    }
    assert (
        diagnose(empty)
        == """\
This command has no baseline yet: vision workload, known by its command alone

Next     gpudebug next"""
    )


def test_of_several_ranks_the_straggler_comes_first_with_its_facts_and_its_line() -> None:
    straggler = {
        "rank": 1, "node": None, "cause": "loader", "title": "its batches come later", "gap": 0.45,
        "certain": True, "for": ["waits for batches 50% of the time, the others 5%"],
        "line": "train.py:9 read (waiting): `f.read()`",
    }  # fmt: skip
    ranks = {
        "world_size": 2, "reported": 2, "rows": [], "straggler": straggler, "late": None, "abstains": None,
        "notes": [],
    }  # fmt: skip
    text = diagnose({**ANSWER, "ranks": ranks})
    assert (
        """
Ranks: 2 of 2 reported; what they wait for each other is unknown
Straggler: rank 1, loader: its batches come later; they wait 45.0% of the time for it
   for      waits for batches 50% of the time, the others 5%
   line     train.py:9 read (waiting): `f.read()`

1. dl-no-workers"""
        in text
    )


LAYER = LayerAnswer(
    campaign="act",
    role="layer-double_batch",
    layer="double-batch",
    run="0004-layer-double-batch",
    runs=("0004-layer-double-batch",),
    baseline_runs=("0001-baseline-workload",),
    device_time_s=21.25,
    changed="--set --batch_size=16",
    means="at twice the batch a step takes 1.05 times as long",
    ratio=1.9,
    step_ratio=0.95,
    notes=("--batch_size is locked: it is changed for this test alone",),
    why="asked for",
    next_command="gpudebug diagnose",
    files=(),
)
PLAIN = read(DiagnoseAnswer, ANSWER)
NO_DIFFERENCE = FromReference(program=None, flags=(), figures=(), lines=())


def test_a_layer_test_says_what_it_did_what_it_means_and_that_it_is_no_fix() -> None:
    assert layer(LAYER).splitlines() == [
        "Layer test double-batch: run 0004-layer-double-batch, 21.2 s of the device",
        "changed  --set --batch_size=16",
        "means    At twice the batch a step takes 1.05 times as long.",
        "         Samples a second: 1.90 times the baseline's.",
        "note     --batch_size is locked: it is changed for this test alone",
        "It shows where to look and is not a fix: no hypothesis, baseline or verdict uses this run.",
        "Next: gpudebug diagnose",
    ]
    unknown = layer(replace(LAYER, ratio=None, device_time_s=None, notes=()))
    assert "Samples" not in unknown
    assert unknown.startswith("Layer test double-batch: run 0004-layer-double-batch\n")


def test_a_diagnosis_without_layers_and_reference_adds_nothing() -> None:
    assert around(PLAIN) == []
    assert around(replace(PLAIN, difference=NO_DIFFERENCE)) == []


def test_a_long_list_of_differences_is_cut() -> None:
    lines = tuple(f"flag a{n}: 1, reference 2" for n in range(14))
    quiet = LayerResult("quiet", "0003", ("0002", "0003"), 1.0, 1.0, "--set", "it is the same")
    found = around(replace(PLAIN, layers={"quiet": quiet}, difference=replace(NO_DIFFERENCE, lines=lines)))
    assert found[:3] == [
        "Layer quiet: it is the same (0002, 0003; diagnostic only)",
        "Differs from the reference:",
        "  flag a0: 1, reference 2",
    ]
    assert len(found) == 2 + 12 + 1
    assert found[-1] == "  and 2 more, in --json"
