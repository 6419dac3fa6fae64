"""Trials and the verdict that each deserves: the first rule that matches decides."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.trials import crashed, gate, run, runs, verdict

from gpudebug.core.records import Conditions, Evidence, Verdict
from gpudebug.core.verdict.gates.setting import TrialSetting
from gpudebug.core.words import Outcome, Result, Status, Trend

BASE = runs(28, 27, 29, 28)
GOOD = runs(61, 62, rate=11.0)
NONE = runs(28, 29, 27, rate=5.0)
KILLED = crashed("signal", signal=signal.SIGKILL)
OOM = crashed("oom_gpu", "CUDA out of memory")
NAN = run(61, 11, trend=Trend.NAN)
ELSEWHERE = TrialSetting(differences=("driver",))

VALID, REJECTED, OPEN, INVALID = (
    Status.VALIDATED,
    Status.REJECTED,
    Status.INCONCLUSIVE,
    Status.INVALID,
)
ALONE = TrialSetting()

# name, trial runs, setting, criteria, status, how the reason begins
TABLE: list[tuple[str, Sequence[Evidence], TrialSetting, dict[str, Any], Status, str]] = [
    ("a real gain", GOOD, ALONE, {}, VALID, "delta +33.4pp"),
    ("one run of a large gain", GOOD[:1], ALONE, {}, OPEN, "delta is unknown (+32.9pp"),
    ("no effect", NONE, ALONE, {}, REJECTED, "delta: -0.1pp"),
    ("worse", runs(12, 11, rate=2.0), ALONE, {}, REJECTED, "delta: -16.5pp"),
    # Infrastructure goes before everything.
    ("device lost", [run(outcome=Outcome.DEVICE_LOST)], ALONE, {}, INVALID, "DEVICE_LOST"),
    ("sampler lost", [run(outcome=Outcome.SAMPLER_LOST)], ALONE, {}, INVALID, "SAMPLER_LOST"),
    ("interrupted", [run(outcome=Outcome.INTERRUPTED)], ALONE, {}, INVALID, "INTERRUPTED"),
    ("killed from outside", [KILLED], ALONE, {}, INVALID, "CRASHED (signal), killed from outside"),
    ("killed below a shell", [crashed("signal", exit_status=137)], ALONE, {}, INVALID, "CRASHED (signal), k"),
    ("killed after a crash", [OOM, KILLED], ALONE, {}, INVALID, "CRASHED (signal), k"),
    (
        "killed, with a locked knob",
        [KILLED],
        TrialSetting(locked=("--lr",)),
        {},
        INVALID,
        "CRASHED (signal), k",
    ),
    ("killed, NaN before", [NAN, KILLED], ALONE, {}, INVALID, "CRASHED (signal), k"),
    ("other surroundings", GOOD, ELSEWHERE, {}, INVALID, "environment differs: driver"),
    # What the trial itself did is told first, whatever else makes it INVALID.
    (
        "other surroundings, crashed",
        [OOM],
        ELSEWHERE,
        {},
        INVALID,
        "CRASHED (oom_gpu): CUDA out of memory; besides, environment differs: driver",
    ),
    (
        "other surroundings, NaN",
        [NAN],
        ELSEWHERE,
        {},
        INVALID,
        "loss NAN in run 0001-x; besides, environment differs: driver",
    ),
    (
        "a shared device, NaN",
        [run(61, 11, trend=Trend.NAN, conditions=Conditions(foreign_procs=1, foreign_share=1.0))],
        ALONE,
        {},
        REJECTED,
        "loss: NAN",
    ),
    (
        "a shared device, crashed",
        [crashed("exception", "ValueError: no", conditions=Conditions(foreign_procs=1, foreign_share=1.0))],
        ALONE,
        {},
        REJECTED,
        "outcome: CRASHED (exception): ValueError: no",
    ),
    (
        "a device that another has filled",
        [crashed("oom_gpu", "CUDA out of memory", conditions=Conditions(foreign_procs=1))],
        ALONE,
        {},
        INVALID,
        "CRASHED (oom_gpu): CUDA out of memory; besides, the device was shared: 1 other process",
    ),
    ("other surroundings, no effect", NONE, ELSEWHERE, {}, INVALID, "environment differs: driver"),
    # Then what the trial itself did wrong.
    ("out of memory", [OOM], ALONE, {}, REJECTED, "outcome: CRASHED (oom_gpu): CUDA out of memory"),
    (
        "host out of memory",
        [crashed("oom_host", "Killed", signal=signal.SIGKILL)],
        ALONE,
        {},
        INVALID,
        "CRASHED (oom_host): Killed, killed from outside",
    ),
    ("segmentation fault", [crashed("signal", signal=11)], ALONE, {}, REJECTED, "outcome: CRASHED"),
    ("time-out", [run(outcome=Outcome.TIMED_OUT)], ALONE, {}, REJECTED, "outcome: TIMED_OUT"),
    ("stall", [run(outcome=Outcome.STALLED)], ALONE, {}, REJECTED, "outcome: STALLED"),
    ("flood", [run(outcome=Outcome.OUTPUT_LIMIT)], ALONE, {}, REJECTED, "outcome: OUTPUT_LIMIT"),
    ("one good run, one crash", [GOOD[0], OOM], ALONE, {}, REJECTED, "outcome: CRASHED"),
    ("NaN loss, however busy", [NAN], ALONE, {}, REJECTED, "loss: NAN"),
    ("diverging", [run(61, 11, trend=Trend.DIVERGING)], ALONE, {}, REJECTED, "loss: DIVERGING"),
    ("the worst trend wins", [*GOOD, NAN], ALONE, {}, REJECTED, "loss: NAN"),
    ("a locked knob", GOOD, TrialSetting(locked=("--lr",)), {}, REJECTED, "locked knobs: --lr"),
    ("two changes", GOOD, TrialSetting(changes=2), {}, REJECTED, "one variable: 2"),
    ("two changes, meant", GOOD, TrialSetting(changes=2, compound=True), {}, VALID, "delta"),
    ("NaN and no effect", [run(28, 5, trend=Trend.NAN)], ALONE, {}, REJECTED, "loss: NAN"),
    ("no effect and no loss", runs(28, 29, 27, trend=Trend.UNKNOWN), ALONE, {}, REJECTED, "delta"),
    # Busier without getting more done.
    ("no faster", runs(61, 62, 61, 62, rate=3.5), ALONE, {}, REJECTED, "hollow: utilisation rose, th"),
    (
        "busy for nothing",
        runs(90, 91, 90, 91, rate=5.6),
        ALONE,
        {"throughput": "not_worse"},
        REJECTED,
        "hollow: utilisation rose, work conserved",
    ),
    (
        "slower",
        runs(61, 62, rate=2.5),
        ALONE,
        {"throughput": "not_worse"},
        REJECTED,
        "hollow: utilisation rose, throughput 0.50x",
    ),
    (
        "busy for nothing, throughput waived",
        runs(90, 91, 90, 91, rate=5.0),
        ALONE,
        {"throughput": "any"},
        REJECTED,
        "hollow: utilisation rose, work conserved",
    ),
    ("as fast is enough", runs(50, 51, rate=8.2), ALONE, {"throughput": "not_worse"}, VALID, "del"),
    # What is not known is no pass, and is named.
    ("between the thresholds", runs(*[43] * 6, rate=8.0), ALONE, {}, OPEN, "delta is unknown"),
    ("runs that disagree", runs(30, 80, rate=11.0), ALONE, {}, OPEN, "delta is unknown"),
    ("plateau", [run(61, 11, trend=Trend.PLATEAU)], ALONE, {}, OPEN, "loss is unknown (PLAT"),
    ("no loss", [run(61, 11, trend=Trend.UNKNOWN)], ALONE, {}, OPEN, "loss is unknown (UNKN"),
    ("any loss", [run(61, 11, trend=Trend.UNKNOWN)] * 2, ALONE, {"loss": "any"}, VALID, "delta"),
    ("NaN, any loss", [NAN] * 2, ALONE, {"loss": "any"}, VALID, "delta"),
    ("no utilisation", [run(None)], ALONE, {}, OPEN, "delta is unknown (unknown): trial: no"),
    ("no window", [run(window=None)], ALONE, {}, OPEN, "delta is unknown (unknown): trial: the"),
    ("short windows", runs(61, 62, rate=11.0, window=9.0), ALONE, {}, VALID, "delta +33"),
    ("no step rate", runs(61, 62, rate=None), ALONE, {}, OPEN, "throughput is unknown (unknown)"),
    (
        "no step rate, throughput waived",
        runs(61, 62, rate=None),
        ALONE,
        {"throughput": "any"},
        OPEN,
        "work_conserved is unknown (unknown)",
    ),
    ("no gain yet, slower", runs(43, 44, rate=3.0), ALONE, {}, OPEN, "delta is unknown"),
]


@pytest.mark.parametrize(
    ("after", "setting", "changes", "status", "why"), [t[1:] for t in TABLE], ids=[t[0] for t in TABLE]
)
def test_each_trial_gets_the_verdict_that_it_deserves(
    after: Sequence[Evidence], setting: TrialSetting, changes: dict[str, Any], status: Status, why: str
) -> None:
    found = verdict(BASE, after, setting, **changes)
    assert (found.status, found.why[: len(why)]) == (status, why)
    assert found.hollow is why.startswith("hollow")
    assert (status is Status.VALIDATED) is all(g.result in (Result.PASS, Result.SKIPPED) for g in found.gates)


def test_a_verdict_holds_what_the_progress_file_shows() -> None:
    found = verdict(BASE, GOOD)
    assert (found.before, found.after) == (pytest.approx(28, abs=0.1), 61.5)
    assert found.delta is not None and found.delta.low is not None and found.delta.high is not None
    assert found.delta.low < found.delta.value < found.delta.high
    assert found.before + found.delta.value == pytest.approx(found.after)
    assert (found.throughput_before, found.throughput_after) == pytest.approx((5, 11), rel=1e-4)
    assert found.throughput_unit == "step"
    assert (found.training, found.loss, found.hypothesis) == ("SUCCESS", Trend.CONVERGING, 1)
    assert Verdict.model_validate_json(found.model_dump_json()) == found


class TestNotes:
    def test_a_hollow_gain_is_named(self) -> None:
        assert "hollow gain" in verdict(BASE, runs(61, 62, 61, 62, rate=4.5)).notes[0]

    @pytest.mark.parametrize("level", [28, 20, 43])
    def test_faster_without_the_utilisation_is_named(self, level: float) -> None:
        (note,) = verdict(BASE, runs(level, level, rate=9.0)).notes
        assert note.startswith("improved throughput: 1.80x")
        (change,) = re.findall(r"while utilisation changed by ([+-][0-9.]+)pp", note)
        assert float(change) == pytest.approx(level - 28, abs=0.2)

    @pytest.mark.parametrize(
        "after",
        [
            GOOD,
            runs(28, 28),
            runs(28, 28, rate=None),
            runs(28, rate=9.0, trend=Trend.NAN),
            [run(28, 9, outcome=Outcome.TIMED_OUT)],
            [run(None, 9)],
        ],
        ids=["both up", "neither", "no rate", "NaN", "timed out", "no utilisation"],
    )
    def test_nothing_else_is(self, after: list[Evidence]) -> None:
        assert verdict(BASE, after).notes == ()


def some_run() -> st.SearchStrategy[Evidence]:
    return st.builds(
        lambda u, r, t, o, w, unit, e: run(
            u, r, trend=t, outcome=o, window=w, unit=unit, **({"standard_error": e} if w else {})
        ),
        st.floats(0, 100),
        st.floats(0.5, 20),
        st.sampled_from([Trend.CONVERGING] * 6 + list(Trend)),
        st.sampled_from([Outcome.COMPLETED] * 12 + list(Outcome)),
        st.sampled_from([40.0, 40.0, 16.0, 6.0, None]),
        st.sampled_from(["step", "step", "samples"]),
        st.sampled_from([0.5, 0.5, 15.0]),
    )


FIELDS = [
    name for name, field in Evidence.model_fields.items() if not field.is_required() and field.default is None
]


@settings(max_examples=400)
@given(
    st.lists(some_run(), min_size=1, max_size=3),
    st.lists(some_run(), min_size=1, max_size=3),
    st.sampled_from(["better", "not_worse", "any"]),
    st.data(),
)
def test_not_to_know_never_validates(
    before: list[Evidence], after: list[Evidence], throughput: str, data: st.DataObject
) -> None:
    """Whatever a run's evidence loses, a hypothesis gains nothing by it."""
    if verdict(before, after, throughput=throughput).status is Status.VALIDATED:
        return
    name = data.draw(st.sampled_from([*FIELDS, "loss"]))
    arm = data.draw(st.sampled_from([before, after]))
    at = data.draw(st.integers(0, len(arm) - 1))
    # A loss trend that is not known is the word UNKNOWN.
    lost = Evidence.model_fields["loss"].default if name == "loss" else None
    arm[at] = arm[at].model_copy(update={name: lost})
    assert verdict(before, after, throughput=throughput).status is not Status.VALIDATED


@pytest.mark.parametrize("name", ["utilisation", "standard_error", "progress_per_s", "loss"])
@pytest.mark.parametrize("throughput", ["better", "not_worse", "any"])
def test_a_gain_without_one_of_its_facts_is_not_validated(name: str, throughput: str) -> None:
    lost = Evidence.model_fields["loss"].default if name == "loss" else None
    update = {name: lost} | ({"steps_per_s": None} if name == "progress_per_s" else {})
    after = [GOOD[0], GOOD[1].model_copy(update=update)]
    assert verdict(BASE, GOOD, throughput=throughput).status is Status.VALIDATED
    assert verdict(BASE, after, throughput=throughput).status is Status.INCONCLUSIVE


@settings(max_examples=150)
@given(
    st.lists(some_run(), min_size=1, max_size=3),
    st.lists(some_run(), min_size=1, max_size=3),
    st.sampled_from(["better", "not_worse", "any"]),
    st.sampled_from(["converging", "any"]),
)
def test_every_trial_has_one_verdict_that_follows_from_its_gates(
    before: list[Evidence], after: list[Evidence], throughput: str, loss: str
) -> None:
    found = verdict(before, after, throughput=throughput, loss=loss)
    assert found == verdict(before, after, throughput=throughput, loss=loss)
    results = {g.name: g.result for g in found.gates}
    passed = all(r in (Result.PASS, Result.SKIPPED) for r in results.values())
    assert (found.status is Status.VALIDATED) is passed
    if found.hollow:
        assert (found.status, results["delta"]) == (Status.REJECTED, Result.PASS)
    if found.status is Status.INCONCLUSIVE:
        first = next(g for g in found.gates if g.result is Result.UNKNOWN)
        assert found.why.startswith(f"{first.name} is unknown")
    assert gate(found, "outcome").result is not Result.SKIPPED
    assert found.why
