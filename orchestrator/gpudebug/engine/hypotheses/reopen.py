"""`gpudebug reopen H`: a hypothesis is tested again, and its result is kept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpudebug.core import progress
from gpudebug.core.answers.hypotheses import ReopenAnswer
from gpudebug.core.errors import BusyError, GpudebugError, ProgressError, UsageError
from gpudebug.core.progress import HypothesisEntry
from gpudebug.core.words import VERDICTS, Status
from gpudebug.engine.campaign import claims, confirmation
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

    What is decided is reopened only if its premises changed, or if a person says why (`because`). An untested
    one stays as it is. `because` is also how a person explains counts that do not fit together: the next test
    of this very change takes them.
    """
    loaded = load(directory, session)
    entry = entry_of(loaded, number)
    word = _word(loaded, entry, because) if because is not None else None
    if entry.status is Status.UNTESTED:
        return _answer(loaded, entry, f"hypothesis {number} is UNTESTED already", already=True)
    why = reason(loaded, entry) or (word if _decided(loaded, entry) else None)
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
    if word is not None and word not in why:
        why += f"; {word}"
    return _answer(loaded, entry, why, already=False)


def more(directory: Path, number: int, session: str | None = None) -> str:
    """Let the next test of an INCONCLUSIVE hypothesis go on from all its runs, with as many again.

    A session may have its own hypothesis go on, and no other one. What goes on, in a line. Raises NotReopened
    with the reason if it may not.
    """
    loaded = load(directory, session)
    entry = entry_of(loaded, number)
    file, line = str(loaded.progress_path), entry.status_line or entry.line
    if entry.status is not Status.INCONCLUSIVE or not loaded.trials[number].verified:
        raise NotReopened(
            f"hypothesis {number} is {entry.status}, and --more goes on with one that runs left INCONCLUSIVE",
            file=file,
            line=line,
            next=f"gpudebug show {number}",
        )
    made = {loaded.records[name].get("session") for name in entry.runs if name in loaded.records}
    if session is not None and session not in made:
        whose = next((f"session {one}" for one in sorted(filter(None, made))), "a person")
        raise NotReopened(
            f"hypothesis {number} was tested by {whose}, and this is session {session}: it goes on with "
            "its own hypothesis alone",
            file=file,
            line=line,
            next=f"a person runs: gpudebug next --more {number}",
        )
    splice(loaded, lambda document: progress.reopen(document, number))
    claims.take(load(directory, session), number)
    return f"hypothesis {number} goes on from its {len(entry.runs)} runs"


def _decided(loaded: Loaded, entry: HypothesisEntry) -> bool:
    return entry.status in VERDICTS and loaded.order(entry) is None


def _word(loaded: Loaded, entry: HypothesisEntry, because: str) -> str:
    """A person's word, kept if it explains counts of which the verdict says that they do not fit."""
    file, line, number = str(loaded.progress_path), entry.status_line or entry.line, entry.number
    if loaded.session is not None:
        raise NotReopened(
            f"session {loaded.session} cannot say --because: that is a person's word",
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
    if counts is not None:
        confirmation.confirm(loaded, number, verdict, text, counts)
        return f"confirmed by a person: {text}"
    if entry.status in VERDICTS:
        return f"a person says: {text}"
    raise NotReopened(
        f"hypothesis {number} has no verdict to reopen, and no counts to confirm",
        file=file,
        line=line,
        next="gpudebug next" if entry.status is Status.UNTESTED else "gpudebug status",
    )


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
        'would reopen it, and so does a person\'s --because "WHY"',
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
