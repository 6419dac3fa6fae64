"""Sealed runs that no entry lists yet: what a cut-off recording or trial has measured already."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpudebug.core.verdict import is_infrastructure
from gpudebug.core.words import Outcome
from gpudebug.edges.store import run_number
from gpudebug.engine.bench import stored_run
from gpudebug.engine.campaign import Loaded
from gpudebug.engine.measure import Measured
from gpudebug.engine.surroundings import Surroundings, differences, recorded


def reusable(
    loaded: Loaded,
    role: str,
    *,
    newer_than: int,
    surroundings: Surroundings,
    identity: Mapping[str, str],
    hypothesis: int | None = None,
    change_digest: str | None = None,
) -> list[Measured]:
    """Runs of `role` with a number above `newer_than`, of this code and command, in these surroundings.

    Older ones belong to a recording or trial that has ended. A baseline's runs must have completed; a
    trial's may have failed, but not by the machinery's fault.
    """
    kept = []
    for name, record in loaded.records.items():
        folder = loaded.workspace.run(name)
        said = (record.get("role"), record.get("campaign"), record.get("hypothesis"))
        if (
            said == (role, loaded.config.campaign, hypothesis)
            and record.get("change_digest") == change_digest
            and record.get("identity") == dict(identity)
            and run_number(name) > newer_than
            and folder.sealed
            and not folder.has("verdict.json")
        ):
            measured = stored_run(loaded.workspace, name)
            if _counts(measured) and not differences(recorded(measured.record), surroundings):
                kept.append(measured)
    return kept


def _counts(m: Measured) -> bool:
    if m.record.role.startswith("baseline-"):
        return m.evidence.outcome is Outcome.COMPLETED
    return not is_infrastructure(m.evidence)


def newest(names: Iterable[str]) -> int:
    """The highest number among run folders' names, 0 for none."""
    return max((run_number(name) for name in names), default=0)
