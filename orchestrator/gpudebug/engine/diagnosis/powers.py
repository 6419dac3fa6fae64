"""What the judged hypotheses of a campaign say of root causes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gpudebug.core.catalogue import Catalogue
from gpudebug.core.change.intervention import Intervention, parse
from gpudebug.core.diagnosis.facts import facts_of
from gpudebug.core.diagnosis.model import Tested, judged, power_of
from gpudebug.core.errors import InterventionError
from gpudebug.core.progress import HypothesisEntry
from gpudebug.core.words import VERDICTS, SignalValue
from gpudebug.edges import store
from gpudebug.engine.campaign.campaign import History, Loaded, MeasuredCode, Trials
from gpudebug.engine.campaign.files import stored_record
from gpudebug.engine.campaign.premises import moved

_NEWEST = 40
"""Judged hypotheses that are looked at: each more would change odds that are low already."""

Match = Callable[[HypothesisEntry], Mapping[str, float]]
"""The causes that a hypothesis tests, with how well (0 to 1)."""


def tested(loaded: Loaded, catalogue: Catalogue, match: Match) -> tuple[Tested, ...]:
    """What each trial says of the causes that it tested, the oldest first. Hand-written verdicts count."""
    entries = [h for h in loaded.entries.document.hypotheses if h.status in VERDICTS][-_NEWEST:]
    return tuple(line for entry in entries for line in _said(loaded, catalogue, entry, match(entry)))


def _said(
    loaded: Loaded, catalogue: Catalogue, entry: HypothesisEntry, matched: Mapping[str, float]
) -> Iterator[Tested]:
    causes = [cause for id in matched if (cause := catalogue.get(id)) is not None]
    before: Mapping[str, SignalValue] = {}
    after: Mapping[str, SignalValue] = {}
    if any(cause.own_signal for cause in causes):
        before, after = _signals(loaded.setup.workspace, loaded.entries.trials, entry)
    change = _change(entry)
    powers = {
        cause.id: matched[cause.id] * power_of(change, cause.own_signal, before, after) for cause in causes
    }
    yield from judged(
        entry.number,
        entry.status,
        powers,
        before_accepting=_before_accepting(loaded.history, loaded.code, entry),
    )


def _signals(
    workspace: store.Workspace, trials: Trials, entry: HypothesisEntry
) -> tuple[Mapping[str, SignalValue], Mapping[str, SignalValue]]:
    """Of the baseline that a trial was judged against and of the trial; empty if no sound run is there."""
    trial = trials[entry.number]
    used: list[Mapping[str, Any]] = trial.verdict["runs"] if trial.verified and trial.verdict else []
    before, after = (
        [e for run in used if run["part"] == part and (e := _evidence(workspace, str(run["name"])))]
        for part in ("baseline", "trial")
    )
    if not before or not after:
        return {}, {}
    return facts_of(before).signals, facts_of(after).signals


def _evidence(workspace: store.Workspace, name: str) -> dict[str, object]:
    """evidence.json of a run as it was sealed, else {}."""
    run = workspace.run(name)
    return stored_record(run, "evidence.json") if run.intact("evidence.json") else {}


def _change(entry: HypothesisEntry) -> Intervention | None:
    try:
        return parse(entry.intervention) if entry.intervention else None
    except InterventionError:
        return None


def _before_accepting(history: History, code: MeasuredCode, entry: HypothesisEntry) -> bool:
    """Tell whether a change was accepted since its trial: its result need not hold any more."""
    return bool(code.stack) and bool({"command", "tree"} & set(moved(history, entry)))
