"""Measured runs -> verdict: one function for the trial under way and for later checks.

All that it needs beside the runs is in `Terms`, which verdict.json keeps, so that a verdict can be
derived again when gpudebug.yaml has long changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pydantic import TypeAdapter

from gpudebug.core.change import intervention as interventions
from gpudebug.core.command import batch
from gpudebug.core.config import Config
from gpudebug.core.records import Evidence, Terms, UsedRun, Verdict, WorkUnit
from gpudebug.core.samples.window import MIN_RUN_WINDOW_S
from gpudebug.core.statistics.level import places
from gpudebug.core.statistics.units import AUTO
from gpudebug.core.verdict.gates.case import TrialCase, measure
from gpudebug.core.verdict.gates.setting import Criteria, Order, TrialSetting
from gpudebug.core.verdict.judge import judge_case
from gpudebug.core.verdict.work import terms_by
from gpudebug.core.words import Outcome
from gpudebug.edges import store
from gpudebug.engine.run.job import MeasuredRun
from gpudebug.engine.run.prepare import window_advice
from gpudebug.engine.trial.conduct import with_conduct

CRASH = "crash"
"""The part of a verdict's runs in which an earlier version of the change failed."""


def asked(config: Config) -> Terms:
    """Return what gpudebug.yaml says that trials are judged by; a unit that is set has no source yet."""
    return Terms(
        metric=config.metric,
        direction=config.direction,
        locked=config.locked,
        criteria=config.criteria.model_dump(mode="json"),
        protocol=config.protocol.model_dump(mode="json"),
        work=None if config.work == AUTO else WorkUnit(unit=config.work, source="", chosen=False),
    )


def terms_of(terms: Terms, before: Sequence[MeasuredRun]) -> Terms:
    """Return what a trial beside these runs of the baseline is judged by; `terms` are asked for, or stored.

    The recorded runs show it: one that was made beside a trial chooses nothing.
    """
    return terms_by(terms, [m.evidence for m in before if m.record.hypothesis is None])


def criteria_of(terms: Terms) -> Criteria:
    """Return the thresholds as the verdict takes them. ValueError (pydantic's) if they are not such."""
    settings = {**terms.criteria, **terms.protocol, "metric": terms.metric, "direction": terms.direction}
    return TypeAdapter(Criteria).validate_python(settings)


def trial_case(
    number: int,
    terms: Terms,
    before: Sequence[MeasuredRun],
    after: Sequence[MeasuredRun],
    *,
    confirmed: str | None = None,
    more: int = 0,
) -> TrialCase:
    """Return a trial of hypothesis `number`, measured: the baseline's runs and its own, at least one each."""
    criteria = criteria_of(terms)
    change = after[0].record.change
    intervention = interventions.parse(change) if change else None
    setting = TrialSetting(
        changes=intervention.size if intervention else 0,
        compound=bool(intervention and intervention.compound),
        window_advice=_advice(before, after),
        order=order_of(before, after),
        more=more,
        batch=any(c.kind == "env" and batch.names_batch(c.name) for c in intervention.changes)
        if intervention
        else False,
        confirmed=confirmed,
        work=terms.work,
        learning=terms.learning,
    )
    setting = with_conduct(setting, intervention, terms.locked, before, after)
    return measure(TrialCase(criteria, setting, evidence_of(before), evidence_of(after), number))


def judge_runs(
    number: int,
    terms: Terms,
    before: Sequence[MeasuredRun],
    after: Sequence[MeasuredRun],
    remarks: Sequence[str] = (),
    *,
    confirmed: str | None = None,
    more: int = 0,
    crashes: Sequence[MeasuredRun] = (),
) -> Verdict:
    """Return the verdict on hypothesis `number` with the baseline's runs `before` and the trial's `after`.

    The change is the one that run.json of the trial's first run records, the claim that of its newest.
    `remarks` are notes on how it was applied, `confirmed` is why a person takes counts that do not fit for
    explained, `more` is how often the trial was continued, `crashes` are runs in which an earlier version of
    the change's code crashed. `before` and `after` hold at least one run each.
    """
    terms = terms_of(terms, before)
    case = trial_case(number, terms, before, after, confirmed=confirmed, more=more)
    return verdict_of(case, terms, before, after, remarks, crashes)


def verdict_of(
    case: TrialCase,
    terms: Terms,
    before: Sequence[MeasuredRun],
    after: Sequence[MeasuredRun],
    remarks: Sequence[str] = (),
    crashes: Sequence[MeasuredRun] = (),
) -> Verdict:
    """Return the verdict on a case of these runs; the arguments are those of `judge_runs`."""
    verdict = judge_case(case)
    within = f"{after[0].record.cwd.rstrip('/')}/"
    notes = (*verdict.notes, *map(_crash_text, crashes))
    return verdict.model_copy(
        update={
            # Where a worktree lies says nothing to the readers of an entry.
            "why": verdict.why.replace(within, ""),
            "training": verdict.training.replace(within, ""),
            "notes": (*(note.replace(within, "") for note in notes), *remarks),
            "remarks": tuple(remarks),
            "terms": terms,
            "change_digest": after[0].record.change_digest,
            "claim": _claim([*before, *after]),
            "runs": tuple(
                UsedRun(
                    name=m.folder.name,
                    part=part,
                    fresh=part == "baseline" and is_fresh(m, after),
                    evidence_sha256=store.file_digest(m.folder.path / "evidence.json"),
                )
                for part, runs in (("baseline", before), (CRASH, crashes), ("trial", after))
                for m in runs
            ),
        }
    )


def order_of(
    before: Sequence[MeasuredRun],
    after: Sequence[MeasuredRun],
    now: float | None = None,
    most: int = 10_000,
) -> Order:
    """Return the places of these runs, by when they began, `most` in one pause; `now` (seconds of the epoch)
    is that of the next one, None: right after the last. Between runs that are played back no time passes."""
    made = sorted([*before, *after], key=lambda m: store.run_number(m.folder.name))
    starts = [datetime.fromisoformat(m.record.start).timestamp() for m in made]
    starts.append(starts[-1] if now is None else now)
    most = 0 if any(m.record.replayed for m in made) else most
    found = places(starts, [m.record.duration_s or 0.0 for m in made], most)
    at = {m.folder.name: place for m, place in zip(made, found, strict=False)}
    return Order(tuple(at[m.folder.name] for m in before), tuple(at[m.folder.name] for m in after), found[-1])


def _crash_text(m: MeasuredRun) -> str:
    if m.evidence.outcome is not Outcome.CRASHED:
        return f"the change made the loss NaN in run {m.folder.name} before"
    kind = f" ({m.evidence.failure.kind})" if m.evidence.failure else ""
    return f"the change crashed in run {m.folder.name}{kind} before"


def _claim(runs: Sequence[MeasuredRun]) -> str | None:
    """Return the claim that the newest run was made under."""
    made = [m for m in runs if m.record.claim is not None]
    newest = max(made, key=lambda m: store.run_number(m.folder.name), default=None)
    return newest.record.claim if newest is not None else None


def is_fresh(run: MeasuredRun, after: Sequence[MeasuredRun]) -> bool:
    """Tell whether a run of the baseline was made beside the trial of these runs: since the first of them."""
    first = store.run_number(after[0].folder.name)
    return run.record.hypothesis is not None and store.run_number(run.folder.name) > first


def evidence_of(runs: Sequence[MeasuredRun]) -> tuple[Evidence, ...]:
    return tuple(m.evidence for m in runs)


def _advice(before: Sequence[MeasuredRun], after: Sequence[MeasuredRun]) -> str | None:
    """What would give a run that was too short a window: a flag and its value. None if each has one."""
    short = [m for m in (*before, *after) if m.evidence.window is None]
    return window_advice(before[0].record.argv, short, MIN_RUN_WINDOW_S) if short else None
