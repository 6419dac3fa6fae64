"""The baselines that the run folders hold: what each is valid for, and why one is not valid now."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpudebug.core import progress
from gpudebug.core.campaign.allocation import afresh
from gpudebug.core.config import Config, Workload
from gpudebug.core.errors import GpudebugError
from gpudebug.core.progress.surplus import in_baseline
from gpudebug.core.statistics.metrics import GPU_UTIL, Metric
from gpudebug.core.statistics.numbers import UNKNOWN, figure, percent
from gpudebug.core.statistics.units import AUTO, set_in
from gpudebug.core.text.values import short_digest
from gpudebug.core.verdict.turns import runs_of
from gpudebug.core.words import ended_as_planned
from gpudebug.edges import clusters, host, launcher, store
from gpudebug.engine.campaign.allocations import allocation_of_run
from gpudebug.engine.campaign.campaign import CampaignBaseline, Identities, Records
from gpudebug.engine.campaign.files import ROLES, stored_record, training_environment, workload_of
from gpudebug.engine.campaign.verdicts import played_back, why_brought


def identities_of(
    workspace: store.Workspace, config: Config, document: progress.ProgressFile, records: Records, tree: str
) -> dict[str, dict[str, str]]:
    """Return what the baseline of each role is valid for now; `tree` is the digest of the code."""
    found = {
        role: identity(workspace, config, workload, tree)
        for role in ROLES
        if (workload := workload_of(config, role)) is not None
    }
    return as_on_nodes(found, records, config, {b.role: b.runs for b in document.baselines})


def baselines_of(
    workspace: store.Workspace,
    config: Config,
    document: progress.ProgressFile,
    records: Records,
    identities: Identities,
    *,
    foreign: Collection[str],
    plays: bool,
) -> dict[str, CampaignBaseline]:
    """Return the baseline of each role. `foreign` are the runs that came with the repository, `plays` says
    that recordings are the campaign's device.
    """
    found = {}
    for role, wanted in identities.items():
        one = _brought(_baseline(workspace, document, role, wanted, records), foreign)
        one = one if plays else _played_back(one)
        found[role] = replace(of_this_allocation(one), devices=config.criteria.devices)
    return found


def identity(workspace: store.Workspace, config: Config, workload: Workload, tree: str) -> dict[str, str]:
    """Return what a baseline of this workload is valid for, a digest or name each.

    `reading` is how its log and samples are read: a pattern or a warm-up that changed gives other figures.
    """
    argv = workload.argv()
    server = workload.server
    served = [] if server is None else [server.argv(), server.cwd, sorted(server.env.items())]
    text = json.dumps([argv, workload.cwd, sorted(workload.env.items()), *served])
    cwd = str(workspace.root / workload.cwd)
    env = training_environment(workload)
    how = [sorted(config.patterns.items()), config.protocol.warmup, config.protocol.interval]
    reading = json.dumps([*how, *([config.phase] if config.phase is not None else [])])
    try:
        executable = launcher.find_command(argv, cwd, env)
        interpreter = host.interpreter_identity(host.find_interpreter(executable, env.get("PATH", "")))
    except GpudebugError:
        interpreter = "command not found"
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return {
        "command": short_digest(text.encode("utf-8", "surrogateescape")),
        "tree": tree,
        "interpreter": interpreter,
        "reading": short_digest(reading.encode("utf-8", "surrogateescape")),
        "device": config.device + (f" CUDA_VISIBLE_DEVICES={visible}" if visible is not None else ""),
    }


def _baseline(
    workspace: store.Workspace,
    document: progress.ProgressFile,
    role: str,
    wanted: Mapping[str, str],
    records: Mapping[str, Mapping[str, Any]],
) -> CampaignBaseline:
    entry = next((b for b in document.baselines if b.role == role), None)
    if entry is None:
        return CampaignBaseline(role, "not recorded yet")
    if not entry.runs:
        return CampaignBaseline(role, "its numbers have no runs behind them", unverified=True)
    evidence = []
    for name in entry.runs:
        run = workspace.run(name)
        found = stored_record(run, "evidence.json")
        whole = run.sealed and records.get(name) and found
        if not whole or not run.intact("run.json", "evidence.json"):
            what = "is not as it was sealed" if whole else "cannot be read"
            what = what if run.path.exists() else "is not here"
            return CampaignBaseline(role, f"run {name} {what}", entry.runs, unverified=True)
        if records[name].get("role") != f"baseline-{role}" or not ended_as_planned(found.get("outcome")):
            return CampaignBaseline(
                role, f"run {name} is not a completed run of it", entry.runs, unverified=True
            )
        evidence.append(found)
    if left_out := _left_out(entry, records):
        return CampaignBaseline(
            role, f"its recording has {', '.join(left_out)} too", entry.runs, unverified=True
        )
    recorded = records[entry.runs[0]].get("identity", {})
    changed = [k for k, v in wanted.items() if recorded.get(k) != v]
    why = f"{' and '.join(changed)} changed since it was recorded" if changed else None
    valid = CampaignBaseline(
        role, why, entry.runs, tuple(evidence), tuple(dict(records[n]) for n in entry.runs)
    )
    return replace(valid, unverified=not _bears_out(valid, entry) or bool(in_baseline(document, entry)))


def _left_out(entry: progress.BaselineEntry, records: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Completed runs like those of a baseline that its entry leaves out: any if it has fewer than
    `runs_of` its role, else those between its first and its last. No entry lists two recordings."""
    one = records[entry.runs[0]]
    if str(one.get("reason") or "").startswith("imported"):
        return []
    # A run beside a trial is under the claim on its hypothesis.
    same = ("role", "campaign", "identity", "claim", "set_aside")
    alike = [
        name
        for name, r in records.items()
        if ended_as_planned(r.get("outcome"))
        and all(r.get(key) == one.get(key) for key in same)
        # Two allocations make two recordings.
        and allocation_of_run(r) == allocation_of_run(one)
    ]
    if len(entry.runs) >= runs_of(entry.role):
        listed = sorted(map(store.run_number, entry.runs))
        alike = [name for name in alike if listed[0] < store.run_number(name) < listed[-1]]
    return [f"runs/{name}" for name in alike if name not in entry.runs]


def _brought(baseline: CampaignBaseline, foreign: Collection[str]) -> CampaignBaseline:
    """Return the baseline, no valid one if a run of it came with the repository."""
    found = {*baseline.runs} & {*foreign}
    return replace(baseline, why=why_brought(found)) if found else baseline


def _played_back(baseline: CampaignBaseline) -> CampaignBaseline:
    """Return the baseline, no valid one if a run of it was played back."""
    records = dict(zip(baseline.runs, baseline.records, strict=False))
    if not played_back(baseline.runs, records):
        return baseline
    return replace(baseline, why="its runs were played back from recordings")


def _bears_out(baseline: CampaignBaseline, entry: progress.BaselineEntry) -> bool:
    """Tell whether the runs match the entry."""
    name, _, value = entry.fields.get("metric", "").partition(" ")
    metric = metric_of(entry)
    own = not name or _shows(value, figure(metric, baseline.figure(metric)))
    return own and _shows(entry.fields.get("gpu util", ""), percent(baseline.utilisation))


def metric_of(entry: progress.BaselineEntry) -> Metric:
    """Return the metric that an entry names, with the unit of work that it says was set; else utilisation.

    The campaign's may have changed since.
    """
    name, unit = entry.fields.get("metric", "").partition(" ")[0], set_in(entry.fields.get("work", ""))
    return Metric(name or GPU_UTIL, work=("" if unit == AUTO else unit, ""))


_INTERVAL = re.compile(r" \(95% CI [-+\d.]+ to [-+\d.]+, \d+ runs?\)|")


def _shows(text: str, value: str) -> bool:
    """Tell whether a figure of an entry is this value, with its interval behind it, and says nothing else."""
    if value == UNKNOWN:
        return text.startswith(value)
    return text.startswith(value) and _INTERVAL.fullmatch(text[len(value) :]) is not None


def of_this_allocation(baseline: CampaignBaseline) -> CampaignBaseline:
    """Return the baseline, no valid one if this process measures in another allocation than it did."""
    here = clusters.inside()
    if here is None or baseline.why is not None:
        return baseline
    why = afresh(map(allocation_of_run, baseline.records), here.allocation)
    return replace(baseline, why=why) if why else baseline


_OF_NODES = ("interpreter", "device")


def as_on_nodes(
    identities: Mapping[str, dict[str, str]],
    records: Mapping[str, Mapping[str, Any]],
    config: Config,
    listed: Mapping[str, Sequence[str]],
) -> dict[str, dict[str, str]]:
    """Return what baselines are valid for, by role; on a login node with what nodes alone know as recorded:
    by the runs that are `listed` of a role, else by its newest."""
    if clusters.cluster_of(config.runner, Path()) is None or clusters.inside() is not None:
        return dict(identities)
    found = {}
    for role, identity in identities.items():
        mine = config.campaign, f"baseline-{role}"
        own = [records[name] for name in listed.get(role, ()) if name in records]
        found_of = own or records.values()
        made = [r for r in found_of if (r.get("campaign"), r.get("role")) == mine and r.get("node")]
        recorded: Mapping[str, str] = made[-1].get("identity", {}) if made else {}
        known = {key: recorded[key] for key in _OF_NODES if key in recorded}
        if known.get("device", "").partition(" CUDA_VISIBLE_DEVICES=")[0] != config.device:
            known.pop("device", None)
        found[role] = {**identity, **known}
    return found
