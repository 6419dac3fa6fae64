"""Gates that fail together: the first rule of the contract that matches decides."""

from __future__ import annotations

import itertools

import pytest
from tests.support.trials import gate, run, verdict

from gpudebug.core.records import Conditions, DeviceEvidence, Evidence, LossEvidence, Spread
from gpudebug.core.verdict.gates.setting import TrialSetting
from gpudebug.core.verdict.took_effect import ChangeEffect
from gpudebug.core.words import Outcome, Result, Status, Trend

FALL = tuple((float(n), 2.0 - n / 100) for n in range(0, 100, 2))
ABOVE = tuple((n, value + 2) for n, value in FALL)

POWERED = DeviceEvidence(
    index=0,
    uuid="GPU-0",
    name="x",
    power_w=Spread(mean=300, p5=150, p50=300, p95=530),
    working=0.4,
    waiting_w=150,
    working_w=530,
)

# Each failing gate in the order in which it decides: what makes it fail, and the verdict.
ORDER = [
    ("machinery", Status.INVALID, "DEVICE_LOST"),
    ("change_in_effect", Status.INVALID, "the change was not in effect"),
    ("device_to_itself", Status.INVALID, "the device was shared"),
    ("environment_parity", Status.INVALID, "environment differs"),
    ("outcome", Status.REJECTED, "outcome"),
    ("loss", Status.REJECTED, "loss:"),
    ("loss_parity", Status.REJECTED, "loss parity"),
    ("locked_knobs", Status.REJECTED, "locked knobs"),
    ("one_variable", Status.REJECTED, "one variable"),
    ("delta", Status.REJECTED, "delta"),
    ("side_work", Status.REJECTED, "hollow: evaluations 5, then none"),
]
NAMES = [name for name, _, _ in ORDER]


def one(level: float, rate: float, broken: frozenset[str] = frozenset()) -> Evidence:
    return run(
        28 if "delta" in broken else level,
        rate,
        outcome=Outcome.DEVICE_LOST
        if "machinery" in broken
        else Outcome.TIMED_OUT
        if "outcome" in broken
        else Outcome.COMPLETED,
        conditions=Conditions(foreign_procs=int("device_to_itself" in broken), foreign_share=1.0),
        loss=LossEvidence(
            name="loss",
            trend=Trend.DIVERGING if "loss" in broken else Trend.CONVERGING,
            points=50,
            curve=ABOVE if "loss_parity" in broken else FALL,
        ),
        occasions={} if "side_work" in broken else {"evaluation": 5},
        devices=(POWERED,),
    )


def judged(*names: str):  # type: ignore[no-untyped-def]
    broken = frozenset(names)
    setting = TrialSetting(
        effect=ChangeEffect(Result.FAIL if "change_in_effect" in broken else Result.PASS, "lr: 1"),
        differences=("driver",) if "environment_parity" in broken else (),
        locked=("--lr",) if "locked_knobs" in broken else (),
        changes=2 if "one_variable" in broken else 1,
    )
    return verdict([one(28, 5), one(29, 5)] * 2, [one(61, 11, broken), one(62, 11, broken)], setting)


def test_nothing_fails_and_nothing_is_skipped() -> None:
    found = judged()
    assert found.status is Status.VALIDATED
    assert {g.name for g in found.gates if g.result is not Result.PASS} == set()


@pytest.mark.parametrize("name", NAMES[1:])
def test_each_gate_can_fail_alone(name: str) -> None:
    found = judged(name)
    assert gate(found, name).result is Result.FAIL
    failed = {g.name for g in found.gates if g.result is Result.FAIL}
    assert failed == {name}


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(range(len(ORDER)), 2)))
def test_of_two_the_earlier_decides(first: int, second: int) -> None:
    found = judged(NAMES[first], NAMES[second])
    name, status, why = ORDER[first]
    if NAMES[second] == "outcome" and name != "machinery":
        # How the trial itself ended is told before what else was measured.
        why = f"TIMED_OUT; besides, {why}"
    assert (found.status, found.why[: len(why)]) == (status, why)


@pytest.mark.parametrize(
    ("broken", "other_work", "why"),
    [
        ("device_to_itself", True, "environment differs: run 0003-h1: it goes on"),
        ("device_to_itself", False, "the device was shared: 1 other process"),
        ("change_in_effect", True, "the change was not in effect: lr: 1"),
        ("machinery", True, "DEVICE_LOST: the machinery failed"),
    ],
)
def test_a_run_that_resumed_is_named_before_a_load(broken: str, other_work: bool, why: str) -> None:
    """A baseline that is recorded again would not keep the next run from resuming."""
    setting = TrialSetting(
        effect=ChangeEffect(Result.FAIL if broken == "change_in_effect" else Result.PASS, "lr: 1"),
        differences=("run 0003-h1: it goes on where an earlier run ended",),
        other_work=other_work,
    )
    before, after = [one(28, 5)] * 4, [one(61, 11, frozenset({broken}))]
    found = verdict(before, after, setting)
    assert (found.status, found.why[: len(why)]) == (Status.INVALID, why)


def test_what_is_unknown_never_validates() -> None:
    """A loss that may be too high holds a gain back."""
    higher = tuple((n, value + 0.15) for n, value in FALL)
    after = [one(61, 11), one(62, 11)]
    after = [e.model_copy(update={"loss": e.loss.model_copy(update={"curve": higher})}) for e in after]
    found = verdict([one(28, 5)] * 4, after)
    assert gate(found, "loss_parity").result is Result.UNKNOWN
    assert found.status is Status.INCONCLUSIVE
    assert found.why.startswith("loss_parity is unknown")
