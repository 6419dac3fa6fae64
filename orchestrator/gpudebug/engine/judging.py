"""Measured runs -> verdict: one function for the trial under way and for whoever checks it later.

All that it needs beside the runs is in `Terms`, which verdict.json keeps, so that a verdict can be
derived again when gpudebug.yaml has long changed.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import TypeAdapter

from gpudebug.core import intervention as interventions
from gpudebug.core.config import Config
from gpudebug.core.models import Evidence, Terms, UsedRun, Verdict
from gpudebug.core.verdict import Criteria, Setting, judge, short_window
from gpudebug.edges import store
from gpudebug.engine.bench import window_advice, window_of
from gpudebug.engine.measure import Measured
from gpudebug.engine.surroundings import differences, recorded


def terms_of(config: Config) -> Terms:
    """What gpudebug.yaml says a trial is judged by."""
    return Terms(
        metric=config.metric,
        direction=config.direction,
        locked=config.locked,
        criteria=config.criteria.model_dump(mode="json"),
        protocol=config.protocol.model_dump(mode="json"),
    )


def criteria_of(terms: Terms) -> Criteria:
    """The thresholds as the verdict takes them. ValueError (pydantic's) where they are not such."""
    return TypeAdapter(Criteria).validate_python({**terms.criteria, **terms.protocol})


def judge_runs(
    number: int,
    terms: Terms,
    before: Sequence[Measured],
    after: Sequence[Measured],
    remarks: Sequence[str] = (),
) -> Verdict:
    """The verdict on hypothesis `number` with the baseline's runs `before` and the trial's `after`.

    The change is the one that run.json of the trial's first run tells of. `remarks` are notes on how it was
    applied. Each list holds at least one run.
    """
    criteria = criteria_of(terms)
    evidence = evidence_of(before), evidence_of(after)
    verdict = judge(number, criteria, *evidence, _setting(terms, criteria, before, after))
    return verdict.model_copy(
        update={
            "notes": (*verdict.notes, *remarks),
            "remarks": tuple(remarks),
            "terms": terms,
            "runs": tuple(
                UsedRun(
                    name=m.folder.name,
                    part=part,
                    evidence_sha256=store.file_digest(m.folder.path / "evidence.json"),
                )
                for part, runs in (("baseline", before), ("trial", after))
                for m in runs
            ),
        }
    )


def evidence_of(runs: Sequence[Measured]) -> list[Evidence]:
    return [m.evidence for m in runs]


def _setting(
    terms: Terms, criteria: Criteria, before: Sequence[Measured], after: Sequence[Measured]
) -> Setting:
    change = after[0].record.change
    intervention = interventions.parse(change) if change else None
    short = short_window(criteria, evidence_of(before), evidence_of(after))
    return Setting(
        locked=tuple(intervention.locked_by(terms.locked)) if intervention else (),
        changes=intervention.size if intervention else 0,
        compound=bool(intervention and intervention.compound),
        differences=_differences(before, after),
        window_advice=_advice(criteria, before, after) if short else None,
    )


def _advice(criteria: Criteria, before: Sequence[Measured], after: Sequence[Measured]) -> str:
    """The flag and value that would make the shorter side's windows long enough."""
    needed = criteria.min_window
    short = before if sum(map(window_of, before)) < needed else after
    return window_advice(before[0].record.argv, short, needed)


def _differences(before: Sequence[Measured], after: Sequence[Measured]) -> tuple[str, ...]:
    """What of the surroundings differs between the first baseline run and any other run."""
    first = recorded(before[0].record)
    others = (*before[1:], *after)
    return tuple(dict.fromkeys(d for m in others for d in differences(first, recorded(m.record))))
