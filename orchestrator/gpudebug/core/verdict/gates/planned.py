"""Runs that gpudebug ended by its plan: how they ended, and their learning at equal work."""

from __future__ import annotations

from collections.abc import Sequence

from gpudebug.core.records import Evidence, Gate
from gpudebug.core.statistics.loss_curve import Distance, distance, level
from gpudebug.core.verdict.gates.case import TrialCase
from gpudebug.core.words import Outcome, Result, Trend

ALIVE = "alive at the end of its planned window"
TRAINING = f"{Outcome.ENDED_BY_PLAN} - {ALIVE}"
# Of what the baseline's loss falls by, as loss parity has it.
HARMLESS_FALL = 0.10
# Of a loss that does not fall: below the first a difference is harmless, surely above the second it is not.
HARMLESS_LEVEL, HARMFUL_LEVEL = 0.02, 0.10


def ended_by_plan(runs: Sequence[Evidence]) -> bool:
    return any(e.outcome is Outcome.ENDED_BY_PLAN for e in runs)


def alive_gate(gate: Gate) -> Gate:
    """Return the outcome gate of a trial whose runs all did as planned, and of which some were ended."""
    threshold = f"training ends by itself with status 0, or is {ALIVE}"
    return gate.model_copy(update={"value": ALIVE, "threshold": threshold})


def learns_as_the_baseline(gate: Gate, case: TrialCase) -> Gate:
    """Return the loss gate of a trial whose loss is flat (PLATEAU), judged at equal work.

    The beginning of a long training, or a short version of one, need not fall as far as a trend asks. What
    counts is that it is no higher than the baseline's at the same steps, where the baseline's is flat, too,
    and surely falls; in runs that were ended it need not. Where that is not known the gate stays as it is.
    """
    flat = gate.value == Trend.PLATEAU and gate.result is Result.UNKNOWN
    ended = ended_by_plan(case.after)
    alike = ended or all(e.loss.trend is Trend.PLATEAU for e in case.before)
    if not flat or case.setting.other_steps or not alike:
        return gate
    sides = [[e.loss.curve for e in runs] for runs in (case.before, case.after)]
    if len({e.loss.name for e in (*case.before, *case.after)}) > 1:
        return gate
    found = distance(sides[0], sides[1])
    if isinstance(found, Distance):
        share = found.value.value / found.fall
        if share <= HARMLESS_FALL or (found.value.low or 0.0) <= 0:
            note = f"at equal steps {share:+.0%} of what the baseline's falls by"
            return _judged(gate, Result.PASS, note, ended)
        return gate
    if not ended:
        return gate
    apart = level(sides[0], sides[1])
    if isinstance(apart, str):
        return gate
    value, low = apart.value, apart.low or 0.0
    if value <= HARMLESS_LEVEL or low <= 0:
        return _judged(
            gate, Result.PASS, f"flat in the baseline too; at equal steps {value:+.1%} of its loss"
        )
    note = f"flat, and at equal steps {value:+.1%} of the baseline's loss above it"
    return _judged(gate, Result.FAIL if low > HARMFUL_LEVEL else Result.UNKNOWN, note)


def _judged(gate: Gate, result: Result, note: str, ended: bool = True) -> Gate:
    where = "in a window ended by plan" if ended else "where that is flat, too"
    threshold = f"{Trend.CONVERGING}, or as low as the baseline's at equal steps {where}"
    return gate.model_copy(update={"result": result, "threshold": threshold, "note": note})
