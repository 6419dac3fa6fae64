"""Reads everything that a decision depends on, once: config, progress file, run folders, checkout."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpudebug.core import machine, progress
from gpudebug.core.config import Config, Workload
from gpudebug.core.digests import short_digest
from gpudebug.core.errors import GpudebugError, InterventionError
from gpudebug.core.intervention import Intervention
from gpudebug.core.intervention import parse as parse_intervention
from gpudebug.core.metrics import Metric
from gpudebug.core.present import figure, percent, same_figures
from gpudebug.core.words import VERDICTS, Status
from gpudebug.edges import host, launcher, snapshot, store
from gpudebug.engine.written import ROLES, read, training_environment, workload_of

if TYPE_CHECKING:
    pass

NoneType = type(None)


@dataclass(frozen=True)
class Judged:
    """What the run folders say of one hypothesis: its verdict as judged, or None."""

    verdict: dict[str, Any] | None
    verified: bool


@dataclass(frozen=True)
class Baseline:
    """A baseline as the run folders tell it. `why` is None when it is valid now."""

    role: str
    why: str | None
    runs: tuple[str, ...] = ()
    evidence: tuple[dict[str, Any], ...] = ()
    records: tuple[dict[str, Any], ...] = ()
    unverified: bool = False

    @property
    def utilisation(self) -> float | None:
        return self.figure(Metric())

    def figure(self, metric: Metric) -> float | None:
        """The mean of a metric over the runs that have it."""
        return metric.mean([v for e in self.evidence if (v := metric.recorded(e)) is not None])


@dataclass
class Loaded:
    """A campaign with everything at hand. `records` holds the run.json of each folder with a sound one."""

    workspace: store.Workspace
    config: Config
    progress_path: Path
    document: progress.ProgressFile
    checkout: snapshot.Checkout
    identities: dict[str, dict[str, str]]
    records: dict[str, dict[str, Any]]
    baselines: dict[str, Baseline]
    trials: dict[int, Judged]
    interventions: dict[int, Intervention] = field(default_factory=dict)
    problems: dict[int, InterventionError] = field(default_factory=dict)
    campaign: machine.Campaign = field(init=False)

    def __post_init__(self) -> None:
        self.campaign = _decidable(self)

    @property
    def metric(self) -> Metric:
        return Metric(self.config.metric, lower=self.config.direction == "lower")

    @property
    def roles(self) -> tuple[str, ...]:
        return tuple(r for r in ROLES if workload_of(self.config, r) is not None)


def load(directory: Path) -> Loaded:
    """Read the campaign at or above `directory`. Expected errors only; nothing is written."""
    workspace, config, path, document = read(directory)
    checkout = look(workspace, path)
    identities = {
        role: identity(workspace, config, workload, checkout)
        for role in ROLES
        if (workload := workload_of(config, role)) is not None
    }
    records = {name: r for name in workspace.run_names() if (r := _record(workspace.run(name)))}
    baselines = {role: _baseline(workspace, document, role, identities[role], records) for role in identities}
    trials = {h.number: _trial(workspace, h) for h in document.hypotheses}
    interventions, problems = _interventions(document)
    return Loaded(
        workspace,
        config,
        path,
        document,
        checkout,
        identities,
        records,
        baselines,
        trials,
        interventions,
        problems,
    )


def look(workspace: store.Workspace, progress: Path) -> snapshot.Checkout:
    """The code as it lies there, without what gpudebug itself and its users' notes change."""
    ours = (workspace.root / name for name in ("progress", "hypotheses", ".gitignore"))
    return snapshot.identify(workspace.root, (workspace.config, progress, workspace.runs, *ours))


def identity(
    workspace: store.Workspace, config: Config, workload: Workload, checkout: snapshot.Checkout
) -> dict[str, str]:
    """What a baseline of this workload is valid for, a digest or name each.

    `reading` is how its log and samples are read: a pattern or a warm-up that changed gives other figures.
    """
    argv = workload.argv()
    said = json.dumps([argv, workload.cwd, sorted(workload.env.items())])
    cwd = str(workspace.root / workload.cwd)
    env = training_environment(workload)
    reading = json.dumps([sorted(config.log.items()), config.protocol.warmup, config.protocol.interval])
    try:
        executable = launcher.find_command(argv, cwd, env)
        interpreter = host.interpreter_identity(host.find_interpreter(executable, env.get("PATH", "")))
    except GpudebugError:
        interpreter = "command not found"
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return {
        "command": short_digest(said.encode("utf-8", "surrogateescape")),
        "tree": checkout.tree,
        "interpreter": interpreter,
        "reading": short_digest(reading.encode("utf-8", "surrogateescape")),
        "device": config.device + (f" CUDA_VISIBLE_DEVICES={visible}" if visible is not None else ""),
    }


def _read(run: store.RunFolder, name: str) -> dict[str, Any]:
    """One record of a run; {} where it is not there or not readable."""
    try:
        return dict(run.read(name))
    except (GpudebugError, TypeError, ValueError):
        return {}


def _record(run: store.RunFolder) -> dict[str, Any]:
    """run.json, where the keys that decisions rest on are what gpudebug writes; {} otherwise."""
    found = _read(run, "run.json")
    devices = found.get("devices", [])
    sound = (
        isinstance(found.get("duration_s"), (int, float, NoneType))
        and isinstance(found.get("hypothesis"), (int, NoneType))
        and isinstance(found.get("identity", {}), dict)
        and isinstance(devices, list)
        and all(isinstance(d, dict) and {"uuid", "name"} <= d.keys() for d in devices)
    )
    return found if sound else {}


def _baseline(
    workspace: store.Workspace,
    document: progress.ProgressFile,
    role: str,
    wanted: Mapping[str, str],
    records: Mapping[str, Mapping[str, Any]],
) -> Baseline:
    entry = next((b for b in document.baselines if b.role == role), None)
    if entry is None:
        return Baseline(role, "not recorded yet")
    if not entry.runs:
        return Baseline(role, "its numbers have no runs behind them", unverified=True)
    evidence = []
    for name in entry.runs:
        run = workspace.run(name)
        found = _read(run, "evidence.json")
        if not run.sealed or not records.get(name) or not found:
            what = "cannot be read" if run.path.exists() else "is not here"
            return Baseline(role, f"run {name} {what}", entry.runs, unverified=True)
        if (records[name].get("role"), found.get("outcome")) != (f"baseline-{role}", "COMPLETED"):
            return Baseline(role, f"run {name} is no completed run of it", entry.runs, unverified=True)
        evidence.append(found)
    recorded = records[entry.runs[0]].get("identity", {})
    changed = [k for k, v in wanted.items() if recorded.get(k) != v]
    why = f"{' and '.join(changed)} changed since it was recorded" if changed else None
    valid = Baseline(role, why, entry.runs, tuple(evidence), tuple(dict(records[n]) for n in entry.runs))
    return replace(valid, unverified=not _bears_out(valid, entry))


def _bears_out(baseline: Baseline, entry: progress.BaselineEntry) -> bool:
    """Whether the runs say what stands in the entry."""
    name, _, said = entry.fields.get("metric", "").partition(" ")
    metric = Metric(name)
    own = not name or said.startswith(figure(metric, baseline.figure(metric)))
    return own and entry.fields.get("gpu util", "").startswith(percent(baseline.utilisation))


def _trial(workspace: store.Workspace, entry: progress.HypothesisEntry) -> Judged:
    if entry.status not in VERDICTS or not entry.runs:
        return Judged(None, False)
    run = workspace.run(entry.runs[-1])
    if not run.sealed:
        return Judged(None, False)
    try:
        verdict = dict(run.read("verdict.json"))
        said = (verdict["hypothesis"], verdict["status"])
        same = said == (entry.number, entry.status.value) and same_figures(verdict, entry.result)
        same = same and tested_change(entry.intervention) == verdict["change_digest"]
    except (GpudebugError, KeyError, TypeError, ValueError):
        return Judged(None, False)
    return Judged(verdict, same)


def tested_change(written: str | None) -> str | None:
    """The digest of an entry's change as it is written now; None where none can be read."""
    try:
        return change_digest(parse_intervention(written)) if written else None
    except InterventionError:
        return None


def _interventions(
    document: progress.ProgressFile,
) -> tuple[dict[int, Intervention], dict[int, InterventionError]]:
    """The changes of hypotheses still to be judged, and what is wrong with those that cannot be read."""
    parsed = {}
    problems = {}
    for h in document.hypotheses:
        if h.status not in (Status.UNTESTED, Status.TESTING) or not h.intervention:
            continue
        try:
            parsed[h.number] = parse_intervention(h.intervention, file=document.file, line=h.line)
        except InterventionError as e:
            problems[h.number] = e
    return parsed, problems


def _decidable(loaded: Loaded) -> machine.Campaign:
    config = loaded.config
    return machine.Campaign(
        baselines=tuple(
            machine.BaselineState(b.role, b.why, b.figure(loaded.metric)) for b in loaded.baselines.values()
        ),
        hypotheses=tuple(_hypothesis(loaded, h) for h in loaded.document.hypotheses),
        loose_runs=tuple(_loose(loaded)),
        metric=loaded.metric,
        target=config.target,
        failure=float(config.criteria.failure),
        hypothesis_budget=config.budget.hypotheses,
        device_time=_device_time(loaded),
        device_time_budget=config.budget.device_time,
    )


def _device_time(loaded: Loaded) -> float:
    """Seconds that runs of this campaign held a device; an imported run held none here."""
    return sum(
        r.get("duration_s") or 0.0 for r in loaded.records.values() if _ours(loaded, r) and r.get("devices")
    )


def _ours(loaded: Loaded, record: Mapping[str, Any]) -> bool:
    return record.get("campaign") == loaded.config.campaign


def _hypothesis(loaded: Loaded, entry: progress.HypothesisEntry) -> machine.HypothesisState:
    trial = loaded.trials[entry.number]
    intervention = loaded.interventions.get(entry.number)
    return machine.HypothesisState(
        number=entry.number,
        status=entry.status,
        mechanical=(intervention is not None and intervention.mechanical) or entry.number in loaded.problems,
        verified=trial.verified,
        after=_reached(loaded.metric, trial.verdict) if trial.verdict else None,
    )


def _reached(metric: Metric, verdict: Mapping[str, Any]) -> float | None:
    """What a trial reached of the campaign's metric; None where it was judged by another."""
    if metric.points:
        return verdict.get("after")
    return verdict.get("metric_after") if verdict.get("metric") == metric.name else None


def _loose(loaded: Loaded) -> list[machine.RunState]:
    """Runs that ask for recovery: unsealed ones, and judged ones whose entry lacks them."""
    listed = {name for h in loaded.document.hypotheses for name in h.runs}
    loose = []
    for name, record in loaded.records.items():
        run = loaded.workspace.run(name)
        number = record.get("hypothesis")
        if not run.sealed and record.get("campaign") in (loaded.config.campaign, None):
            loose.append(machine.RunState(name, sealed=False, hypothesis=number))
        elif run.sealed and _judged_unlisted(loaded, run, record, listed):
            loose.append(machine.RunState(name, sealed=True, hypothesis=number))
    return loose


def _judged_unlisted(
    loaded: Loaded, run: store.RunFolder, record: Mapping[str, Any], listed: set[str]
) -> bool:
    """Whether a sealed run holds the verdict that an entry waits for, on the change that stands there.

    Only a kill between the two leaves TESTING; an entry that a person set back to UNTESTED is tested anew.
    """
    number = record.get("hypothesis") or 0
    intervention = loaded.interventions.get(number)
    return (
        _ours(loaded, record)
        and intervention is not None
        and loaded.document.hypothesis(number).status is Status.TESTING
        and run.name not in listed
        and run.has("verdict.json")
        and _read(run, "verdict.json").get("change_digest") == change_digest(intervention)
        and not _superseded(loaded, record["hypothesis"], run.name)
    )


def change_digest(intervention: Intervention) -> str:
    """What tells one change from another."""
    return short_digest(intervention.text.encode("utf-8", "surrogateescape"))


def _superseded(loaded: Loaded, number: int, name: str) -> bool:
    """Whether a later run of the same hypothesis is in its entry already."""
    entry = loaded.document.hypothesis(number)
    return any(store.run_number(other) > store.run_number(name) for other in entry.runs)
