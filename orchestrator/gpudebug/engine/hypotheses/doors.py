"""What `propose` asks of a hypothesis beside its change: words, a flag that is there, something new."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpudebug.core import progress
from gpudebug.core.change.commands import KnownFlags, unknown
from gpudebug.core.change.intervention import Intervention
from gpudebug.core.change.intervention import parse as parse_intervention
from gpudebug.core.command.synonyms import Synonyms, folded, long_name
from gpudebug.core.errors import CatalogueError, InterventionError, UsageError
from gpudebug.core.progress import ProgressFile
from gpudebug.core.text.shown import most_alike
from gpudebug.engine.campaign.campaign import Baselines, Setup
from gpudebug.engine.run import adapters
from gpudebug.engine.run.known_flags import known_flags, of_catalogue

_SHOWN = 200
_MOST = 3


def missing_words(words: Mapping[str, str], *, strict: bool) -> list[str]:
    """Return a note on the texts of a hypothesis that are empty; UsageError if `strict`.

    Without them a reader of the verdict cannot tell what was meant, and no later session why it was tried.
    """
    missing = [name for name, text in words.items() if not text.strip()]
    if not missing:
        return []
    said = f"the hypothesis has no {' and no '.join(missing)}"
    if strict:
        raise UsageError(
            said,
            next="say in `description` why it would idle the device, in `method` what should move; or take "
            "both from the catalogue with `from_catalogue`",
        )
    options = " ".join(f"--{name} '…'" for name in missing)
    return [f"{said}: say so with {options}, or take both from the catalogue with --from-catalogue ID"]


def unknown_flags(setup: Setup, baselines: Baselines, change: Intervention | None) -> list[str]:
    """Return a note on each flag of a change that nothing is known to have, with the nearest that is."""
    if change is None:
        return []
    return [
        f"{name} is on no command line, in no source and in no configuration that gpudebug read"
        + (f"; the nearest is {near}" if near else "")
        for name, near in unknown(change, _known(setup, baselines, change))
    ]


def _known(setup: Setup, baselines: Baselines, change: Intervention) -> KnownFlags:
    """The catalogue is read only for what nothing else knows."""
    root, workload = setup.workspace.root, setup.config.workload
    known = known_flags(root, workload, _printed(baselines["workload"].evidence))
    if not any(unknown(change, known)):
        return known
    try:
        return KnownFlags((*known.names, *of_catalogue(root, workload)))
    except CatalogueError:
        return known


def _printed(evidence: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(name for one in evidence for name in one.get("printed") or ())


def likenesses(
    setup: Setup,
    document: ProgressFile,
    title: str,
    description: str,
    change: Intervention | None,
    cause: str | None,
) -> list[str]:
    """Notes on hypotheses that may mean the same: alike words, the same knob or the same cause."""
    others = document.hypotheses
    noted: dict[int, str] = {}
    for what, text in (("title", title), ("description", description)):
        pairs = [(h.number, h.title if what == "title" else h.description) for h in others]
        number = most_alike(progress.harmless(text, limit=_SHOWN), pairs) if text else None
        if number is not None:
            noted.setdefault(number, f"its {what} is like that of")
    synonyms = adapters.synonyms_of(setup.workspace.root, setup.config.workload)
    for number, what in (*_same_knob(others, change, synonyms), *_same_cause(others, cause)):
        noted.setdefault(number, what)
    shown = list(noted.items())[:_MOST]
    return [_note(what, document.hypothesis(number)) for number, what in shown]


def _note(what: str, entry: progress.HypothesisEntry) -> str:
    return f"{what} hypothesis {entry.number} ({entry.status}): {entry.title[:_SHOWN]}"


def _same_knob(
    others: Sequence[progress.HypothesisEntry], change: Intervention | None, synonyms: Synonyms
) -> Iterator[tuple[int, str]]:
    names = {folded(long_name(name, synonyms)) for name in change.names} if change is not None else set()
    for entry in reversed(others):
        try:
            written = parse_intervention(entry.intervention) if names and entry.intervention else None
        except InterventionError:
            continue
        both = [n for n in written.names if folded(long_name(n, synonyms)) in names] if written else []
        if both:
            yield entry.number, f"it changes {', '.join(both)}, as does"


def _same_cause(others: Sequence[progress.HypothesisEntry], cause: str | None) -> Iterator[tuple[int, str]]:
    yield from ((h.number, "it tests the cause of") for h in reversed(others) if cause and h.cause == cause)
