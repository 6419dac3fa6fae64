"""What the files of a campaign say to the state machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpudebug.core import progress
from gpudebug.core.campaign import decide
from gpudebug.core.progress import claims, nothing
from gpudebug.core.statistics.metrics import Metric
from gpudebug.core.text.values import short_digest
from gpudebug.core.words import Status
from gpudebug.edges import store
from gpudebug.engine.campaign.campaign import CampaignBaseline, Loaded
from gpudebug.engine.campaign.change_files import tested_change
from gpudebug.engine.campaign.files import stored_verdict
from gpudebug.engine.campaign.said import said_of
from gpudebug.engine.campaign.worktrees import is_written


def decidable(loaded: Loaded) -> decide.Campaign:
    """Return a loaded campaign as the values that a decision rests on."""
    config = loaded.config
    return decide.Campaign(
        baselines=tuple(
            decide.BaselineState(b.role, b.why, b.figure(loaded.metric)) for b in loaded.baselines.values()
        ),
        hypotheses=tuple(_hypothesis(loaded, h) for h in loaded.document.hypotheses),
        loose_runs=tuple(_loose(loaded)),
        metric=loaded.metric,
        target=config.target,
        failure=float(config.criteria.failure),
        hypothesis_budget=config.budget.hypotheses,
        untold=len(loaded.unlisted),
        device_time=_device_time(loaded),
        device_time_budget=config.budget.device_time,
        accepted=bool(loaded.code.stack),
        nothing=_nothing(loaded),
    )


def _nothing(loaded: Loaded) -> tuple[str | None, ...]:
    found = nothing.read(loaded.document)
    if not found:
        return ()
    kept = said_of(loaded.workspace.root, loaded.config.campaign, loaded.checkout)
    now = standing(loaded.document, loaded.baselines)
    return tuple(said.session for said in found if said.standing == now and kept.has(said))


def standing(document: progress.ProgressFile, baselines: Mapping[str, CampaignBaseline]) -> str:
    """A digest of what was proposed, tested and measured: it changes if there may be more to propose."""
    told = [f"{h.number} {h.status} {' '.join(h.runs)}" for h in document.hypotheses]
    baseline = baselines.get("workload")
    return short_digest("\0".join([*told, *(baseline.runs if baseline else ())]).encode())


def _device_time(loaded: Loaded) -> float:
    """Seconds that runs of this campaign held a device; an imported run held none here, and those of
    `gpudebug check`, which a person or CI runs on a campaign that may be over, are no part of its budget."""
    return sum(
        r.get("duration_s") or 0.0
        for r in loaded.records.values()
        if _ours(loaded, r) and r.get("devices") and not str(r.get("paired")).startswith("check-")
    )


def _ours(loaded: Loaded, record: Mapping[str, Any]) -> bool:
    return record.get("campaign") == loaded.config.campaign


def _hypothesis(loaded: Loaded, entry: progress.HypothesisEntry) -> decide.HypothesisState:
    trial = loaded.trials[entry.number]
    intervention = loaded.interventions.get(entry.number)
    claimed = loaded.claimed(entry)
    return decide.HypothesisState(
        number=entry.number,
        status=entry.status,
        mechanical=(intervention is not None and intervention.mechanical) or entry.number in loaded.problems,
        claimed=claimed,
        written=claimed is decide.Claimed.MINE and is_written(loaded, entry.number),
        verified=trial.verified,
        problem=entry.number in loaded.problems,
        counts=not trial.doubts.against,
        after=_reached(loaded.metric, trial.verdict) if trial.verdict else None,
    )


def _reached(metric: Metric, verdict: Mapping[str, Any]) -> float | None:
    """Return what a trial reached of the campaign's metric; None if it was judged by another."""
    if metric.points:
        return verdict.get("after")
    return verdict.get("metric_after") if verdict.get("metric") == metric.name else None


def _loose(loaded: Loaded) -> list[decide.RunState]:
    """Runs that ask for recovery: unsealed ones, and judged ones whose entry lacks them."""
    listed = {name for h in loaded.document.hypotheses for name in (*h.runs, *h.earlier_runs)}
    loose = []
    for name, record in loaded.records.items():
        run = loaded.workspace.run(name)
        number = record.get("hypothesis")
        if not run.sealed and record.get("campaign") in (loaded.config.campaign, None):
            loose.append(decide.RunState(name, sealed=False, hypothesis=number))
        elif run.sealed and _judged_unlisted(loaded, run, record, listed):
            loose.append(decide.RunState(name, sealed=True, hypothesis=number))
    return loose


def _judged_unlisted(
    loaded: Loaded, run: store.RunFolder, record: Mapping[str, Any], listed: set[str]
) -> bool:
    """Tell whether a sealed run holds the verdict that an entry waits for, on its present change.

    Only a kill between the two leaves TESTING; an entry that a person set back to UNTESTED is tested again.
    """
    number = record.get("hypothesis") or 0
    intervention = loaded.interventions.get(number)
    return (
        _ours(loaded, record)
        and intervention is not None
        and loaded.document.hypothesis(number).status is Status.TESTING
        and run.name not in listed
        and run.intact("run.json", "verdict.json")
        and (verdict := stored_verdict(run)) is not None
        and verdict["hypothesis"] == number
        and _adoptable(loaded, number, verdict)
        and not _superseded(loaded, record["hypothesis"], run.name)
    )


def _adoptable(loaded: Loaded, number: int, verdict: Mapping[str, Any]) -> bool:
    """Tell whether a verdict is on the entry's present change, under the claim that it is under."""
    entry = loaded.document.hypothesis(number)
    held = claims.on(entry)
    ours = held is None or verdict.get("claim") in (None, held.note)
    same = tested_change(loaded.workspace, entry.intervention) == verdict.get("change_digest")
    return same and ours


def _superseded(loaded: Loaded, number: int, name: str) -> bool:
    """Tell whether a later run of the same hypothesis is in its entry already."""
    entry = loaded.document.hypothesis(number)
    return any(store.run_number(other) > store.run_number(name) for other in entry.runs)
