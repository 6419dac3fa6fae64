"""A trial whose runs are too short is made again with more steps, and the baseline beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpudebug.core.change import intervention as interventions
from gpudebug.core.change.permits import Allowed
from gpudebug.core.records import Lengthened, Verdict
from gpudebug.core.verdict import lengthen, pooling
from gpudebug.core.verdict.protocol import NextRun
from gpudebug.engine.campaign.campaign import Loaded
from gpudebug.engine.run.job import MeasuredRun, PreparedRun
from gpudebug.engine.run.live_line import Report
from gpudebug.engine.run.prepare import remarks, window_of
from gpudebug.engine.trial.judge import criteria_of, evidence_of
from gpudebug.engine.trial.lengths import may_be_lengthened

MOST_FIRST = 3
"""So many lengthened baseline runs are made before the trial's, if their windows are too short together."""


def longer(
    loaded: Loaded,
    verdict: Verdict,
    recorded: Sequence[MeasuredRun],
    after: Sequence[MeasuredRun],
    spent: float,
) -> Lengthened | str | None:
    """How the trial's runs have to grow to be judged; why they are not, as text; None if they need not.

    `recorded` are the baseline's runs as they were recorded, `after` the trial's, of one length, `spent` the
    seconds of device time that this trial has used.
    """
    assert verdict.terms is not None
    criteria, config = criteria_of(verdict.terms), loaded.config
    old, new = evidence_of(recorded), evidence_of(after)
    if not lengthen.too_short(verdict, criteria, new):
        return None
    now, change = after[-1].record.lengthened, after[0].record.change
    intervention = interventions.parse(change) if change else None
    option = may_be_lengthened(loaded.workspace.root, config, intervention)
    if option is None or isinstance(option, str):
        return option
    value = int(option.value or 0)
    if not lengthen.counts_length(option.name, value, old):
        return None
    if now is not None and not _grew(recorded, after, now):
        return f"{option.name}={value * now.factor} did not make the runs longer"
    window = min(lengthen.window_of_short(e, old) for e in new)
    more = lengthen.factor(criteria, window)
    if more is None or (now is not None and now.factor * more > lengthen.MOST):
        return f"its runs would have to be more than {lengthen.MOST} times as long"
    wanted = Lengthened(flag=option.name, value=value, factor=more * (now.factor if now is not None else 1))
    return _dear(loaded, recorded, after, wanted, more, spent) or wanted


def pooled(verdict: Verdict, before: Sequence[MeasuredRun], after: Sequence[MeasuredRun]) -> str | None:
    """What becomes of a trial whose runs are too short and stay so; None if they are long enough."""
    assert verdict.terms is not None
    criteria, new = criteria_of(verdict.terms), evidence_of(after)
    return (
        pooling.text(criteria, evidence_of(before), new)
        if lengthen.too_short(verdict, criteria, new)
        else None
    )


def _grew(recorded: Sequence[MeasuredRun], after: Sequence[MeasuredRun], now: Lengthened) -> bool:
    usual = min(m.record.duration_s or 0.0 for m in recorded)
    return now.factor < 4 or (after[-1].record.duration_s or 0.0) > lengthen.GREW * usual / now.factor


def _dear(
    loaded: Loaded,
    recorded: Sequence[MeasuredRun],
    after: Sequence[MeasuredRun],
    wanted: Lengthened,
    more: int,
    spent: float,
) -> str | None:
    """Why the lengthened runs cannot be paid for; None if they can."""
    config = loaded.config
    base = wanted.factor * max(m.record.duration_s or 0.0 for m in recorded)
    trial = more * max(m.record.duration_s or 0.0 for m in after)
    if max(base, trial) > lengthen.TIMEOUT_SHARE * config.workload.timeout:
        return (
            f"{wanted.text} would take up to {max(base, trial):.0f} s a run, workload.timeout is "
            f"{config.workload.timeout:g} s"
        )
    # One of the baseline before the trial's, and a fresh one that confirms it.
    needed = 2 * base + min(lengthen.TRIAL_RUNS, config.protocol.max_runs) * trial
    left = config.budget.device_time - loaded.campaign.device_time - spent
    if needed > left:
        return (
            f"{wanted.text} would take about {needed:.0f} s of the device, {max(left, 0):.0f} s are left of "
            "budget.device_time"
        )
    return None


def lengthened(job: PreparedRun, by: Lengthened | None) -> PreparedRun:
    """The job with more steps: what it changes, and what it is a baseline of, stays what it was."""
    if by is None:
        return job
    change = interventions.from_options(set=[f"{by.flag}={by.value * by.factor}"])
    applied = change.apply(job.argv, dict(job.env), Allowed(frozenset((by.flag,))))
    return replace(job, argv=applied.argv, lengthened=by)


def first_needed(
    before: Sequence[MeasuredRun], after: Sequence[MeasuredRun], min_window: float
) -> NextRun | None:
    """What a lengthened trial needs before it can be judged: a baseline of its length, and its own run."""
    short = sum(map(window_of, before)) < min_window and len(before) < MOST_FIRST
    if not before or short:
        return NextRun.BASELINE
    return None if after else NextRun.TRIAL


def announce(report: Report, by: Lengthened) -> None:
    remarks(report)(note_of(by))


def renoted(notes: Sequence[str], old: Lengthened | None, by: Lengthened) -> tuple[str, ...]:
    """The notes of a trial with how it is lengthened now, instead of how it was."""
    former = note_of(old) if old is not None else None
    return (*(note for note in notes if note != former), note_of(by))


def note_of(by: Lengthened) -> str:
    return (
        f"lengthened: {by.text} in the trial's runs and in the baseline runs beside it ({by.factor} times as "
        f"long): with {by.flag}={by.value} a run of the trial is too short to judge"
    )
