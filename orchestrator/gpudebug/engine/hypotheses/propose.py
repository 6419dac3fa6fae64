"""Adds UNTESTED hypotheses to the progress file: one, or one for each value of a sweep."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from gpudebug.core import progress
from gpudebug.core.answers.hypotheses import ProposeAnswer, ProposedHypothesis
from gpudebug.core.campaign import accepted_changes
from gpudebug.core.catalogue import Cause
from gpudebug.core.catalogue.signals import described, tried
from gpudebug.core.change import intervention as interventions
from gpudebug.core.change import sweep
from gpudebug.core.change.intervention import Intervention, SingleChange
from gpudebug.core.errors import GpudebugError, InterventionError, NoEffect, UsageError
from gpudebug.core.progress import ProgressFile
from gpudebug.core.words import Status
from gpudebug.edges import store, templates
from gpudebug.engine.campaign import patch_files, premises
from gpudebug.engine.campaign.campaign import Entries, History, Loaded, MeasuredCode, Setup
from gpudebug.engine.campaign.changes import refuse_before_running
from gpudebug.engine.campaign.files import training_environment
from gpudebug.engine.campaign.load import load
from gpudebug.engine.campaign.premises import why_of
from gpudebug.engine.campaign.progress_edit import splice
from gpudebug.engine.hypotheses import doors
from gpudebug.engine.run import adapters
from gpudebug.engine.run.smaller import question, settled_by

_TITLE = 200
_TEXT = 2000
_STANDING = "the command has it already"


class Duplicate(GpudebugError):
    """The same change was proposed before."""

    code = "duplicate"


class Proposal(NamedTuple):
    """A hypothesis that is to be added; `change` is None if it is not set yet."""

    title: str
    description: str
    method: str
    change: Intervention | None = None
    cause: str | None = None


def propose(
    directory: Path,
    *,
    title: str,
    description: str,
    method: str,
    change: Intervention | None = None,
    cause: str | None = None,
    session: str | None = None,
    strict: bool = False,
) -> ProposeAnswer:
    """Append one hypothesis. Refused: a locked knob, several changes unmarked, what was tested before.

    `cause` is the id of the catalogue's root cause that it tests: what is not given of its words is the
    catalogue's. `strict` refuses what has no description or method.
    """
    if not progress.harmless(title, limit=_TITLE):
        raise UsageError("a hypothesis needs a title", next="add --title 'What idles the GPU'")
    loaded = load(directory, session)
    if cause is not None:
        known = _cause(loaded.setup.workspace, cause)
        description, method = description or described(known), method or tried(known)
    notes = doors.missing_words({"description": description, "method": method}, strict=strict)
    return add(loaded, Proposal(title, description, method, change, cause), notes=notes)


def add(
    loaded: Loaded,
    proposal: Proposal,
    recheck: Callable[[progress.ProgressFile], None] = lambda document: None,
    *,
    notes: Sequence[str] = (),
) -> ProposeAnswer:
    """Append a hypothesis to the progress file. Refused as `refuse` says.

    `recheck` may refuse it at the moment of the write, by the file as it is then: two may propose at once.
    """
    change, spelled = in_words_of(loaded.setup, proposal.change)
    refuse(loaded, change)
    notes = [*notes, *spelled, *doors.unknown_flags(loaded.setup, loaded.history.baselines, change)]
    title, description, method = (_said(loaded.setup.workspace, text) for text in proposal[:3])
    number = 0

    def edit(document: progress.ProgressFile) -> bytes:
        nonlocal number
        if change is not None:
            _refuse_tested(loaded.setup, loaded.entries, loaded.history, document, change)
        recheck(document)
        number = progress.next_number(document)
        entry = _entry(number, title, description, method, change, proposal.cause)
        return progress.add_hypothesis(document, entry)

    splice(loaded.setup, edit)
    if change is not None and (
        asked := question(loaded.setup, loaded.history.baselines, change, proposal.cause)
    ):
        notes.append(f"{asked}: {settled_by(loaded.setup, loaded.history.baselines, number, change)}")
    added = [_added(number, title, change, proposal.cause)]
    alike = doors.likenesses(
        loaded.setup, loaded.entries.document, title, description, change, proposal.cause
    )
    return _answer(loaded.setup, added, [*notes, *alike])


def in_words_of(setup: Setup, change: Intervention | None) -> tuple[Intervention | None, list[str]]:
    """Return the change with its flags named as the command names them, and a note on each that was not."""
    if change is None:
        return None, []
    workload = setup.config.workload
    known = accepted_changes.located(change, workload)
    spelled = known.spelled(workload.argv(), adapters.synonyms_of(setup.workspace.root, workload))
    pairs = zip(known.names, spelled.names, strict=True)
    moved = [f"{c.bare} is of the server" for c in known.changes if c.of_server and c not in change.changes]
    return spelled, [
        *moved,
        *(f"the command spells {asked} as {name}" for asked, name in pairs if asked != name),
    ]


def refuse(loaded: Loaded, change: Intervention | None) -> None:
    """Raise for a change that was tested or accepted before, that is locked, or that changes nothing."""
    if change is not None:
        _refuse_tested(loaded.setup, loaded.entries, loaded.history, loaded.entries.document, change)
        _refuse_accepted(loaded.setup, loaded.code, change)
        _check(loaded.setup, loaded.entries.document, loaded.code, change)


def _cause(workspace: store.Workspace, cause: str) -> Cause:
    """Raises UsageError, naming the nearest one, for a cause that the catalogue does not have."""
    from gpudebug.engine.run.catalogue import load as load_catalogue

    return load_catalogue(workspace.root).cause(cause)


def propose_sweep(
    directory: Path,
    text: str,
    *,
    title: str = "",
    description: str = "",
    method: str = "",
    session: str | None = None,
    strict: bool = False,
) -> ProposeAnswer:
    """Append one hypothesis for each value of `--sweep TEXT`, all in one splice or none.

    A value that the command has already, or that a hypothesis tests, is left out and named. Raises
    Duplicate if none is left, InterventionError for a locked knob or a text that is not a sweep.
    """
    loaded = load(directory, session)
    missing = doors.missing_words({"description": description, "method": method}, strict=strict)
    asked, spelled = _sweep(loaded.setup, text)
    spelled = [
        *missing,
        *spelled,
        *doors.unknown_flags(loaded.setup, loaded.history.baselines, asked.changes[0][1]),
    ]
    title, description, method = (
        _said(loaded.setup.workspace, text) for text in (title, description, method)
    )
    workload = loaded.setup.config.workload
    server = loaded.setup.config.server
    now = sweep.Standing(
        workload.argv(),
        training_environment(workload),
        server.argv() if server else (),
        server.env if server else {},
    )
    standing = {v for v, change in asked.changes if now.has(change.changes[0])}
    for value, change in asked.changes:
        if value not in standing:
            _check(loaded.setup, loaded.entries.document, loaded.code, change)
    added: list[ProposedHypothesis] = []
    notes: list[str] = []

    def edit(document: progress.ProgressFile) -> bytes:
        added.clear()
        notes.clear()
        for value, change in asked.changes:
            twin = _twin(loaded.setup, document, change, {})
            if value in standing or twin is not None:
                why = f"it is hypothesis {twin.number} already ({twin.status})" if twin else _STANDING
                notes.append(f"{asked.name}={value} is left out: {why}")
                continue
            number = progress.next_number(document)
            named = _value_title(title, change)
            added.append(_added(number, named, change))
            entry = _entry(number, named, description, method, change)
            document = progress.parse(progress.add_hypothesis(document, entry), document.file)
        if not added:
            raise Duplicate(
                f"nothing is left of the sweep: {'; '.join(notes)}",
                file=document.file,
                next="gpudebug status, then name values that are not there yet",
            )
        return document.data

    splice(loaded.setup, edit)
    return _answer(loaded.setup, added, [*spelled, *notes])


def _said(workspace: store.Workspace, text: str) -> str:
    """Foreign text as one harmless line without secrets: what hid one from the first look is gone then."""
    scrub = workspace.scrub_prose
    return scrub(progress.harmless(scrub(text), limit=2 * _TEXT))


def _value_title(title: str, change: Intervention) -> str:
    """`TITLE: FLAG=VALUE`, cut in the title rather than in the value."""
    value = change.changes[0].words[-1]
    return f"{title[: max(_TITLE - len(value) - 2, 0)]}: {value}" if title else value


def _added(
    number: int, title: str, change: Intervention | None, cause: str | None = None
) -> ProposedHypothesis:
    return ProposedHypothesis(
        hypothesis=number,
        title=progress.harmless(title, limit=_TITLE),
        intervention=change.text if change else None,
        cause=cause,
    )


def _sweep(setup: Setup, text: str) -> tuple[sweep.Sweep, list[str]]:
    """Return the sweep with its flag named as the command names it."""
    asked = sweep.parse(text)
    found = [(value, *in_words_of(setup, change)) for value, change in asked.changes]
    changes = tuple((value, change) for value, change, _ in found if change is not None)
    return replace(asked, changes=changes), found[0][2]


def _answer(setup: Setup, added: Sequence[ProposedHypothesis], notes: Sequence[str]) -> ProposeAnswer:
    first = added[0]
    return ProposeAnswer(
        campaign=setup.config.campaign,
        hypothesis=first.hypothesis,
        title=first.title,
        intervention=first.intervention,
        cause=first.cause,
        hypotheses=tuple(added),
        notes=tuple(notes),
        files=(str(setup.progress_path),),
    )


def _entry(
    number: int,
    title: str,
    description: str,
    method: str,
    change: Intervention | None,
    cause: str | None = None,
) -> str:
    return templates.render(
        "hypothesis.md.j2",
        number=number,
        title=progress.harmless(title, limit=_TITLE),
        description=progress.harmless(description, limit=_TEXT),
        test_method=progress.harmless(method, limit=_TEXT),
        cause=cause,
        intervention=change.text if change else None,
        status="UNTESTED",
    )


def _check(setup: Setup, document: ProgressFile, code: MeasuredCode, change: Intervention) -> None:
    workload = setup.config.workload
    synonyms = adapters.locks_of(setup.workspace.root, workload, setup.config.locked, change.names)
    refuse_before_running(setup, document, None, change, synonyms)
    if setup.workspace.scrub(change.text) != change.text:
        raise InterventionError(
            "the change holds a secret, and the progress file is for everyone to read",
            next="keep it in the environment that gpudebug is started in",
        )
    change.apply(workload.argv(), training_environment(workload), setup.config.allowed)
    accepted_changes.changed_server(workload, change, setup.config.allowed)
    if change.patch is not None:
        patch_files.refuse_unusable(setup, code, change.patch)


def _refuse_tested(
    setup: Setup, entries: Entries, history: History, document: progress.ProgressFile, change: Intervention
) -> None:
    """Compare with every hypothesis in the file at the moment of the write: two may propose at once."""
    effects: Mapping[str, object] = {}
    if change.patch is not None:
        written = [h.intervention for h in document.hypotheses]
        effects = patch_files.effects(setup.workspace, [change.text, *written])
    twin = _twin(setup, document, change, effects)
    if twin is None:
        return
    known = entries.trials.keys()
    why, advice = (
        _standing(setup, entries, history, twin) if twin.number in known else (twin.status.value, _ANOTHER)
    )
    raise Duplicate(
        f"the same change is hypothesis {twin.number} already ({why}): {twin.title[:_TITLE]}",
        file=document.file,
        line=twin.line,
        next=advice.format(twin.number),
    )


_ANOTHER = "gpudebug show {}, then propose something else"


def _standing(
    setup: Setup, entries: Entries, history: History, entry: progress.HypothesisEntry
) -> tuple[str, str]:
    """Return what became of a hypothesis, in one clause, and what to do about it."""
    if entries.order(entry) is not None:
        return "accepted already", "gpudebug status, then propose something else"
    if entry.status in (Status.UNTESTED, Status.TESTING):
        return entry.status.value, _ANOTHER
    verdict = f"{entry.status}: {why_of(entries.trials, entry)}"
    if entry.status is Status.INCONCLUSIVE and entries.trials[entry.number].verified:
        return verdict, "gpudebug next --more {}"
    if premises.reason(setup, entries, history, entry) is not None:
        return verdict, "gpudebug reopen {}"
    return verdict, "gpudebug accept {}" if entry.status is Status.VALIDATED else _ANOTHER


def _twin(
    setup: Setup, document: progress.ProgressFile, change: Intervention, effects: Mapping[str, object]
) -> progress.HypothesisEntry | None:
    """Return the hypothesis with the same effect, in whatever words; an entry whose change cannot be read has
    none."""
    workload = setup.config.workload
    argv, env = workload.argv(), workload.env
    synonyms = adapters.synonyms_of(setup.workspace.root, workload)
    for entry in document.hypotheses:
        written = _written(entry.intervention) if entry.intervention else None
        if written is None or change.needs_code or written.needs_code:
            continue
        spelled = written.spelled(argv, synonyms)
        plain = change.patch is None and change.canonical(synonyms) == spelled.canonical(synonyms)
        if plain or change.same_effect(spelled, argv, env, effects):
            return entry
    return None


# A search for something to propose compares every candidate with a whole file.
@lru_cache(maxsize=1 << 14)
def _written(text: str) -> Intervention | None:
    """Parse an entry's change; None if it cannot be read."""
    try:
        return interventions.parse(text)
    except InterventionError:
        return None


def _refuse_accepted(setup: Setup, code: MeasuredCode, change: Intervention) -> None:
    """Refuse what is part of the baseline since it was accepted, whatever else the change holds."""
    for part in change.changes:
        owner = next((step for step in code.stack if _is_in(setup, part, step)), None)
        if owner is not None:
            raise Duplicate(
                f"{' '.join(part.words)} is accepted already, with hypothesis {owner.hypothesis}",
                file=owner.file,
                line=owner.line,
                next="leave it out: the baseline has it",
            )


def _is_in(setup: Setup, part: SingleChange, step: accepted_changes.AcceptedChange) -> bool:
    """Tell whether an accepted change has done what this one would do."""
    one = Intervention((part,))
    if part.kind == "code":
        return False
    if part.kind == "patch":
        patch = step.intervention.patch
        known = patch_files.effects(setup.workspace, [one.text, f"--patch {patch}" if patch else None])
        return patch is not None and known.get(part.name, part.name) == known.get(patch, patch)
    workload = setup.config.workload
    try:
        one.apply(workload.argv(), workload.env, None)
    except NoEffect:
        return step.intervention.touches(part.name)
    except InterventionError:
        return False
    return False
