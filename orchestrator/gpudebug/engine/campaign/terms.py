"""What separates a verdict from what is pinned: weaker terms, or runs that were played back."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from gpudebug.core.config.pins import weaker_terms
from gpudebug.edges import store
from gpudebug.engine.campaign.pin_record import ComparedSettings
from gpudebug.engine.campaign.playback import WORD, replayed
from gpudebug.engine.campaign.tracked_runs import why_brought

WEAKER = "weaker terms"


class Doubts(NamedTuple):
    """`weaker` is a line for each term that is weaker than the pinned one; `replayed` whether a run of it
    was played back, None if unknown; `brought` are those that came with the repository, `untold` a line
    for each verdict on the same change that no entry lists. `against` are the lines that speak against the
    verdict.
    """

    weaker: tuple[str, ...] = ()
    replayed: bool | None = None
    brought: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()
    against: tuple[str, ...] = ()


NO_DOUBTS = Doubts()


def doubts(
    settings: ComparedSettings,
    workspace: store.Workspace,
    verdict: Any,
    records: Mapping[str, Mapping[str, Any]],
    foreign: Collection[str] = (),
    untold: tuple[str, ...] = (),
) -> Doubts:
    """Return the doubts about a verdict.json as it was read, with the run.json of each run by name.

    `foreign` are the names of all runs that came with the repository.
    """
    terms = verdict.get("terms") if isinstance(verdict, Mapping) else None
    weaker = tuple(d.text for d in weaker_terms(terms, settings.bar)) if isinstance(terms, Mapping) else ()
    played = played_back(workspace, _runs(verdict), records)
    against = [f"{WEAKER}: {'; '.join(weaker)}"] if weaker else []
    if played and not settings.replay:
        against.append(f"{WORD}: its runs are recordings, and those are not what is pinned as the device")
    others = tuple(sorted({*_runs(verdict)} & {*foreign})) if foreign else ()
    if others:
        against.append(why_brought(others))
    return Doubts(weaker, played, others, untold, (*against, *untold))


def played_back(
    workspace: store.Workspace, names: Sequence[str], records: Mapping[str, Mapping[str, Any]]
) -> bool | None:
    """Tell whether one of the runs was played back; None if unknown."""
    found = [replayed(records[name], workspace.run(name)) for name in names if name in records]
    if any(found):
        return True
    return False if found and None not in found else None


def _runs(verdict: Any) -> list[str]:
    used = verdict.get("runs") if isinstance(verdict, Mapping) else None
    names = [r.get("name") for r in used if isinstance(r, Mapping)] if isinstance(used, list) else []
    return [name for name in names if isinstance(name, str)]
