"""Evidence of imaginary runs, and the verdict on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gpudebug.core.records import DeviceEvidence, Evidence, Failure, Gate, LossEvidence, Verdict, Window
from gpudebug.core.verdict.gates.case import TrialCase, measure
from gpudebug.core.verdict.gates.setting import Criteria, Order, TrialSetting
from gpudebug.core.verdict.judge import judge_case
from gpudebug.core.verdict.protocol import next_step
from gpudebug.core.verdict.turns import NextRun
from gpudebug.core.words import Outcome, Result, Trend

CRITERIA = Criteria(success=20, failure=10, loss="converging", throughput="better", max_runs=6)


def criteria(**changes: Any) -> Criteria:
    values = {name: getattr(CRITERIA, name) for name in Criteria.__slots__}
    return Criteria(**{**values, **changes})


def run(
    utilisation: float | None = 30.0,
    rate: float | None = 5.0,
    *,
    trend: Trend = Trend.CONVERGING,
    window: float | None = 40.0,
    unit: str | None = "step",
    **more: Any,
) -> Evidence:
    """A completed run: utilisation in percent, steps per second, seconds of steady window."""
    reason = None if window else "the window is too short: 1.2 s after warm-up, at least 5 s needed"
    figures: dict[str, Any] = {
        "run": "0001-x",
        "role": "h1",
        "outcome": Outcome.COMPLETED,
        "exit_status": 0,
        "window": Window(start_s=5, end_s=5 + window, samples=200, rule="steps") if window else None,
        "window_reason": reason,
        "devices": (DeviceEvidence(index=0, uuid="GPU-0", name="x", reason=reason),),
        "utilisation": utilisation if window else None,
        "standard_error": 0.5 if window and utilisation is not None else None,
        "step_unit": unit,
        "progress_per_s": rate,
        "steps_per_s": rate if unit == "step" else None,
        "loss": LossEvidence(name="loss", trend=trend, points=20),
    }
    return Evidence(**{**figures, **more})


def runs(*utilisations: float, rate: float | None = 5.0, **more: Any) -> list[Evidence]:
    return [run(u, rate, **more) for u in utilisations]


def crashed(kind: str | None = "exception", *lines: str, **more: Any) -> Evidence:
    failure = Failure(kind=kind, lines=lines) if kind else None
    ending = {"exit_status": None if "signal" in more else 1, **more}
    return run(None, None, window=None, outcome=Outcome.CRASHED, failure=failure, **ending)


def verdict(
    before: Sequence[Evidence],
    after: Sequence[Evidence],
    /,
    setting: TrialSetting | None = None,
    **changes: Any,
) -> Verdict:
    """The verdict on runs in an order that ends with the baseline, unless `setting` has another."""
    return judge_case(measured(before, after, setting, **changes))


def following(
    before: Sequence[Evidence],
    after: Sequence[Evidence],
    /,
    setting: TrialSetting | None = None,
    **changes: Any,
) -> NextRun:
    """The run that this trial needs next."""
    case = measured(before, after, setting, **changes)
    return next_step(judge_case(case), case)


def measured(
    before: Sequence[Evidence],
    after: Sequence[Evidence],
    /,
    setting: TrialSetting | None = None,
    **changes: Any,
) -> TrialCase:
    setting = setting or TrialSetting()
    if setting.order is None:
        setting = replace(setting, order=closed(before, after))
    return measure(TrialCase(criteria(**changes), setting, tuple(before), tuple(after), 1))


def closed(before: Sequence[Evidence], after: Sequence[Evidence]) -> Order:
    """The runs as a trial makes them that ends here: the baseline's last one comes after the trial's."""
    first, last = len(before) - 1, len(before) + len(after) - 1
    return Order((*range(first), last), tuple(range(first, last)), last + 1)


def gate(found: Verdict, name: str) -> Gate:
    return next(g for g in found.gates if g.name == name)


BASE = runs(28, 27, 29, 28)
GOOD = runs(61, 62, rate=11.0)


def result(name: str, before: Sequence[Evidence], after: Sequence[Evidence], **changes: Any) -> Result:
    return gate(verdict(before, after, **changes), name).result


def in_turns(turns: str, /, *levels: float, setting: TrialSetting | None = None, **changes: Any) -> TrialCase:
    """A trial whose runs came in `turns`, such as AATTA: of the baseline and of the change, at these levels.

    A step takes the device as long in each. `window` and `conditions` are those of all runs.
    """
    facts = {name: changes.pop(name) for name in ("window", "conditions", "devices") if name in changes}
    made = [run(level, max(level, 0.1) / 5, **facts) for level in levels]
    places = [tuple(i for i, turn in enumerate(turns) if turn == side) for side in "AT"]
    before, after = ([made[i] for i in side] for side in places)
    placed = replace(setting or TrialSetting(), order=Order(*places, len(turns)))
    return measured(before, after, placed, **changes)
