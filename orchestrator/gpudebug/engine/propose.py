"""Adds an UNTESTED hypothesis to the progress file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpudebug.core import intervention as interventions
from gpudebug.core import progress
from gpudebug.core.errors import GpudebugError, InterventionError, UsageError
from gpudebug.core.intervention import Intervention
from gpudebug.edges import templates
from gpudebug.engine.bench import splice
from gpudebug.engine.campaign import Loaded, load, training_environment
from gpudebug.engine.trial import refuse_before_running

_TITLE = 200
_TEXT = 2000
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
    return {
        "action": "proposed",
        "campaign": loaded.config.campaign,
        "hypothesis": number,
        "title": progress.harmless(title, limit=_TITLE),
        "intervention": change.text if change else None,
        "notes": [] if change is None or change.mechanical else [_NOT_YET],
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
