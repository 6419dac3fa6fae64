from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from gpudebug.core.campaign import accepted_changes
from gpudebug.core.campaign.accepted_changes import AcceptedChange
from gpudebug.core.change.intervention import parse as parse_intervention
from gpudebug.core.change.permits import Allowed
from gpudebug.core.config import Workload
from gpudebug.core.errors import InterventionError
from gpudebug.core.progress import ProgressFile, parse

ENTRY = "### Hypothesis {}: T\n- **Intervention**: {}\n- **Status**: {}\n- **Accepted**: {}\n\n"

OPENED = Allowed(env=frozenset({"A", "X", "Y"}))


def read(*entries: tuple[object, ...]) -> ProgressFile:
    return parse("".join(ENTRY.format(*entry) for entry in entries).encode(), "p.md")


def steps(*texts: str) -> tuple[AcceptedChange, ...]:
    return tuple(AcceptedChange(n, parse_intervention(t), "p.md", 10 * n) for n, t in enumerate(texts, 1))


def test_the_order_is_that_of_acceptance() -> None:
    doc = read(
        (1, "--set a=1", "VALIDATED", 3),
        (2, "--set b=1", "VALIDATED", 1),
        (3, "--set c=1", "UNTESTED", 2),
        (4, "--set d=1", "VALIDATED", "no"),
        (5, "--set e=1", "VALIDATED", 3),
        (6, "--set f=1", "REJECTED", 1),
    )
    assert [h.number for h in accepted_changes.accepted(doc)] == [2, 1, 5]
    assert [
        (c.hypothesis, c.line) for c in accepted_changes.changes(doc, accepted_changes.accepted(doc))
    ] == [
        (2, 6),
        (1, 1),
        (5, 21),
    ]
    assert [c.hypothesis for c in accepted_changes.changes(doc, doc.hypotheses[:2])] == [1, 2]


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("--code", "has a change that was never written"),
        ("", "has no change"),
        ("--set", "--set has no value"),
    ],
)
def test_a_change_that_is_gone_is_named_with_its_line(written: str, says: str) -> None:
    with pytest.raises(InterventionError, match=says) as caught:
        doc = read((1, "--set a=1", "UNTESTED", ""), (7, written, "VALIDATED", 1))
        accepted_changes.changes(doc, accepted_changes.accepted(doc))
    assert (caught.value.file, caught.value.line) == ("p.md", 6)
    assert caught.value.next


@pytest.mark.parametrize(
    ("command", "accepted", "argv", "env"),
    [
        ("t --a=1", [], ["t", "--a=1"], {"X": "0"}),
        ("t --a=1", ["--set --a=2", "--env Y=1"], ["t", "--a=2"], {"X": "0", "Y": "1"}),
        ("t --a=1", ["--set --a=2", "--set --a=3"], ["t", "--a=3"], {"X": "0"}),
        (
            "t --a=1 --b",
            ["--unset --b", "--compound --set --c=4 --env X=5"],
            ["t", "--a=1", "--c=4"],
            {"X": "5"},
        ),
        ("t --a=2", ["--set --a=2"], ["t", "--a=2"], {"X": "0"}),
        ("t --a 2", ["--set a=2", "--unset --b", "--env X=0"], ["t", "--a", "2"], {"X": "0"}),
        ("t --out={run}", ["--set --a=2"], ["t", "--out={run}", "--a=2"], {"X": "0"}),
        ("t --a=1", ["--patch hypotheses/patches/h1.patch"], ["t", "--a=1"], {"X": "0"}),
        (["t", "--a", "x y"], ["--set --b=2"], ["t", "--a", "x y", "--b", "2"], {"X": "0"}),
    ],
)
def test_the_workload_with_the_accepted_changes(
    command: str | list[str], accepted: Sequence[str], argv: list[str], env: dict[str, str]
) -> None:
    workload = Workload(command=command, cwd="sub", env={"X": "0"}, timeout=7.0)
    made = accepted_changes.effective(workload, steps(*accepted), OPENED)
    assert (list(made.argv()), made.env) == (argv, env)
    assert (made.cwd, made.timeout) == ("sub", 7.0)
    assert workload.env == {"X": "0"}
    assert (made == workload) is (argv == list(workload.argv()) and env == workload.env)


def test_what_is_there_already_leaves_the_command_as_it_is_written() -> None:
    workload = Workload(command="t  --a=1 \\\n  --b", env={})
    assert (
        accepted_changes.effective(workload, steps("--set a=1", "--env A=1"), OPENED).command
        == workload.command
    )


def test_what_the_workload_has_already_is_what_nothing_undoes() -> None:
    stack = steps("--set --a=2", "--env N=1 --set --b=3 --compound", "--unset --gone")
    plain = Workload(command="train --a=1 --gone")
    assert accepted_changes.already(plain, stack, Allowed(("N",))) == ()
    there = Workload(command="train --a=2 --b=3")
    assert accepted_changes.already(there, stack, Allowed(("N",))) == (1, 2, 3)


def test_a_shell_command_takes_variables_and_no_flags() -> None:
    workload = Workload(command="t --a=1 | tee out", shell=True)
    made = accepted_changes.effective(workload, steps("--env A=1"), OPENED)
    assert (made.command, made.shell, made.env) == (workload.command, True, {"A": "1"})
    with pytest.raises(InterventionError, match="hypothesis 2 is accepted and no longer applies") as caught:
        accepted_changes.effective(workload, steps("--env A=1", "--set --a=2"), OPENED)
    assert (caught.value.file, caught.value.line) == ("p.md", 20)
    assert caught.value.next


@pytest.mark.parametrize(
    ("command", "shell"),
    [
        ("cd sub && sh -c 'echo \"$A|$X\"' | cat", True),
        ("printf ''\necho \"$A|$X\"", True),
        ("""sh -c 'echo "$A|$X"'""", False),
        (["sh", "-c", 'echo "$A|$X"'], False),
    ],
)
def test_the_command_to_type_brings_the_variables_to_the_training(
    tmp_path: Path, command: str | list[str], shell: bool
) -> None:
    (tmp_path / "sub").mkdir()
    stack = steps('--compound --env "A=it\'s" --env X=2')
    workload = accepted_changes.effective(Workload(command=command, shell=shell), stack, OPENED)
    typed = accepted_changes.spoken(workload, stack)
    done = subprocess.run(["/bin/sh", "-c", typed], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "it's|2\n"


@pytest.mark.parametrize("shell", [False, True])
def test_the_command_to_type_has_a_name_for_what_gpudebug_replaces(shell: bool) -> None:
    workload = Workload(command="t --out={run} --to {run_dir}/x --keep={other}", shell=shell)
    assert accepted_changes.spoken(workload, ()) == "t --out=run-1 --to run-1/x --keep={other}"
    stack = steps("--env A=out/{run}")
    with_it = accepted_changes.effective(workload, stack, OPENED)
    assert "A=out/run-1 " in accepted_changes.spoken(with_it, stack)
    assert "{run" not in accepted_changes.spoken(with_it, stack)


def test_the_accepted_patches_in_their_order() -> None:
    found = accepted_changes.patches(
        steps("--patch hypotheses/patches/b", "--set a=1", "--patch hypotheses/patches/a")
    )
    assert found == ("hypotheses/patches/b", "hypotheses/patches/a")
