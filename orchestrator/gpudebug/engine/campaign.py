"""Reads everything that a decision depends on, once: config, progress file, run folders, checkout."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gpudebug.core import config as configs
from gpudebug.core import machine, progress
from gpudebug.core.config import Config, Workload
from gpudebug.core.digests import short_digest
from gpudebug.core.errors import ConfigError, GpudebugError, InterventionError
from gpudebug.core.intervention import Intervention
from gpudebug.core.intervention import parse as parse_intervention
from gpudebug.core.present import percent, same_figures
from gpudebug.core.words import VERDICTS, Status
from gpudebug.edges import host, launcher, snapshot, store

ROLES = ("workload", "reference")


@dataclass(frozen=True)
class Trial:
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
        known = [e["utilisation"] for e in self.evidence if e.get("utilisation") is not None]
        return sum(known) / len(known) if known else None


@dataclass
class Loaded:
    """A campaign with everything at hand. `records` holds run.json of every run folder, {} if unreadable."""

    workspace: store.Workspace
    config: Config
    progress_path: Path
    document: progress.ProgressFile
    checkout: snapshot.Checkout
    identities: dict[str, dict[str, str]]
    records: dict[str, dict[str, Any]]
    baselines: dict[str, Baseline]
    trials: dict[int, Trial]
    interventions: dict[int, Intervention] = field(default_factory=dict)
    problems: dict[int, InterventionError] = field(default_factory=dict)
    campaign: machine.Campaign = field(init=False)

    def __post_init__(self) -> None:
        self.campaign = _decidable(self)

    @property
    def roles(self) -> tuple[str, ...]:
        return tuple(r for r in ROLES if workload_of(self.config, r) is not None)


def workload_of(config: Config, role: str) -> Workload | None:
    return config.workload if role == "workload" else config.reference


def find(directory: Path) -> store.Workspace:
    root = store.find_root(directory)
    if root is None:
        raise ConfigError(
            "no gpudebug.yaml here or in a folder above",
            file=str(directory),
            next="gpudebug init --command 'YOUR TRAINING COMMAND'",
        )
    return store.Workspace(root)


def read_config(workspace: store.Workspace) -> Config:
    data = store.read_file(workspace.config)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as e:
        line = data[: e.start].count(b"\n") + 1
        raise ConfigError(
            "not UTF-8", file=str(workspace.config), line=line, next="save it as UTF-8"
        ) from None
    return configs.load(text, str(workspace.config))


def progress_path(workspace: store.Workspace, config: Config) -> Path:
    path = workspace.root / config.progress
    store.resolve_inside(path, workspace.root)
    return path


def read_progress(path: Path) -> progress.ProgressFile:
    if not path.exists():
        return progress.parse(b"", str(path))
    return progress.parse(store.read_file(path), str(path))


def load(directory: Path) -> Loaded:
    """Read the campaign at or above `directory`. Expected errors only; nothing is written."""
    workspace = find(directory)
    config = read_config(workspace)
    path = progress_path(workspace, config)
    document = read_progress(path)
    checkout = snapshot.identify(
        workspace.root, (workspace.config, path, workspace.runs, workspace.root / "progress")
    )
    identities = {
        role: identity(workspace, config, workload, checkout)
        for role in ROLES
        if (workload := workload_of(config, role)) is not None
    }
    records = {name: _read(workspace.run(name), "run.json") for name in workspace.run_names()}
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


def training_environment(workload: Workload) -> dict[str, str]:
    return {**os.environ, **workload.env}


def identity(
    workspace: store.Workspace, config: Config, workload: Workload, checkout: snapshot.Checkout
) -> dict[str, str]:
    """What a baseline of this workload is valid for (contract, section 5), a digest or name each."""
    argv = workload.argv()
    said = json.dumps([argv, workload.cwd, sorted(workload.env.items())])
    cwd = str(workspace.root / workload.cwd)
    try:
        executable = launcher.find_command(argv, cwd, training_environment(workload))
        interpreter = host.interpreter_identity(host.find_interpreter(argv, executable))
    except GpudebugError:
        interpreter = "command not found"
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return {
        "command": short_digest(said.encode("utf-8", "surrogateescape")),
        "tree": checkout.tree,
        "interpreter": interpreter,
        "device": config.device + (f" CUDA_VISIBLE_DEVICES={visible}" if visible is not None else ""),
    }


def _read(run: store.RunFolder, name: str) -> dict[str, Any]:
    """One record of a run; {} where it is not there or not readable."""
    try:
        return dict(run.read(name))
    except (GpudebugError, TypeError, ValueError):
        return {}


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
    said = entry.fields.get("gpu util", "")
    return replace(valid, unverified=not said.startswith(percent(valid.utilisation)))


def _trial(workspace: store.Workspace, entry: progress.HypothesisEntry) -> Trial:
    if entry.status not in VERDICTS or not entry.runs:
        return Trial(None, False)
    run = workspace.run(entry.runs[-1])
    if not run.sealed:
        return Trial(None, False)
    try:
        verdict = dict(run.read("verdict.json"))
        said = (verdict["hypothesis"], verdict["status"])
        same = said == (entry.number, entry.status.value) and same_figures(verdict, entry.result)
    except (GpudebugError, KeyError, TypeError, ValueError):
        return Trial(None, False)
    return Trial(verdict, same)


def _interventions(
    document: progress.ProgressFile,
) -> tuple[dict[int, Intervention], dict[int, InterventionError]]:
    """The changes of UNTESTED hypotheses, and what is wrong with those that cannot be read."""
    parsed = {}
    problems = {}
    for h in document.hypotheses:
        if h.status is not Status.UNTESTED or not h.intervention:
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
            machine.BaselineState(b.role, b.why, b.utilisation) for b in loaded.baselines.values()
        ),
        hypotheses=tuple(_hypothesis(loaded, h) for h in loaded.document.hypotheses),
        loose_runs=tuple(_loose(loaded)),
        target=config.target,
        failure=float(config.criteria.failure),
        hypothesis_budget=config.budget.hypotheses,
        device_time=sum(r.get("duration_s") or 0.0 for r in loaded.records.values() if _ours(loaded, r)),
        device_time_budget=config.budget.device_time,
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
        after=trial.verdict.get("after") if trial.verdict else None,
    )


def _loose(loaded: Loaded) -> list[machine.RunState]:
    """Runs that ask for recovery: unsealed ones, and judged ones whose entry lacks them."""
    listed = {name for h in loaded.document.hypotheses for name in h.runs}
    loose = []
    for name, record in loaded.records.items():
        run = loaded.workspace.run(name)
        number = record.get("hypothesis")
        if not run.sealed:
            loose.append(machine.RunState(name, sealed=False, hypothesis=number))
        elif _judged_unlisted(loaded, run, record, listed) and not _superseded(loaded, number, name):
            loose.append(machine.RunState(name, sealed=True, hypothesis=number))
    return loose


def _judged_unlisted(
    loaded: Loaded, run: store.RunFolder, record: Mapping[str, Any], listed: set[str]
) -> bool:
    """Whether a sealed run holds a verdict of a hypothesis in the file that does not list it."""
    return (
        _ours(loaded, record)
        and record.get("hypothesis") in loaded.trials
        and run.name not in listed
        and run.has("verdict.json")
    )


def _superseded(loaded: Loaded, number: int | None, name: str) -> bool:
    """Whether a later run of the same hypothesis is in its entry already."""
    entry = next(h for h in loaded.document.hypotheses if h.number == number)
    return any(other > name for other in entry.runs)
