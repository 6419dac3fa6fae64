"""How the training ended and what its loss did."""

from __future__ import annotations

from collections.abc import Sequence

from gpudebug.core.lazy import regex
from gpudebug.core.records import Evidence, Gate
from gpudebug.core.statistics.loss_curve import Distance, distance, level
from gpudebug.core.verdict.gates.case import TrialCase
from gpudebug.core.verdict.gates.learning import course_gate
from gpudebug.core.words import AS_PLANNED, INFRASTRUCTURE, Outcome, Result, Trend

NO_LOSS = "no loss is printed: judged by latency alone"


def infers(runs: Sequence[Evidence]) -> bool:
    """Tell whether each of these runs printed latencies, no loss, and made no step of an optimizer."""
    return bool(runs) and all(map(_infers, runs))


def _infers(e: Evidence) -> bool:
    steps = e.steps or (e.probe.steps if e.probe else None)
    return e.latency is not None and not e.loss.points and not steps


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
    """Return the loss gate of a trial whose loss is flat, or rises as the baseline's does, at equal work.

    The beginning of a long training, or a short version of one, need not fall as far as a trend asks. What
    counts is that it is no higher than the baseline's at the same steps, where the baseline's is flat, too,
    and surely falls; in runs that were ended it need not. Where that is not known the gate stays as it is.
    """
    open_ = gate.value in (Trend.PLATEAU, Trend.DIVERGING) and gate.result is Result.UNKNOWN
    ended = ended_by_plan(case.after)
    alike = ended or all(e.loss.trend is Trend.PLATEAU for e in case.before)
    if not open_ or case.setting.other_steps or not alike:
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
    course = "flat" if gate.value == Trend.PLATEAU else "rising"
    if value <= HARMLESS_LEVEL or low <= 0:
        return _judged(
            gate, Result.PASS, f"{course} in the baseline too; at equal steps {value:+.1%} of its loss"
        )
    note = f"{course}, and at equal steps {value:+.1%} of the baseline's loss above it"
    return _judged(gate, Result.FAIL if low > HARMFUL_LEVEL else Result.UNKNOWN, note)


def _judged(gate: Gate, result: Result, note: str, ended: bool = True) -> Gate:
    where = "in a window ended by plan" if ended else "where that is flat, too"
    threshold = f"{Trend.CONVERGING}, or as low as the baseline's at equal steps {where}"
    return gate.model_copy(update={"result": result, "threshold": threshold, "note": note})


# A program that dies of one of these was ended from outside: by a person, a scheduler, the kernel.
# By Linux's numbers, wherever a run is looked at: SIGKILL, SIGTERM, SIGHUP, SIGINT.
_KILLED = 9
_FOREIGN = frozenset({_KILLED, 15, 1, 2})


def is_infrastructure(e: Evidence) -> bool:
    """Whether the run's end says nothing of the hypothesis: lost device or sampler, interrupted, killed."""
    return e.outcome in INFRASTRUCTURE or (e.outcome is Outcome.CRASHED and _ended_from_outside(e))


def _ended_from_outside(e: Evidence) -> bool:
    if e.failure is not None and e.failure.kind not in ("signal", "interrupted"):
        return False
    # A shell or a launcher says 128 + N where a program below it was ended by signal N.
    ended_by = e.signal or (e.exit_status or 0) - 128
    return ended_by in _FOREIGN or (e.failure is not None and e.failure.kind == "interrupted")


# What a program prints of a worker or rank of it that was killed: by the kernel, or at a container's limit.
_CHILD_KILLED = regex(
    r"killed by signal: Killed|oom[-_]kill|OOM Killer|Out of memory: Kill"
    r"|Signal 9 \(SIGKILL\)|exitcode\s*:? ?-9\b"
)


def killed_by_host(e: Evidence) -> bool:
    """Tell whether SIGKILL ended the run or a process of it, for want of memory or for no reason that it
    knows; not if the run itself had filled the memory limit of its control group."""
    if e.outcome is not Outcome.CRASHED or e.failure is None or e.failure.kind not in ("oom_host", "signal"):
        return False
    if e.failure.own_limit_mb is not None:
        return False
    own = e.signal == _KILLED or e.exit_status == 128 + _KILLED
    return own or any(_CHILD_KILLED.search(line) for line in e.failure.lines)


def crowded_out(e: Evidence) -> bool:
    """Tell whether the device had no memory left for the run while another process computed on it."""
    return e.failure is not None and e.failure.kind == "oom_gpu" and bool(e.conditions.foreign_procs)


def is_machinery(e: Evidence) -> bool:
    """`is_infrastructure`, and what the host's killer ended."""
    return is_infrastructure(e) or killed_by_host(e)


WITHOUT_LOG = ", without a log"
"""Ends the reason of an imported run of which there are samples alone: nothing tells how it ended."""


def worst_trend(runs: Sequence[Evidence]) -> Trend:
    """Return the worst trend of the runs: one that diverges is not made good by one that does not."""
    trends = [e.loss.trend for e in runs]
    for worst in (Trend.NAN, Trend.DIVERGING, Trend.UNKNOWN, Trend.PLATEAU):
        if worst in trends:
            return worst
    return Trend.CONVERGING


def training_text(runs: Sequence[Evidence]) -> str:
    """`SUCCESS`, that gpudebug ended a run, or how the first failed run ended, with its failure class."""
    failed = next((e for e in runs if e.outcome not in AS_PLANNED), None)
    if failed is None:
        if any(e.reason and e.reason.endswith(WITHOUT_LOG) for e in runs):
            return "UNKNOWN - imported without a log"
        return TRAINING if ended_by_plan(runs) else "SUCCESS"
    kind = f" ({failed.failure.kind})" if failed.failure else ""
    line = failed.failure.lines[-1] if failed.failure and failed.failure.lines else failed.reason
    return f"FAILED - {failed.outcome}{kind}" + (f": {line}" if line else "")


def outcome_gate(case: TrialCase) -> Gate:
    gate = Gate(
        name="outcome",
        value=str(Outcome.COMPLETED),
        threshold="training ends by itself with status 0",
        result=Result.PASS,
    )
    failed = next((e for e in case.after if e.outcome not in AS_PLANNED), None)
    if failed is not None:
        value = training_text(case.after).removeprefix("FAILED - ")
        result = Result.UNKNOWN if is_machinery(failed) else Result.FAIL
        return gate.model_copy(update={"value": value, "result": result})
    return alive_gate(gate) if ended_by_plan(case.after) else gate


def loss_gate(case: TrialCase) -> Gate:
    trend = worst_trend(case.after)
    gate = Gate(name="loss", value=str(trend), threshold=str(Trend.CONVERGING), result=Result.UNKNOWN)
    if case.criteria.loss == "any":
        return gate.model_copy(update={"threshold": "any", "result": Result.SKIPPED})
    if case.learning is not None:
        return course_gate(case, case.learning)
    if infers((*case.before, *case.after)):
        return gate.model_copy(update={"result": Result.SKIPPED, "note": NO_LOSS})
    if trend is Trend.CONVERGING:
        return gate.model_copy(update={"result": Result.PASS})
    if trend is Trend.NAN or (trend is Trend.DIVERGING and worst_trend(case.before) is not Trend.DIVERGING):
        return gate.model_copy(update={"result": Result.FAIL})
    advice = next((e.loss.advice for e in case.after if e.loss.advice), None)
    return learns_as_the_baseline(gate.model_copy(update={"note": advice}), case)
