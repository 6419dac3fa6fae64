"""What is asked before the first run of a change that makes the model, or what it sees, smaller."""

from __future__ import annotations

from gpudebug.core.change.intervention import Intervention
from gpudebug.core.errors import CatalogueError, InterventionError
from gpudebug.core.progress import ProgressFile
from gpudebug.core.verdict.smaller import smaller
from gpudebug.core.words import WorkName
from gpudebug.edges import store
from gpudebug.engine.campaign.campaign import Baselines, Setup
from gpudebug.engine.campaign.confirmation import confirmed_of
from gpudebug.engine.campaign.measured_code import tested_change
from gpudebug.engine.run import adapters, catalogue

_CAUSE = "dl-redundant-frames"


def refuse_unexplained(
    setup: Setup, document: ProgressFile, baselines: Baselines, number: int, change: Intervention
) -> None:
    """Ask how a change that makes the training smaller by its own words is the same work.

    Only flags say so before a run. What code drops is judged by the losses, and by what reaches the model's
    parameters, of a run.
    """
    entry = document.hypothesis(number)
    found = question(setup, baselines, change, entry.cause)
    if found is None:
        return
    if confirmed_of(setup, number, tested_change(setup.workspace, entry.intervention)) is not None:
        return
    raise InterventionError(
        f"hypothesis {number}: {found}: a faster step with less work in it is no gain",
        file=str(setup.progress_path),
        line=entry.line,
        next=f"{settled_by(setup, baselines, number, change)}; or propose something else",
    )


def settled_by(setup: Setup, baselines: Baselines, number: int, change: Intervention) -> str:
    """Return what answers the question: a person, and of input a cause too."""
    person = f'a person says why it is the same work: gpudebug reopen {number} --because "WHY"'
    if question(setup, baselines, change, _CAUSE) is not None:
        return person
    return (
        f"if the model never reads what is dropped, write `- **Cause**: {_CAUSE}` into its entry, or {person}"
    )


def question(setup: Setup, baselines: Baselines, change: Intervention, cause: str | None) -> str | None:
    """Return what a change makes smaller; None if nothing, or if it is input and by the cause never read."""
    baseline = baselines.get("workload")
    evidence = baseline.evidence[-1] if baseline is not None and baseline.evidence else {}
    units = [rate.get("unit") for rate in evidence.get("work") or ()]
    config = setup.config
    return smaller(
        change,
        config.workload.argv(),
        evidence.get("printed") or {},
        synonyms=adapters.locks_of(setup.workspace.root, config.workload, config.locked, change.names),
        by_tokens=units[:1] == [WorkName.TOKENS] if config.work == "auto" else config.work == WorkName.TOKENS,
        unread=redundant(setup.workspace, cause) is not None,
    )


def redundant(workspace: store.Workspace, cause: str | None) -> str | None:
    """Return the cause, if it is about input that the model never reads."""
    if cause is None:
        return None
    try:
        known = catalogue.load(workspace.root).get(cause)
    except CatalogueError:
        return None
    return cause if known is not None and known.redundant else None
