"""Measured runs -> verdict: one function for the trial under way and for later checks.

All that it needs beside the runs is in `Terms`, which verdict.json keeps, so that a verdict can be
derived again when gpudebug.yaml has long changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pydantic import TypeAdapter

from gpudebug.core.change import intervention as interventions
from gpudebug.core.command import batch
from gpudebug.core.config import Config
from gpudebug.core.records import Evidence, LearningUnit, Terms, UsedRun, Verdict, WorkUnit
from gpudebug.core.verdict import learning, work
from gpudebug.core.verdict.gates.enough import metric_of, share_seen
from gpudebug.core.verdict.judge import RULE, Criteria, TrialSetting, judge, short_window
from gpudebug.core.verdict.protocol import NextRun, is_certain, next_step
from gpudebug.core.words import Outcome
from gpudebug.edges import store
from gpudebug.engine.run.job import MeasuredRun
from gpudebug.engine.run.prepare import window_advice, window_of
from gpudebug.engine.trial.conduct import with_conduct
from gpudebug.engine.trial.latencies import more_requests

CRASH = "crash"
"""The part of a verdict's runs in which an earlier version of the change failed."""


def terms_of(config: Config, before: Sequence[MeasuredRun] = ()) -> Terms:
    """What a trial is judged by: what gpudebug.yaml says, and what is chosen from the baseline's runs."""
    return Terms(
        metric=config.metric,
        direction=config.direction,
        locked=config.locked,
        criteria=config.criteria.model_dump(mode="json"),
        protocol=config.protocol.model_dump(mode="json"),
        work=work_of(before, config.work),
        learning=learning_of(before, config.criteria.learning),
    )


def learning_of(before: Sequence[MeasuredRun], configured: Mapping[str, str] | None) -> LearningUnit | None:
    """What learning is judged by, from the recorded runs of a baseline; None for the loss of its logs."""
    recorded = [m.evidence for m in before if m.record.hypothesis is None]
    return learning.choose(recorded or evidence_of(before), configured)


def work_of(before: Sequence[MeasuredRun], configured: str) -> WorkUnit | None:
    """The unit of work of a baseline, by its recorded runs: not by those that were made beside a trial."""
    recorded = [m.evidence for m in before if m.record.hypothesis is None]
    return work.choose(recorded or evidence_of(before), configured)


def criteria_of(terms: Terms) -> Criteria:
    """The thresholds as the verdict takes them. ValueError (pydantic's) if they are not such."""
    settings = {**terms.criteria, **terms.protocol, "metric": terms.metric, "direction": terms.direction}
    return TypeAdapter(Criteria).validate_python(settings)


def judge_runs(
    number: int,
    terms: Terms,
    before: Sequence[MeasuredRun],
    after: Sequence[MeasuredRun],
    remarks: Sequence[str] = (),
    *,
    confirmed: str | None = None,
    rule: str = RULE,
    crashes: Sequence[MeasuredRun] = (),
) -> Verdict:
    """The verdict on hypothesis `number` with the baseline's runs `before` and the trial's `after`.

    The change is the one that run.json of the trial's first run records, the claim that of its newest.
    `remarks` are notes on how it was applied, `confirmed` is why a person takes counts that do not fit for
    explained, `crashes` are runs in which an earlier version of the change's code crashed. `before` and
    `after` hold at least one run each.
    """
    criteria = criteria_of(terms)
    evidence = evidence_of(before), evidence_of(after)
    setting = _setting(terms, criteria, before, after, confirmed, rule)
    verdict = judge(number, criteria, *evidence, setting, rule)
    return verdict.model_copy(
        update={
            "notes": (*verdict.notes, *map(_crash_text, crashes), *remarks),
            "remarks": tuple(remarks),
            "terms": terms,
            "change_digest": after[0].record.change_digest,
            "claim": _claim([*before, *after]),
            "lengthened": after[0].record.lengthened,
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


def _crash_text(m: MeasuredRun) -> str:
    if m.evidence.outcome is not Outcome.CRASHED:
        return f"the change made the loss NaN in run {m.folder.name} before"
    kind = f" ({m.evidence.failure.kind})" if m.evidence.failure else ""
    return f"the change crashed in run {m.folder.name}{kind} before"


def step_after(
    verdict: Verdict, before: Sequence[MeasuredRun], after: Sequence[MeasuredRun], *, likely: bool = False
) -> NextRun:
    """What the trial with this verdict of `judge_runs` so far needs next; `likely` as in `TrialSetting`."""
    assert verdict.terms is not None
    criteria = criteria_of(verdict.terms)
    setting = _setting(verdict.terms, criteria, before, after, verdict.confirmed)
    setting = replace(setting, likely=likely)
    return next_step(verdict, criteria, evidence_of(before), evidence_of(after), setting)


def _claim(runs: Sequence[MeasuredRun]) -> str | None:
    """The claim that the newest run was made under."""
    made = [m for m in runs if m.record.claim is not None]
    newest = max(made, key=lambda m: store.run_number(m.folder.name), default=None)
    return newest.record.claim if newest is not None else None


def certain(
    number: int,
    terms: Terms,
    before: Sequence[MeasuredRun],
    after: Sequence[MeasuredRun],
    confirmed: str | None = None,
) -> bool:
    """Whether the last run of `after`, which goes on, has decided the trial already."""
    criteria = criteria_of(terms)
    setting = _setting(terms, criteria, before, after, confirmed)
    return is_certain(number, criteria, evidence_of(before), evidence_of(after), setting)


def is_fresh(run: MeasuredRun, after: Sequence[MeasuredRun]) -> bool:
    """Whether a run of the baseline was made beside the trial of these runs: since the first of them."""
    first = store.run_number(after[0].folder.name)
    return run.record.hypothesis is not None and store.run_number(run.folder.name) > first


def evidence_of(runs: Sequence[MeasuredRun]) -> list[Evidence]:
    return [m.evidence for m in runs]


def _setting(
    terms: Terms,
    criteria: Criteria,
    before: Sequence[MeasuredRun],
    after: Sequence[MeasuredRun],
    confirmed: str | None,
    rule: str = RULE,
) -> TrialSetting:
    change = after[0].record.change
    intervention = interventions.parse(change) if change else None
    short = short_window(criteria, evidence_of(before), evidence_of(after))
    setting = TrialSetting(
        changes=intervention.size if intervention else 0,
        compound=bool(intervention and intervention.compound),
        window_advice=_advice(criteria, before, after) if short else None,
        fresh=sum(is_fresh(m, after) for m in before),
        batch=any(c.kind == "env" and batch.names_batch(c.name) for c in intervention.changes)
        if intervention
        else False,
        confirmed=confirmed,
        work=terms.work,
        learning=terms.learning,
        rule=int(rule),
    )
    return with_conduct(setting, intervention, terms.locked, before, after)


def _advice(criteria: Criteria, before: Sequence[MeasuredRun], after: Sequence[MeasuredRun]) -> str:
    """What would make the shorter side's runs show enough: a flag and its value, or more requests."""
    sides = (evidence_of(runs) for runs in (before, after))
    fewer = min(sides, key=lambda runs: share_seen(criteria, runs))
    if (latencies := more_requests(metric_of(criteria), fewer)) is not None:
        return latencies
    needed = criteria.min_window
    short = before if sum(map(window_of, before)) < needed else after
    return window_advice(before[0].record.argv, short, needed)
