"""`gpudebug reopen H`: a hypothesis is tested again, and its result is kept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpudebug.core import progress
from gpudebug.core.answers.hypotheses import ReopenAnswer
from gpudebug.core.errors import BusyError, GpudebugError, ProgressError, UsageError
from gpudebug.core.progress import HypothesisEntry
from gpudebug.core.words import Status
from gpudebug.engine.campaign import confirmation
from gpudebug.engine.campaign.campaign import Loaded
from gpudebug.engine.campaign.load import load
from gpudebug.engine.campaign.premises import entry_of, reason, why_of
from gpudebug.engine.campaign.progress_edit import splice


class NotReopened(GpudebugError):
    """A verdict whose premises still hold: the same test would bring the same answer."""

    code = "reopen"


def reopen(
    directory: Path, number: int, session: str | None = None, *, because: str | None = None
) -> ReopenAnswer:
    """Make hypothesis `number` UNTESTED, its Result an earlier one.

    What is decided is reopened only if its premises changed. An untested one stays as it is. `because` is
    how a person explains counts that do not fit together: the next test of this very change takes them.
    """
    loaded = load(directory, session)
    entry = entry_of(loaded, number)
    if because is not None:
        _confirm(loaded, entry, because)
    if entry.status is Status.UNTESTED:
        return _answer(loaded, entry, f"hypothesis {number} is UNTESTED already", already=True)
    why = reason(loaded, entry)
    if why is None:
        raise _refused(loaded, entry)

    def edit(document: progress.ProgressFile) -> bytes:
        now = document.hypothesis(number)
        if (now.status, now.runs, now.accepted) != (entry.status, entry.runs, entry.accepted):
            raise ProgressError(
                f"hypothesis {number} was changed in the meantime; it is not reopened",
                file=document.file,
                line=now.line,
                next=f"gpudebug show {number}",
            )
        return progress.reopen(document, number)

    splice(loaded, edit)
    if because is not None:
        why += f"; confirmed by a person: {because}"
    return _answer(loaded, entry, why, already=False)


def _confirm(loaded: Loaded, entry: HypothesisEntry, because: str) -> None:
    """Keep a person's word on counts of which the verdict says that they do not fit."""
    file, line, number = str(loaded.progress_path), entry.status_line or entry.line, entry.number
    if loaded.session is not None:
        raise NotReopened(
            f"session {loaded.session} cannot confirm counts that do not fit: that is a person's word",
            file=file,
            line=line,
            next=f'a person runs: gpudebug reopen {number} --because "WHY"',
        )
    text = progress.harmless(loaded.workspace.scrub(" ".join(because.split())), limit=confirmation.LONGEST)
    if not text.strip():
        raise UsageError("--because is empty", next='give a reason: --because "WHY"')
    judged = loaded.trials[number]
    verdict = judged.verdict if judged.verified and judged.verdict else {}
    counts = unexplained(verdict)
    if counts is None:
        raise NotReopened(
            f"hypothesis {number} has no counts to confirm: --because explains those that do not fit",
            file=file,
            line=line,
            next="gpudebug next" if entry.status is Status.UNTESTED else f"gpudebug reopen {number}",
        )
    confirmation.confirm(loaded, number, verdict, text, counts)


def unexplained(verdict: Mapping[str, Any]) -> str | None:
    """What does not fit between the counts of a verdict's runs."""
    counts = (g.get("unexplained") for g in verdict.get("gates", ()) if isinstance(g, Mapping))
    return next((str(one) for one in counts if one), None)


def _refused(loaded: Loaded, entry: HypothesisEntry) -> GpudebugError:
    file, line = str(loaded.progress_path), entry.status_line or entry.line
    name = f"hypothesis {entry.number}"
    if entry.status is Status.TESTING:
        held = f" ({entry.status_note})" if entry.status_note else ""
        return BusyError(f"{name} is being tested{held}", file=file, line=line, next="gpudebug status")
    if loaded.order(entry) is not None:
        return NotReopened(
            f"{name} is accepted: the baseline has its change",
            file=file,
            line=line,
            next="propose the change that reverts it",
        )
    return NotReopened(
        f"{name} is {entry.status} ({why_of(loaded, entry)}), and nothing has changed since it was measured",
        file=file,
        line=line,
        next="propose something else; accepting another hypothesis, or changing the workload or its code, "
        "would reopen it",
    )


def _answer(loaded: Loaded, entry: HypothesisEntry, why: str, *, already: bool) -> ReopenAnswer:
    return ReopenAnswer(
        campaign=loaded.config.campaign,
        hypothesis=entry.number,
        title=entry.title,
        was=entry.status,
        already=already,
        earlier_runs=tuple(dict.fromkeys((*entry.runs, *entry.earlier_runs))),
        why=why,
        files=(str(loaded.progress_path),),
    )
