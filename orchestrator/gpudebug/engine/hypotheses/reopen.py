"""`gpudebug reopen H`: a hypothesis is tested again, and its result is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpudebug.core import progress
from gpudebug.core.answers.hypotheses import ReopenAnswer
from gpudebug.core.campaign.decide import Action, decide, over
from gpudebug.core.errors import BusyError, GpudebugError, ProgressError, UsageError
from gpudebug.core.progress import HypothesisEntry, ProgressFile
from gpudebug.core.progress import claims as progress_claims
from gpudebug.core.words import VERDICTS, Status
from gpudebug.edges.store import leases
from gpudebug.engine.campaign import claims, confirmation
from gpudebug.engine.campaign.campaign import Baselines, Entries, Loaded, Setup
from gpudebug.engine.campaign.load import load
from gpudebug.engine.campaign.premises import entry_of, reason, why_of
from gpudebug.engine.campaign.progress_edit import splice
from gpudebug.engine.run.smaller import question


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
    entry = entry_of(loaded.setup.progress_path, loaded.entries.document, number)
    word = (
        _word(loaded.setup, loaded.entries, loaded.history.baselines, entry, because)
        if because is not None
        else None
    )
    if entry.status is Status.UNTESTED:
        return _answer(loaded.setup, entry, word or f"hypothesis {number} is UNTESTED already", already=True)
    why = reason(loaded.setup, loaded.entries, loaded.history, entry) or (
        word if _decided(loaded.entries, entry) else None
    )
    if why is None:
        raise _refused(loaded.setup.progress_path, loaded.entries, entry)
    splice(loaded.setup, lambda document: _reopened(document, entry))
    if word is not None and word not in why:
        why += f"; {word}"
    return _answer(loaded.setup, entry, why, already=False)


def _reopened(document: progress.ProgressFile, entry: HypothesisEntry) -> bytes:
    """Return the file with `entry` reopened. ProgressError if it was edited since it was read."""
    now = document.hypothesis(entry.number)
    if (now.status, now.runs, now.accepted) != (entry.status, entry.runs, entry.accepted):
        raise ProgressError(
            f"hypothesis {entry.number} was changed in the meantime; it is not reopened",
            file=document.file,
            line=now.line,
            next=f"gpudebug show {entry.number}",
        )
    return progress.reopen(document, entry.number)


def refuse_decided(loaded: Loaded, number: int) -> str:
    """Return that a person chose this hypothesis. NotReopened if it does not wait for a test."""
    entry = entry_of(loaded.setup.progress_path, loaded.entries.document, number)
    if entry.status is Status.UNTESTED or goes_on(loaded.setup, loaded.entries.document, number):
        return f"hypothesis {number} was chosen"
    open_ = entry.status is Status.INCONCLUSIVE
    again = f"gpudebug next --more {number}" if open_ else f"gpudebug show {number}"
    file, line = str(loaded.setup.progress_path), entry.status_line or entry.line
    raise NotReopened(
        f"hypothesis {number} is {entry.status}: it does not wait for a test",
        file=file,
        line=line,
        next=again,
    )


def goes_on(setup: Setup, document: ProgressFile, number: int) -> bool:
    """Tell whether the caller is testing this hypothesis already."""
    held = progress_claims.on(entry_of(setup.progress_path, document, number))
    return held is not None and held.session == setup.session


def more(loaded: Loaded, number: int) -> Action | None:
    """Claim an INCONCLUSIVE hypothesis for a test that goes on from all its runs, with as many again.

    For a caller that holds the campaign. If the campaign is over, what `next` decides instead, and nothing is
    written. A session may have its own hypothesis go on, and no other one. Raises NotReopened with the
    reason if it may not.
    """
    session, entry = (
        loaded.setup.session,
        entry_of(loaded.setup.progress_path, loaded.entries.document, number),
    )
    file, line = str(loaded.setup.progress_path), entry.status_line or entry.line
    if entry.status is not Status.INCONCLUSIVE or not loaded.entries.trials[number].verified:
        raise NotReopened(
            f"hypothesis {number} is {entry.status}, and --more goes on with one that runs left INCONCLUSIVE",
            file=file,
            line=line,
            next=f"gpudebug show {number}",
        )
    made = {
        loaded.history.records[name].get("session") for name in entry.runs if name in loaded.history.records
    }
    if session is not None and session not in made:
        whose = next((f"session {one}" for one in sorted(filter(None, made))), "a person")
        raise NotReopened(
            f"hypothesis {number} was tested by {whose}, and this is session {session}: it goes on with "
            "its own hypothesis alone",
            file=file,
            line=line,
            next=f"a person runs: gpudebug next --more {number}",
        )
    # Reopened, it does not count as tested.
    others = tuple(h for h in loaded.campaign.hypotheses if h.number != number)
    campaign = replace(loaded.campaign, hypotheses=others)
    if over(campaign) is not None:
        return decide(campaign)
    claim = claims.new_claim(loaded.setup, loaded.entries, number)

    def edit(document: progress.ProgressFile) -> bytes:
        reopened = progress.parse(_reopened(document, entry), document.file)
        return progress.set_testing(reopened, number, claim.note)

    # The lease first: TESTING without one is taken for a test that was cut off.
    leases.take(loaded.setup.workspace.leases, number, claim.session, claim.since)
    splice(loaded.setup, edit)
    return None


def _decided(entries: Entries, entry: HypothesisEntry) -> bool:
    return entry.status in VERDICTS and entries.order(entry) is None


def _word(setup: Setup, entries: Entries, baselines: Baselines, entry: HypothesisEntry, because: str) -> str:
    """Return a person's word, kept if it explains counts of which the verdict says that they do not fit."""
    file, line, number = str(setup.progress_path), entry.status_line or entry.line, entry.number
    if setup.session is not None:
        raise NotReopened(
            f"session {setup.session} cannot say --because: that is a person's word",
            file=file,
            line=line,
            next=f'a person runs: gpudebug reopen {number} --because "WHY"',
        )
    text = progress.harmless(
        setup.workspace.scrub_prose(" ".join(because.split())), limit=confirmation.LONGEST
    )
    if not text.strip():
        raise UsageError("--because is empty", next='give a reason: --because "WHY"')
    judged = entries.trials[number]
    verdict = judged.verdict if judged.verified and judged.verdict else {}
    counts = unexplained(verdict)
    if counts is None and (asked := _asked(setup, entries, baselines, entry)):
        verdict, counts = {"change_digest": judged.change}, asked
    if counts is not None:
        confirmation.confirm(setup, number, verdict, text, counts)
        return f"confirmed by a person: {text}"
    if entry.status in VERDICTS:
        return f"a person says: {text}"
    raise NotReopened(
        f"hypothesis {number} has no verdict to reopen, and no counts to confirm",
        file=file,
        line=line,
        next="gpudebug next" if entry.status is Status.UNTESTED else "gpudebug status",
    )


def _asked(setup: Setup, entries: Entries, baselines: Baselines, entry: HypothesisEntry) -> str | None:
    """Return what `next` asks of an untested hypothesis before it runs it."""
    change = entries.change_of(entry)
    if entry.status is not Status.UNTESTED or change is None:
        return None
    return question(setup, baselines, change, entry.cause)


def unexplained(verdict: Mapping[str, Any]) -> str | None:
    """Return what does not fit between the counts of a verdict's runs."""
    counts = (g.get("unexplained") for g in verdict.get("gates", ()) if isinstance(g, Mapping))
    return next((str(one) for one in counts if one), None)


def _refused(progress_path: Path, entries: Entries, entry: HypothesisEntry) -> GpudebugError:
    file, line = str(progress_path), entry.status_line or entry.line
    name = f"hypothesis {entry.number}"
    if entry.status is Status.TESTING:
        held = f" ({entry.status_note})" if entry.status_note else ""
        return BusyError(f"{name} is being tested{held}", file=file, line=line, next="gpudebug status")
    if entries.order(entry) is not None:
        return NotReopened(
            f"{name} is accepted: the baseline has its change",
            file=file,
            line=line,
            next="propose the change that reverts it",
        )
    return NotReopened(
        f"{name} is {entry.status} ({why_of(entries.trials, entry)}), "
        "and nothing has changed since it was measured",
        file=file,
        line=line,
        next="propose something else; accepting another hypothesis, or changing the workload or its code, "
        'would reopen it, and so does a person\'s --because "WHY"',
    )


def _answer(setup: Setup, entry: HypothesisEntry, why: str, *, already: bool) -> ReopenAnswer:
    return ReopenAnswer(
        campaign=setup.config.campaign,
        hypothesis=entry.number,
        title=entry.title,
        was=entry.status,
        already=already,
        earlier_runs=tuple(dict.fromkeys((*entry.runs, *entry.earlier_runs))),
        why=why,
        files=(str(setup.progress_path),),
    )
