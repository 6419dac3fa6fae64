"""What the files of a campaign say to the state machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpudebug.core import progress
from gpudebug.core.campaign import decide
from gpudebug.core.config import Config
from gpudebug.core.progress import ProgressFile, claims, nothing
from gpudebug.core.statistics.metrics import Metric
from gpudebug.core.text.values import short_digest
from gpudebug.core.words import Status
from gpudebug.edges import store
from gpudebug.engine.campaign.campaign import Baselines, Entries, History, MeasuredCode, Records, Setup
from gpudebug.engine.campaign.files import stored_verdict
from gpudebug.engine.campaign.said import said_of
from gpudebug.engine.campaign.worktrees import is_written


def decidable(setup: Setup, entries: Entries, history: History, code: MeasuredCode) -> decide.Campaign:
    """Return a campaign as the values that a decision rests on."""
    config = setup.config
    return decide.Campaign(
        baselines=tuple(
            decide.BaselineState(b.role, b.why, b.figure(setup.metric)) for b in history.baselines.values()
        ),
        hypotheses=tuple(_hypothesis(setup, entries, h) for h in entries.document.hypotheses),
        loose_runs=tuple(_loose(setup, entries, history.records)),
        metric=setup.metric,
        target=config.target,
        failure=float(config.criteria.failure),
        hypothesis_budget=config.budget.hypotheses,
        untold=len(history.unlisted),
        device_time=_device_time(setup.config, history.records),
        device_time_budget=config.budget.device_time,
        accepted=bool(code.stack),
        nothing=_nothing(setup, entries.document, history.baselines),
    )


def _nothing(setup: Setup, document: ProgressFile, baselines: Baselines) -> tuple[str | None, ...]:
    found = nothing.read(document)
    if not found:
        return ()
    kept = said_of(setup.workspace.root, setup.config.campaign, setup.checkout)
    now = standing(document, baselines)
    return tuple(said.session for said in found if said.standing == now and kept.has(said))


def standing(document: progress.ProgressFile, baselines: Baselines) -> str:
    """A digest of what was proposed, tested and measured: it changes if there may be more to propose."""
    told = [f"{h.number} {h.status} {' '.join(h.runs)}" for h in document.hypotheses]
    baseline = baselines.get("workload")
    return short_digest("\0".join([*told, *(baseline.runs if baseline else ())]).encode())


def _device_time(config: Config, records: Records) -> float:
    """Seconds that runs of this campaign held a device; an imported run held none here, nor a copy, and
    those of `gpudebug check`, which a person or CI runs on a campaign that may be over, are no part of it."""
    return sum(
        r.get("duration_s") or 0.0
        for r in records.values()
        if _ours(config, r)
        and r.get("devices")
        and not r.get("measured_as")
        and not str(r.get("paired")).startswith("check-")
    )


def _ours(config: Config, record: Mapping[str, Any]) -> bool:
    return record.get("campaign") == config.campaign


def _hypothesis(setup: Setup, entries: Entries, entry: progress.HypothesisEntry) -> decide.HypothesisState:
    trial = entries.trials[entry.number]
    intervention = entries.interventions.get(entry.number)
    claimed = entries.claimed(entry)
    return decide.HypothesisState(
        number=entry.number,
        status=entry.status,
        mechanical=(intervention is not None and intervention.mechanical) or entry.number in entries.problems,
        claimed=claimed,
        written=claimed is decide.Claimed.MINE and is_written(setup, entry.number),
        verified=trial.verified,
        problem=entry.number in entries.problems,
        counts=not trial.doubts.against,
        after=_reached(setup.metric, trial.verdict) if trial.verdict else None,
    )


def _reached(metric: Metric, verdict: Mapping[str, Any]) -> float | None:
    """Return what a trial reached of the campaign's metric; None if it was judged by another."""
    if metric.points:
        return verdict.get("after")
    return verdict.get("metric_after") if verdict.get("metric") == metric.name else None


def _loose(setup: Setup, entries: Entries, records: Records) -> list[decide.RunState]:
    """Runs that ask for recovery: unsealed ones, and judged ones whose entry lacks them."""
    listed = {name for h in entries.document.hypotheses for name in (*h.runs, *h.earlier_runs)}
    loose = []
    for name, record in records.items():
        run = setup.workspace.run(name)
        number = record.get("hypothesis")
        if not run.sealed and record.get("campaign") in (setup.config.campaign, None):
            loose.append(decide.RunState(name, sealed=False, hypothesis=number))
        elif run.sealed and _judged_unlisted(setup, entries, run, record, listed):
            loose.append(decide.RunState(name, sealed=True, hypothesis=number))
    return loose


def _judged_unlisted(
    setup: Setup, entries: Entries, run: store.RunFolder, record: Mapping[str, Any], listed: set[str]
) -> bool:
    """Tell whether a sealed run holds the verdict that an entry waits for, on its present change.

    Only a kill between the two leaves TESTING; an entry that a person set back to UNTESTED is tested again.
    """
    number = record.get("hypothesis") or 0
    intervention = entries.interventions.get(number)
    return (
        _ours(setup.config, record)
        and intervention is not None
        and entries.document.hypothesis(number).status is Status.TESTING
        and run.name not in listed
        and run.intact("run.json", "verdict.json")
        and (verdict := stored_verdict(run)) is not None
        and verdict["hypothesis"] == number
        and _adoptable(entries, number, verdict)
        and not _superseded(entries.document, record["hypothesis"], run.name)
    )


def _adoptable(entries: Entries, number: int, verdict: Mapping[str, Any]) -> bool:
    """Tell whether a verdict is on the entry's present change, under the claim that it is under."""
    entry = entries.document.hypothesis(number)
    held = claims.on(entry)
    ours = held is None or verdict.get("claim") in (None, held.note)
    return entries.trials[number].change == verdict.get("change_digest") and ours


def _superseded(document: ProgressFile, number: int, name: str) -> bool:
    """Tell whether a later run of the same hypothesis is in its entry already."""
    entry = document.hypothesis(number)
    return any(store.run_number(other) > store.run_number(name) for other in entry.runs)
