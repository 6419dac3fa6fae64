"""What a trial did beside what its hypothesis says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support.trials import run

from gpudebug.core import intervention
from gpudebug.core.models import RunRecord
from gpudebug.core.verdict import Setting
from gpudebug.core.words import Result
from gpudebug.edges import store
from gpudebug.engine.conduct import with_conduct
from gpudebug.engine.measure import Measured

ARGV = ("python", "train.py", "--batch_size=8", "--lr=0.1")


def measured(
    name: str, argv: tuple[str, ...] = ARGV, printed: dict[str, str] | None = None, **facts: Any
) -> Measured:
    record = RunRecord(
        **{
            "name": name,
            "campaign": "c",
            "role": name.partition("-")[2],
            "command": "python train.py",
            "argv": argv,
            "cwd": "/repo",
            "start": "now",
            **facts,
        }
    )
    folder = store.RunFolder(Path("/repo/runs") / name, str)
    return Measured(folder, record, run(printed=printed or {}))


def conduct(change: str, before: Measured, after: Measured, *locked: str) -> Setting:
    return with_conduct(Setting(), intervention.parse(change), locked, [before], [after])


BEFORE = measured("0001-baseline-workload", printed={"batch_size": "8", "lr": "0.1"})
HELPED = (*ARGV[:3], "--lr=0.2")


def test_a_plain_trial_did_what_it_says() -> None:
    found = conduct("--set --lr=0.2", BEFORE, measured("0002-h1", HELPED, {"batch_size": "8", "lr": "0.2"}))
    assert (found.locked, found.differences, found.elsewhere, found.other_steps) == ((), (), (), None)
    assert found.effect is not None
    assert (found.effect.result, found.effect.value) == (Result.PASS, "lr: 0.2")


def test_an_unchanged_workload_has_no_effect_to_show() -> None:
    found = with_conduct(Setting(), None, ("--lr",), [BEFORE], [BEFORE])
    assert (found.effect, found.locked) == (None, ())


def test_locked_knobs_are_named_however_they_move() -> None:
    locked = ("--batch_size", "--seed")
    touched = conduct("--set --batch_size=4", BEFORE, measured("0002-h1", (*ARGV, "--batch_size=4")), *locked)
    assert touched.locked == ("--batch_size",)
    short = conduct("--set --se=4", BEFORE, measured("0002-h1", (*ARGV, "--se=4")), *locked)
    assert short.locked == ("--seed",)
    moved = conduct("--set --lr=0.2", BEFORE, measured("0002-h1", HELPED, {"batch_size": "4"}), *locked)
    assert moved.locked == ("--batch_size (shown as 8, then 4)",)


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"identity": {"command": "b"}}, "the baseline run 0001-baseline-workload was of another command"),
        (
            {"identity": {"command": "a", "tree": "x"}},
            "the baseline run 0001-baseline-workload was of another code",
        ),
        ({"host": "there", "identity": {"command": "a"}}, "host here and there"),
        (
            {"knobs": {"OMP_NUM_THREADS": "2"}, "identity": {"command": "a"}},
            "variable OMP_NUM_THREADS unset and 2",
        ),
    ],
)
def test_a_baseline_of_something_else_is_named(facts: dict[str, Any], said: str) -> None:
    before = measured("0001-baseline-workload", identity={"command": "a"}, host="here", knobs={})
    found = conduct("--set --lr=0.2", before, measured("0002-h1", HELPED, **facts))
    assert found.differences == (said,)


def test_a_variable_that_the_change_sets_is_no_difference() -> None:
    before = measured("0001-baseline-workload", knobs={"OMP_NUM_THREADS": "1"})
    change = "--env OMP_NUM_THREADS=4"
    after = measured("0002-h1", knobs={"OMP_NUM_THREADS": "4"}, change=change)
    assert conduct(change, before, after).differences == ()


def test_packages_from_elsewhere_are_named() -> None:
    after = measured("0002-h1", HELPED, imports={"pkg": "/old/pkg"})
    assert conduct("--set --lr=0.2", BEFORE, after).elsewhere == ("pkg is imported from /old/pkg",)


@pytest.mark.parametrize(
    ("change", "printed", "why"),
    [
        ("--set --batch-size=4", {}, "the trial changes --batch-size"),
        ("--set --lr=0.2", {"batch_size": "4"}, "the programs show another batch_size (shown as 8, then 4)"),
        ("--set --seed=4", {}, "the trial changes --seed"),
        ("--set --lr=0.2", {"batch_size": "8"}, None),
    ],
)
def test_another_batch_makes_other_steps(change: str, printed: dict[str, str], why: str | None) -> None:
    found = conduct(change, BEFORE, measured("0002-h1", (*ARGV, *change.split()[1:]), printed))
    assert found.other_steps == why
