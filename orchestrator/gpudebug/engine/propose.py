"""Adds UNTESTED hypotheses to the progress file: one, or one for each value of a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpudebug.core import intervention as interventions
from gpudebug.core import progress, sweep
from gpudebug.core.errors import GpudebugError, InterventionError, UsageError
from gpudebug.core.intervention import Intervention
from gpudebug.edges import templates
from gpudebug.engine.bench import splice
from gpudebug.engine.campaign import Loaded, load
from gpudebug.engine.trial import refuse_before_running
from gpudebug.engine.written import training_environment

_TITLE = 200
_TEXT = 2000
_STANDING = "the command has it already"
_NOT_YET = "this version tests flags and variables only: `gpudebug next` will ask for such a change"


class Duplicate(GpudebugError):
    """The same change was proposed before."""

    code = "duplicate"


def propose(
    directory: Path,
    *,
    title: str,
    description: str,
    method: str,
    set_: Sequence[str] = (),
    unset: Sequence[str] = (),
    env: Sequence[str] = (),
    patch: str | None = None,
    code: bool = False,
    compound: bool = False,
) -> dict[str, Any]:
    """Append one hypothesis. Refused: a locked knob, several changes unmarked, a change already there."""
    if not title.strip():
        raise UsageError("a hypothesis needs a title", next="add --title 'What idles the GPU'")
    change = None
    if any((set_, unset, env, patch, code)):
        change = interventions.from_options(set_, unset, env, patch, code, compound)
    loaded = load(directory)
    title, description, method = (loaded.workspace.scrub(text) for text in (title, description, method))
    if change is not None:
        _check(loaded, change)
    number = 0

    def edit(document: progress.ProgressFile) -> bytes:
        nonlocal number
        if change is not None:
            _refuse_duplicate(document, change, loaded.config.workload.argv())
        number = progress.next_number(document)
        return progress.add_hypothesis(document, _entry(number, title, description, method, change))

    splice(loaded, edit)
    notes = [] if change is None or change.mechanical else [_NOT_YET]
    return _answer(loaded, [_added(number, title, change)], notes)


def propose_sweep(
    directory: Path, text: str, *, title: str = "", description: str = "", method: str = ""
) -> dict[str, Any]:
    """Append one hypothesis for each value of `--sweep TEXT`, all in one splice or none.

    A value that the command has already, or that a hypothesis tests, is left out and named. Raises
    Duplicate where none is left, InterventionError for a locked knob or a text that is no sweep.
    """
    asked = sweep.parse(text)
    loaded = load(directory)
    title, description, method = (loaded.workspace.scrub(t).strip() for t in (title, description, method))
    workload = loaded.config.workload
    argv, env = workload.argv(), training_environment(workload)
    standing = {v for v, change in asked.changes if sweep.stands_already(change.changes[0], argv, env)}
    for value, change in asked.changes:
        if value not in standing:
            _check(loaded, change)
    added: list[dict[str, Any]] = []
    notes: list[str] = []

    def edit(document: progress.ProgressFile) -> bytes:
        added.clear()
        notes.clear()
        for value, change in asked.changes:
            twin = next((h for h in document.hypotheses if _same(change, h.intervention, argv)), None)
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

    splice(loaded, edit)
    return _answer(loaded, added, notes)


def _value_title(title: str, change: Intervention) -> str:
    """`TITLE: FLAG=VALUE`, cut in the title rather than in the value."""
    said = change.changes[0].words[-1]
    return f"{title[: max(_TITLE - len(said) - 2, 0)]}: {said}" if title else said


def _added(number: int, title: str, change: Intervention | None) -> dict[str, Any]:
    return {
        "hypothesis": number,
        "title": progress.harmless(title, limit=_TITLE),
        "intervention": change.text if change else None,
    }


def _answer(loaded: Loaded, added: list[dict[str, Any]], notes: list[str]) -> dict[str, Any]:
    """`propose`'s JSON: its own keys tell of the first hypothesis, `hypotheses` of all that were added."""
    return {
        "action": "proposed",
        "campaign": loaded.config.campaign,
        **added[0],
        "hypotheses": list(added),
        "notes": list(notes),
        "next_command": "gpudebug next",
        "files": [str(loaded.progress_path)],
    }


def _entry(number: int, title: str, description: str, method: str, change: Intervention | None) -> str:
    return templates.render(
        "hypothesis.md.j2",
        number=number,
        title=progress.harmless(title, limit=_TITLE),
        description=progress.harmless(description, limit=_TEXT),
        test_method=progress.harmless(method, limit=_TEXT),
        intervention=change.text if change else None,
        status="UNTESTED",
    )


def _check(loaded: Loaded, change: Intervention) -> None:
    refuse_before_running(loaded, None, change)
    if loaded.workspace.scrub(change.text) != change.text:
        raise InterventionError(
            "the change holds a secret, and the progress file is for everyone to read",
            next="keep it in the environment that gpudebug is started in",
        )
    workload = loaded.config.workload
    if change.mechanical:
        change.apply(workload.argv(), training_environment(workload))


def _refuse_duplicate(document: progress.ProgressFile, change: Intervention, argv: tuple[str, ...]) -> None:
    """Compare with every hypothesis in the file at the moment of the write: two may propose at once."""
    for h in document.hypotheses:
        if _same(change, h.intervention, argv):
            raise Duplicate(
                f"the same change is hypothesis {h.number} already ({h.status}): {h.title}",
                file=document.file,
                line=h.line,
                next=f"gpudebug show {h.number}, then propose something else",
            )


def _same(change: Intervention, written: str | None, argv: tuple[str, ...]) -> bool:
    """Whether an entry's change, as written, has the same effect; one that cannot be read has none."""
    if not written:
        return False
    try:
        return change.same_effect(interventions.parse(written), argv)
    except InterventionError:
        return False
