"""`gpudebug accept H`: a change that was validated becomes part of what the baseline measures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpudebug.core import progress
from gpudebug.core.answers.hypotheses import AcceptAnswer
from gpudebug.core.campaign import accepted_changes
from gpudebug.core.errors import BusyError, GpudebugError, ProgressError
from gpudebug.core.progress import HypothesisEntry, ProgressFile
from gpudebug.core.statistics import numbers
from gpudebug.core.words import Status
from gpudebug.edges import store
from gpudebug.engine.campaign import acceptance, settings
from gpudebug.engine.campaign.campaign import Entries, Loaded, MeasuredCode, Setup
from gpudebug.engine.campaign.load import load
from gpudebug.engine.campaign.patch_files import refuse_unless_applies
from gpudebug.engine.campaign.premises import digest_of, entry_of, standing_against, why_of
from gpudebug.engine.campaign.progress_edit import splice
from gpudebug.engine.campaign.verdicts import REMEDY
from gpudebug.engine.trial.as_baseline import taken_over
from gpudebug.engine.verify import verify


class NotAccepted(GpudebugError):
    """What was never validated by runs cannot become part of the baseline."""

    code = "accept"


def accept(
    directory: Path, number: int, session: str | None = None, *, terms_differ: bool = False
) -> AcceptAnswer:
    """Note in the progress file and in git's folder that hypothesis `number` is accepted.

    From then on the effective workload and tree have its change, and the runs of its trial are the baseline;
    if anything changed since they were made, the baseline is outdated. Neither gpudebug.yaml nor the checkout
    is touched. One that is accepted already stays as it is. With
    `terms_differ` a person accepts a verdict by weaker terms than the pinned ones.
    """
    loaded = load(directory, session)
    entry = entry_of(loaded.setup.progress_path, loaded.entries.document, number)
    if terms_differ and session is not None:
        raise NotAccepted(
            f"session {session} cannot accept a verdict by weaker terms: that is a person's choice",
            file=str(loaded.setup.progress_path),
            next=f"a person runs: gpudebug accept {number} --terms-differ",
        )
    _refuse(loaded.setup, loaded.entries, entry, terms_differ)
    if standing_against(loaded.setup, loaded.entries, entry.number) is not None and (
        verdict := digest_of(loaded.setup.workspace, loaded.entries.document, number)
    ):
        settings.confirm(loaded.setup, loaded.history.records, number, verdict)
    order = loaded.entries.acceptances.order(entry)
    if order is not None:
        acceptance.settle(loaded.setup, loaded.entries)
        return _answer(loaded, entry, order, already=True)
    (step,) = accepted_changes.changes(loaded.entries.document, [entry])
    accepted_changes.effective(loaded.setup.config.workload, [step], loaded.setup.config.allowed)
    if step.intervention.patch is not None:
        refuse_unless_applies(loaded.setup, loaded.code, step.intervention.patch)
    notes = _notes(loaded.entries, loaded.code, entry)
    baseline, said = taken_over(loaded, entry)
    order = 1

    def edit(document: progress.ProgressFile) -> bytes:
        nonlocal order
        now = document.hypothesis(number)
        if (now.status, now.intervention, now.runs) != (entry.status, entry.intervention, entry.runs):
            raise ProgressError(
                f"hypothesis {number} was changed in the meantime; it is not accepted",
                file=document.file,
                line=now.line,
                next=f"gpudebug show {number}",
            )
        order = now.accepted or progress.next_acceptance(document)
        text = progress.set_accepted(document, number, order)
        if baseline is None:
            return text
        return progress.set_baseline(progress.parse(text, document.file), "workload", baseline)

    splice(loaded.setup, edit)
    acceptance.record(loaded.setup, loaded.entries, number, order)
    return _answer(loaded, entry, order, (said, *notes), measured=baseline is not None)


def _refuse(setup: Setup, entries: Entries, entry: HypothesisEntry, terms_differ: bool) -> None:
    """Only a verdict that has its runs moves the baseline."""
    file, line = str(setup.progress_path), entry.status_line or entry.line
    name = f"hypothesis {entry.number}"
    if entry.status is Status.VALIDATED and entries.trials[entry.number].verified:
        _refuse_doubted(setup, entries, entry, terms_differ)
        _refuse_underived(setup.workspace, entry)
        return
    if entry.status is Status.UNTESTED:
        raise NotAccepted(f"{name} is not tested yet", file=file, line=line, next="gpudebug next")
    if entry.status is Status.TESTING:
        held = f" ({entry.status_note})" if entry.status_note else ""
        raise BusyError(f"{name} is being tested{held}", file=file, line=line, next="gpudebug status")
    if entry.status is Status.VALIDATED:
        raise NotAccepted(
            f"{name} is VALIDATED in the progress file alone: UNVERIFIED by its runs",
            file=file,
            line=line,
            next=f"gpudebug verify {entry.number}",
        )
    raise NotAccepted(
        f"{name} is {entry.status} ({why_of(entries.trials, entry)}), "
        "and only a VALIDATED one can be accepted",
        file=file,
        line=line,
        next=f"gpudebug show {entry.number}",
    )


def _refuse_doubted(setup: Setup, entries: Entries, entry: HypothesisEntry, terms_differ: bool) -> None:
    """Refuse a verdict by weaker terms, unless a person means it, one on recordings, and one that came with
    the repository."""
    against = standing_against(setup, entries, entry.number)
    if against is None:
        return
    found, file, line = entries.trials[entry.number].doubts, str(setup.progress_path), entry.line
    problem = f"hypothesis {entry.number} is VALIDATED, and that does not count: {against}"
    again = f"gpudebug reopen {entry.number}, then gpudebug next"
    if found.brought:
        raise NotAccepted(problem, file=file, line=line, next=f"{again}; if they are yours, {REMEDY}")
    if found.replayed and not setup.compared.replay:
        raise NotAccepted(problem, file=file, line=line, next=again)
    if found.untold:
        again = f"list {'it' if len(found.untold) == 1 else 'them'} as `gpudebug verify {entry.number}` says"
    if not terms_differ:
        advice = f"{again}; or, if you mean it, gpudebug accept {entry.number} --terms-differ"
        raise NotAccepted(problem, file=file, line=line, next=advice)


def _refuse_underived(workspace: store.Workspace, entry: HypothesisEntry) -> None:
    """Refuse a verdict that does not follow from its runs' own samples and logs."""
    found = verify(workspace.root, entry.number)
    # An Accepted line that was written by hand is what this command makes good.
    # What is listed nowhere was refused before, unless a person means it.
    against = [p for p in found.problems if p.field not in ("accepted", "unlisted")]
    if against:
        first = against[0]
        raise NotAccepted(
            f"the verdict of hypothesis {entry.number} does not follow from its evidence ({first.field})",
            file=first.file,
            line=first.line,
            next=f"gpudebug verify {entry.number}",
        )


def _answer(
    loaded: Loaded,
    entry: HypothesisEntry,
    order: int,
    notes: Sequence[str] = (),
    *,
    measured: bool = False,
    already: bool = False,
) -> AcceptAnswer:
    accepted = f"hypothesis {entry.number} is accepted"
    still = accepted if measured else f"{accepted}: record the baseline with its change"
    return AcceptAnswer(
        campaign=loaded.setup.config.campaign,
        hypothesis=entry.number,
        title=entry.title,
        intervention=entry.intervention,
        order=order,
        already=already,
        notes=tuple(notes),
        why=f"{accepted} already" if already else still,
        command=_command(loaded.setup, loaded.entries.document, loaded.code, entry),
        files=(str(loaded.setup.progress_path),),
    )


def _command(setup: Setup, document: ProgressFile, code: MeasuredCode, entry: HypothesisEntry) -> str:
    """Return the workload with all that is accepted, this hypothesis included."""
    step = accepted_changes.changes(document, [entry])
    workload = accepted_changes.effective(setup.config.workload, step, setup.config.allowed)
    return setup.workspace.scrub(accepted_changes.spoken(workload, [*code.stack, *step]))


def _notes(entries: Entries, code: MeasuredCode, entry: HypothesisEntry) -> list[str]:
    """What is to be known of this acceptance: what its verdict is by, what it replaces, what stays to do."""
    (step,) = accepted_changes.changes(entries.document, [entry])
    found = entries.trials[entry.number].doubts
    notes = [line if line in found.untold else f"its verdict is by {line}" for line in found.against]
    if numbers.throughput_source(entries.trials[entry.number].verdict) == "log":
        notes.append("its throughput is by the program's own word: no probe counted its steps")
    for earlier in code.stack:
        names = [n for n in step.intervention.names if earlier.intervention.touches(n)]
        if names:
            notes.append(f"it changes {', '.join(names)}, as hypothesis {earlier.hypothesis} did before it")
    if step.intervention.patch is not None:
        notes.append("your checkout is as it was; `gpudebug export` writes what was accepted as patches")
    return notes
