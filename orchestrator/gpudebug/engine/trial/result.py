"""A verdict as it is entered in the progress file: its runs, its lines, and whose change it is on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpudebug.core import progress
from gpudebug.core.errors import ProgressError
from gpudebug.core.statistics import numbers
from gpudebug.core.words import Status
from gpudebug.edges import store, templates
from gpudebug.engine.campaign.campaign import Setup
from gpudebug.engine.campaign.claims import under
from gpudebug.engine.campaign.measured_code import tested_change
from gpudebug.engine.campaign.progress_edit import splice
from gpudebug.engine.trial.judge import CRASH


def record_result(setup: Setup, number: int, verdict: Mapping[str, Any]) -> bool:
    """Splice a verdict into the progress file. A run that is there already changes nothing.

    False if it comes too late: the hypothesis is under another claim by now, or under none. Raises
    ProgressError if the entry's change is no longer the one that was tested.
    """
    runs = runs_of(verdict)
    block = result_block(verdict, runs, setup.workspace.scrub)
    status = Status(verdict["status"])
    kept: list[bool] = []

    def edit(document: progress.ProgressFile) -> bytes:
        listed = set(runs) <= set(document.hypothesis(number).runs)
        kept[:] = [listed or under(document, number, verdict.get("claim"))]
        if not kept[0]:
            return document.data
        _refuse_other_change(setup.workspace, document, number, verdict["change_digest"], runs)
        return progress.set_result(document, number, status, block)

    splice(setup, edit)
    return kept[0]


def runs_of(verdict: Mapping[str, Any]) -> list[str]:
    """Return the runs that were made for a verdict, in their order; the last one holds it."""
    made = (r["name"] for r in verdict["runs"] if r["part"] in ("trial", CRASH) or r["fresh"])
    return sorted(made, key=store.run_number)


def result_block(verdict: Mapping[str, Any], runs: Sequence[str], scrub: store.Scrub) -> str:
    """Return the lines of a Result as they are spliced into the progress file."""
    texts = {**numbers.result_fields(verdict), "notes": numbers.result_notes(verdict)}
    fields = {
        key.replace(" ", "_"): progress.harmless(scrub(text), limit=numbers.LONGEST)
        for key, text in texts.items()
    }
    return templates.render("result.md.j2", **fields, runs=runs)


def _refuse_other_change(
    workspace: store.Workspace,
    document: progress.ProgressFile,
    number: int,
    tested: str | None,
    runs: list[str],
) -> None:
    """A verdict belongs to the change that was tested, not to whatever has its number now."""
    entry = document.hypothesis(number)
    if tested_change(workspace, entry.intervention) != tested:
        raise ProgressError(
            f"hypothesis {number} has another change now than the one that {runs[-1]} tested; "
            "its result is not entered",
            file=document.file,
            line=entry.line,
            next="gpudebug next tests the new change; put the old one back to keep the result",
        )
