"""The verdicts that the run folders hold, and what speaks against each."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from gpudebug.core.change.intervention import parse as parse_intervention
from gpudebug.core.config import Workload
from gpudebug.core.config.pins import weaker_terms
from gpudebug.core.errors import GpudebugError, InterventionError, StoreError
from gpudebug.core.progress import HypothesisEntry, ProgressFile
from gpudebug.core.progress.surplus import in_hypothesis
from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.numbers import same_figures
from gpudebug.core.words import VERDICTS, Status
from gpudebug.edges import git, store
from gpudebug.engine.campaign.accepted import Acceptances
from gpudebug.engine.campaign.files import REPLAYED, stored_verdict
from gpudebug.engine.campaign.pin_record import ComparedSettings

BROUGHT = "brought along"
REMEDY = "git rm -r --cached runs"
_NAMED = 3


def brought(workspace: store.Workspace, checkout: git.Checkout) -> frozenset[str]:
    """Return the names in runs/ below which git tracks anything; all runs if `runs` itself is tracked."""
    try:
        runs = os.fsencode((workspace.root / store.RUNS).relative_to(checkout.top))
    except ValueError:
        return frozenset()
    if runs in checkout.left_out:
        return frozenset(workspace.run_names())
    prefix = runs + b"/"
    below = (path[len(prefix) :] for path in checkout.left_out if path.startswith(prefix))
    return frozenset(os.fsdecode(path.partition(b"/")[0]) for path in below)


def refuse_brought_elements(workspace: store.Workspace, checkout: git.Checkout) -> None:
    """StoreError if git tracks anything of what elements of job arrays keep: then it may be anybody's."""
    try:
        folder = os.fsencode(workspace.elements.relative_to(checkout.top))
    except ValueError:
        return
    runs = os.path.dirname(folder)
    if any(path in (runs, folder) or path.startswith(folder + b"/") for path in checkout.left_out):
        raise StoreError(
            "git tracks runs of job arrays, so they may be anybody's",
            file=str(workspace.elements),
            next="git rm -r --cached runs, and remove what is in it",
        )


def why_brought(names: Collection[str]) -> str:
    """Return a line on runs that came with the repository."""
    listed = sorted(names)
    shown = ", ".join(f"runs/{name}" for name in listed[:_NAMED])
    more = f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
    return f"{BROUGHT}: git tracks {shown}{more}, so they may be anybody's"


UNLISTED = "tested before"


class Unlisted(NamedTuple):
    """A sealed verdict: its run, the hypothesis and change that it is on, and what it says."""

    run: str
    hypothesis: int
    status: str
    change: str | None
    digest: str | None

    @property
    def text(self) -> str:
        return (
            f"runs/{self.run} has a verdict ({self.status}, hypothesis {self.hypothesis}) that the progress "
            "file does not mention"
        )


def judged_runs(
    workspace: store.Workspace, campaign: str, records: Mapping[str, Mapping[str, Any]]
) -> tuple[str, ...]:
    """Return the sealed runs of a campaign that hold a verdict. `records` has the run.json of each run."""
    found = (
        (name, workspace.run(name))
        for name, record in records.items()
        if record.get("campaign") == campaign and record.get("hypothesis") is not None
    )
    return tuple(name for name, run in found if run.sealed and run.has("verdict.json"))


def unlisted(
    workspace: store.Workspace,
    document: ProgressFile,
    judged: Iterable[str],
    records: Mapping[str, Mapping[str, Any]],
) -> tuple[Unlisted, ...]:
    """Return those of the judged runs that no entry has as its Result or an earlier one.

    What a TESTING entry waits for is entered by the next `next`.
    """
    listed = {name for h in document.hypotheses for name in h.runs}
    listed |= {name for h in document.hypotheses for old in h.earlier_results for name in old.runs}
    testing = {h.number for h in document.hypotheses if h.status is Status.TESTING}
    found = []
    for name in judged:
        verdict = None if name in listed else stored_verdict(workspace.run(name))
        if verdict is not None and verdict["hypothesis"] not in testing:
            change, digest = _change(records, name, verdict), verdict.get("change_digest")
            found.append(Unlisted(name, verdict["hypothesis"], str(verdict["status"]), change, digest))
    return tuple(found)


def _change(records: Mapping[str, Mapping[str, Any]], name: str, verdict: Mapping[str, Any]) -> str | None:
    """Return the change that a verdict is on, as a run of its trial records it."""
    used = (name, *(str(run["name"]) for run in verdict["runs"] if run["part"] == "trial"))
    changes = (records.get(run, {}).get("change") for run in used)
    return next((str(text) for text in changes if text), None)


def tested_before(
    change: str | None, entry: HypothesisEntry, found: Iterable[Unlisted], workload: Workload
) -> tuple[Unlisted, ...]:
    """Return those on an entry's own change, with digest `change`, however it is spelled now."""
    return tuple(one for one in found if _same(change, entry, one, workload))


def _same(change: str | None, entry: HypothesisEntry, one: Unlisted, workload: Workload) -> bool:
    if one.digest is not None and change == one.digest:
        return True
    try:
        mine, other = (parse_intervention(text) for text in (entry.intervention or "", one.change or ""))
    except InterventionError:
        return False
    if mine.patch is not None or other.patch is not None:
        return False
    return mine.same_effect(other, workload.argv(), workload.env)


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
    played = played_back(_runs(verdict), records)
    against = [f"{WEAKER}: {'; '.join(weaker)}"] if weaker else []
    if played and not settings.replay:
        against.append(f"{REPLAYED}: its runs are recordings, and those are not what is pinned as the device")
    others = tuple(sorted({*_runs(verdict)} & {*foreign})) if foreign else ()
    if others:
        against.append(why_brought(others))
    return Doubts(weaker, played, others, untold, (*against, *untold))


def played_back(names: Sequence[str], records: Mapping[str, Mapping[str, Any]]) -> bool | None:
    """Tell whether one of the runs was played back; None if unknown."""
    found = [records[name].get("replayed") for name in names if name in records]
    if any(found):
        return True
    return False if found and None not in found else None


def _runs(verdict: Any) -> list[str]:
    used = verdict.get("runs") if isinstance(verdict, Mapping) else None
    names = [r.get("name") for r in used if isinstance(r, Mapping)] if isinstance(used, list) else []
    return [name for name in names if isinstance(name, str)]


@dataclass(frozen=True)
class Judged:
    """What the run folders say of one hypothesis: its verdict as judged, or None, and the doubts about it.

    `verified` asks for the whole text of the entry; `held` says that verdict and change are those that
    `accept` recorded, whatever else is there; `change` is the digest of the change as it is written now.
    """

    verdict: dict[str, Any] | None
    verified: bool
    doubts: Doubts = NO_DOUBTS
    held: bool = False
    change: str | None = None

    @property
    def counts(self) -> bool:
        """Whether it may solve the campaign, be accepted and handed over."""
        return self.verified and not self.doubts.against

    @property
    def recorded_here(self) -> bool:
        """Whether it follows from runs that are here and that came with no repository."""
        return self.verified and not self.doubts.brought


def doubted(
    trials: Mapping[int, Judged],
    settings: ComparedSettings,
    records: Mapping[str, Mapping[str, Any]],
    foreign: Collection[str],
    before: Mapping[int, Sequence[Unlisted]],
) -> dict[int, Judged]:
    """Return each verdict with its doubts. `before` are those on the same change that no entry lists."""
    told = {n: tuple(f"{UNLISTED}: {one.text}" for one in before[n]) for n in trials}
    return {
        n: replace(found, doubts=doubts(settings, found.verdict, records, foreign, told[n]))
        for n, found in trials.items()
    }


def judged(
    workspace: store.Workspace,
    document: ProgressFile,
    entry: HypothesisEntry,
    acceptances: Acceptances,
    change: str | None,
) -> Judged:
    """Return what the last run of an entry says of it, no doubts looked for yet. `change` is its digest."""
    held = _held(workspace, acceptances, entry, change)
    run = workspace.run(entry.runs[-1]) if entry.status in VERDICTS and entry.runs else None
    verdict = stored_verdict(run) if run is not None and run.intact("verdict.json") else None
    if verdict is None:
        return Judged(None, False, held=held, change=change)
    try:
        numbers.result_fields(verdict)
        recorded = (verdict["hypothesis"], verdict["status"])
        same = recorded == (entry.number, entry.status.value) and same_figures(verdict, entry.result)
        same = same and change == verdict["change_digest"]
    except (GpudebugError, LookupError, TypeError, ValueError, ArithmeticError, AttributeError):
        return Judged(None, False, held=held, change=change)
    return Judged(verdict, same and not in_hypothesis(document, entry), held=held, change=change)


def _held(
    workspace: store.Workspace, acceptances: Acceptances, entry: HypothesisEntry, change: str | None
) -> bool:
    """Tell whether verdict and change of an entry are those that `accept` recorded."""
    kept = acceptances.of(entry)
    if kept is None or change != kept.change:
        return False
    try:
        return store.file_digest(workspace.run(kept.run).path / "verdict.json") == kept.verdict
    except StoreError:
        return False
