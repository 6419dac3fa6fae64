"""Verdicts in runs/ that no entry lists: tests whose answers are listed nowhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from gpudebug.core.change.intervention import parse as parse_intervention
from gpudebug.core.config import Workload
from gpudebug.core.errors import InterventionError
from gpudebug.core.progress import HypothesisEntry, ProgressFile
from gpudebug.core.words import Status
from gpudebug.edges import store
from gpudebug.engine.campaign.change_files import tested_change
from gpudebug.engine.campaign.files import stored_verdict

UNLISTED = "tested before"


class Unlisted(NamedTuple):
    """A sealed verdict: its run, the hypothesis and change that it is on, and what it says."""

    run: str
    hypothesis: int
    status: str
    change: str | None
    digest: str | None

    @property
    def text(self) -> str:
        return (
            f"runs/{self.run} has a verdict ({self.status}, hypothesis {self.hypothesis}) that the progress "
            "file does not mention"
        )


def judged_runs(
    workspace: store.Workspace, campaign: str, records: Mapping[str, Mapping[str, Any]]
) -> tuple[str, ...]:
    """Return the sealed runs of a campaign that hold a verdict. `records` has the run.json of each run."""
    found = (
        (name, workspace.run(name))
        for name, record in records.items()
        if record.get("campaign") == campaign and record.get("hypothesis") is not None
    )
    return tuple(name for name, run in found if run.sealed and run.has("verdict.json"))


def unlisted(
    workspace: store.Workspace,
    document: ProgressFile,
    judged: Iterable[str],
    records: Mapping[str, Mapping[str, Any]],
) -> tuple[Unlisted, ...]:
    """Return those of the judged runs that no entry has as its Result or an earlier one.

    What a TESTING entry waits for is entered by the next `next`.
    """
    listed = {name for h in document.hypotheses for name in h.runs}
    listed |= {name for h in document.hypotheses for old in h.earlier_results for name in old.runs}
    testing = {h.number for h in document.hypotheses if h.status is Status.TESTING}
    found = []
    for name in judged:
        verdict = None if name in listed else stored_verdict(workspace.run(name))
        if verdict is not None and verdict["hypothesis"] not in testing:
            change, digest = _change(records, name, verdict), verdict.get("change_digest")
            found.append(Unlisted(name, verdict["hypothesis"], str(verdict["status"]), change, digest))
    return tuple(found)


def _change(records: Mapping[str, Mapping[str, Any]], name: str, verdict: Mapping[str, Any]) -> str | None:
    """Return the change that a verdict is on, as a run of its trial records it."""
    used = (name, *(str(run["name"]) for run in verdict["runs"] if run["part"] == "trial"))
    changes = (records.get(run, {}).get("change") for run in used)
    return next((str(text) for text in changes if text), None)


def tested_before(
    workspace: store.Workspace, entry: HypothesisEntry, found: Iterable[Unlisted], workload: Workload
) -> tuple[Unlisted, ...]:
    """Return those on an entry's own change, however it is spelled now."""
    return tuple(one for one in found if _same(workspace, entry, one, workload))


def _same(workspace: store.Workspace, entry: HypothesisEntry, one: Unlisted, workload: Workload) -> bool:
    if one.digest is not None and tested_change(workspace, entry.intervention) == one.digest:
        return True
    try:
        mine, other = (parse_intervention(text) for text in (entry.intervention or "", one.change or ""))
    except InterventionError:
        return False
    if mine.patch is not None or other.patch is not None:
        return False
    return mine.same_effect(other, workload.argv(), workload.env)
