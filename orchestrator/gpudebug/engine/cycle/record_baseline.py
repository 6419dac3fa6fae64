"""`gpudebug baseline`: record a baseline because somebody asks for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gpudebug.core.answers.next import RecordedBaseline
from gpudebug.core.errors import UsageError
from gpudebug.engine.run.live_line import Report
from gpudebug.engine.run.prepare import Cycle, claimed_campaign
from gpudebug.engine.status.summary import record
from gpudebug.engine.trial import baseline, recover


def record_baseline(
    directory: Path, role: str | None, report: Report, session: str | None = None
) -> RecordedBaseline:
    """`gpudebug baseline`: record one baseline now, valid or not; without a role, each that is needed."""
    with claimed_campaign(directory, report, "gpudebug baseline", session, pins=True) as claimed:
        cycle = recover.recovered(claimed)
        roles = (role,) if role else _needed(cycle)
        if not set(roles) <= set(cycle.setup.roles):
            raise UsageError(
                f"this campaign has no {role}: baselines are {', '.join(cycle.setup.roles)}",
                file=str(cycle.setup.workspace.config),
                next="name one of them, or add `reference:` to gpudebug.yaml",
            )
        answers = [baseline.record(cycle, r, "asked for by `gpudebug baseline`") for r in roles]
        record(cycle.setup.workspace.root, session, cycle.command)
    return replace(answers[-1], baselines=tuple(answers))


def _needed(cycle: Cycle) -> tuple[str, ...]:
    stale = tuple(b.role for b in cycle.loaded.history.baselines.values() if b.why is not None)
    return stale or cycle.setup.roles
