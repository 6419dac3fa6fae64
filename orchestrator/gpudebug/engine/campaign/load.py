"""Reads everything that a decision depends on, once: config, progress file, run folders, checkout."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpudebug.core import progress
from gpudebug.core.agents.setups import files as agents_files
from gpudebug.core.campaign.accepted_changes import AcceptedChange, changes, effective
from gpudebug.core.change.intervention import Intervention
from gpudebug.core.change.intervention import parse as parse_intervention
from gpudebug.core.change.permits import Allowed
from gpudebug.core.config import Config, Workload
from gpudebug.core.errors import GpudebugError, InterventionError, StoreError
from gpudebug.core.evidence import sound
from gpudebug.core.progress.surplus import in_baseline, in_hypothesis
from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.metrics import Metric
from gpudebug.core.statistics.numbers import UNKNOWN, figure, percent, same_figures
from gpudebug.core.text.values import short_digest
from gpudebug.core.verdict.turns import runs_of
from gpudebug.core.words import VERDICTS, Status, ended_as_planned
from gpudebug.edges import git, host, launcher, store
from gpudebug.engine.campaign.accepted import Acceptances, acceptances_of, as_submitted, recorded
from gpudebug.engine.campaign.allocations import allocation_of_run, as_on_nodes, of_this_allocation
from gpudebug.engine.campaign.campaign import (
    CampaignBaseline,
    Entries,
    History,
    Judged,
    Loaded,
    MeasuredCode,
    Setup,
    in_force,
)
from gpudebug.engine.campaign.change_files import NoSuchPatch, patch_of, tested_change
from gpudebug.engine.campaign.claims import living
from gpudebug.engine.campaign.facts import decidable
from gpudebug.engine.campaign.files import (
    ROLES,
    progress_path,
    read,
    stored_record,
    stored_verdict,
    training_environment,
    workload_of,
)
from gpudebug.engine.campaign.pin_record import ComparedSettings, settings_of
from gpudebug.engine.campaign.private import refs
from gpudebug.engine.campaign.terms import doubts, played_back
from gpudebug.engine.campaign.tracked_runs import brought, why_brought
from gpudebug.engine.campaign.unlisted import UNLISTED, Unlisted, judged_runs, tested_before, unlisted


def load(directory: Path, session: str | None = None) -> Loaded:
    """Read the campaign at or above `directory`. Expected errors only; nothing is written."""
    workspace, config, path, document = read(directory)
    home = progress_path(workspace, config)
    checkout = look(workspace, home)
    settings = settings_of(workspace, config, checkout)
    acceptances = acceptances_of(workspace.root, config.campaign, checkout)
    if workspace.element is not None:
        acceptances = as_submitted(acceptances, workspace.element)
    trials = {
        h.number: replace(_trial(workspace, document, h), held=_held(workspace, acceptances, h))
        for h in document.hypotheses
    }
    accepted = recorded(document, acceptances, session)
    _refuse_lost_patches(workspace, accepted)
    records = {name: r for name in workspace.run_names() if (r := _record(workspace.run(name)))}
    foreign = brought(workspace, checkout)
    judged = judged_runs(workspace, config.campaign, records)
    untold = unlisted(workspace, document, judged, records)
    for h in document.hypotheses:
        before = tested_before(workspace, h, untold, config.workload)
        trials[h.number] = _doubted(settings, workspace, trials[h.number], records, foreign, before)
    stack = changes(document, in_force(accepted, trials, acceptances))
    measured = _measured_tree(document, records)
    code = _code(workspace, config, checkout, stack, session, measured, apart(workspace, home))
    if stack:
        config = config.model_copy(update={"workload": effective(config.workload, stack, config.allowed)})
    identities = {
        role: identity(workspace, config, workload, code.digest)
        for role in ROLES
        if (workload := workload_of(config, role)) is not None
    }
    listed = {b.role: b.runs for b in document.baselines}
    identities = as_on_nodes(identities, records, config, listed)
    baselines = {
        role: replace(
            _baseline(workspace, document, role, identities[role], records),
            devices=config.criteria.devices,
        )
        for role in identities
    }
    baselines = {role: _brought(found, foreign) for role, found in baselines.items()}
    if not settings.plays:
        baselines = {role: _played_back(workspace, found) for role, found in baselines.items()}
    baselines = {role: of_this_allocation(found) for role, found in baselines.items()}
    interventions, problems = _interventions(document, config)
    setup = Setup(workspace, config, path, checkout, settings, session)
    leases = living(workspace, document)
    entries = Entries(document, trials, acceptances, interventions, problems, leases, session)
    history = History(records, baselines, identities, judged, untold)
    return Loaded(setup, entries, history, code, decidable(setup, entries, history, code))


def _refuse_lost_patches(workspace: store.Workspace, accepted: Sequence[progress.HypothesisEntry]) -> None:
    """An accepted patch that is gone must not go from the base without a word: its runs still have it."""
    for h in accepted:
        try:
            patch = parse_intervention(h.intervention or "").patch
        except InterventionError:
            continue
        if patch is None or (workspace.root / patch).exists():
            continue
        kept = next((r for name in h.runs if (r := workspace.run(name)).has("change.patch")), None)
        if kept is not None:
            raise NoSuchPatch(
                f"the patch of accepted hypothesis {h.number} is missing",
                file=str(workspace.root / patch),
                next=f"cp runs/{kept.name}/change.patch {patch}",
            )


def _code(
    workspace: store.Workspace,
    config: Config,
    checkout: git.Checkout,
    stack: tuple[AcceptedChange, ...],
    session: str | None,
    measured: str | None,
    apart: tuple[Path, ...],
) -> MeasuredCode:
    """The code that this caller measures. People move the base by recording a baseline; sessions cannot.

    If the base is lost, or another commit has its place, the checkout is it if `measured`, the tree of the
    baseline, says so. `apart` is what is not code.
    """
    found = (patch_of(workspace, step.intervention) for step in stack)
    patches = tuple(patch for patch in found if patch is not None)
    if session is None:
        return MeasuredCode(checkout.tree, patches, stack=stack)
    ref = f"{refs(workspace.root, config.campaign, checkout)}/checkout"
    base = git.stored(checkout.at, ref)
    counted = git.MeasuredTree(apart, store.CONFIG)
    if base is not None and git.trusted(checkout.at, ref, base.commit, base.tree, counted):
        return MeasuredCode(base.tree, patches, base.tree != checkout.tree, stack)
    known = [MeasuredCode(checkout.tree, patches[:count]).digest for count in range(len(patches) + 1)]
    return MeasuredCode(checkout.tree, patches, measured not in (None, *known), stack)


def code_for(loaded: Loaded, session: str | None) -> MeasuredCode:
    """Return the code that another caller would measure."""
    workspace, config, checkout = loaded.setup.workspace, loaded.setup.config, loaded.setup.checkout
    measured = _measured_tree(loaded.entries.document, loaded.history.records)
    home = progress_path(workspace, config)
    return _code(workspace, config, checkout, loaded.code.stack, session, measured, apart(workspace, home))


def _measured_tree(document: progress.ProgressFile, records: Mapping[str, Mapping[str, Any]]) -> str | None:
    """The tree that the workload's baseline was measured of, as its first run records; None if none does."""
    entry = next((b for b in document.baselines if b.role == "workload" and b.runs), None)
    found = records.get(entry.runs[0], {}).get("identity", {}).get("tree") if entry else None
    return str(found) if found else None


def look(workspace: store.Workspace, progress: Path) -> git.Checkout:
    """The code as it lies there, without what gpudebug itself, its users' notes and agents' files change."""
    return git.identify(workspace.root, apart(workspace, progress), store.CONFIG)


def apart(workspace: store.Workspace, progress: Path) -> tuple[Path, ...]:
    """Return what is not code."""
    ours = (workspace.root / name for name in ("progress", "hypotheses", ".gitignore", *agents_files()))
    return (workspace.config, progress, workspace.root / store.RUNS, *ours)


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
    reading = json.dumps([sorted(config.patterns.items()), config.protocol.warmup, config.protocol.interval])
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


def _record(run: store.RunFolder) -> dict[str, object]:
    """run.json, if the keys that decisions rest on are what gpudebug writes; {} otherwise."""
    try:
        found = run.read("run.json")
    except (GpudebugError, ValueError):
        return {}
    return found if sound.run(found) else {}


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


def _played_back(workspace: store.Workspace, baseline: CampaignBaseline) -> CampaignBaseline:
    """Return the baseline, no valid one if a run of it was played back."""
    records = dict(zip(baseline.runs, baseline.records, strict=False))
    if not played_back(workspace, baseline.runs, records):
        return baseline
    return replace(baseline, why="its runs were played back from recordings")


def _bears_out(baseline: CampaignBaseline, entry: progress.BaselineEntry) -> bool:
    """Tell whether the runs match the entry."""
    name, _, value = entry.fields.get("metric", "").partition(" ")
    metric = Metric(name)
    own = not name or _shows(value, figure(metric, baseline.figure(metric)))
    return own and _shows(entry.fields.get("gpu util", ""), percent(baseline.utilisation))


_INTERVAL = re.compile(r" \(95% CI [-+\d.]+ to [-+\d.]+, \d+ runs?\)|")


def _shows(text: str, value: str) -> bool:
    """Tell whether a figure of an entry is this value, with its interval behind it, and says nothing else."""
    if value == UNKNOWN:
        return text.startswith(value)
    return text.startswith(value) and _INTERVAL.fullmatch(text[len(value) :]) is not None


def _trial(
    workspace: store.Workspace, document: progress.ProgressFile, entry: progress.HypothesisEntry
) -> Judged:
    if entry.status not in VERDICTS or not entry.runs:
        return Judged(None, False)
    run = workspace.run(entry.runs[-1])
    if not run.intact("verdict.json"):
        return Judged(None, False)
    verdict = stored_verdict(run)
    if verdict is None:
        return Judged(None, False)
    try:
        numbers.result_fields(verdict)
        recorded = (verdict["hypothesis"], verdict["status"])
        same = recorded == (entry.number, entry.status.value) and same_figures(verdict, entry.result)
        same = same and tested_change(workspace, entry.intervention) == verdict["change_digest"]
    except (GpudebugError, LookupError, TypeError, ValueError, ArithmeticError, AttributeError):
        return Judged(None, False)
    return Judged(verdict, same and not in_hypothesis(document, entry))


def _held(workspace: store.Workspace, acceptances: Acceptances, entry: progress.HypothesisEntry) -> bool:
    """Tell whether verdict and change of an entry are those that `accept` recorded."""
    kept = acceptances.of(entry)
    if kept is None or tested_change(workspace, entry.intervention) != kept.change:
        return False
    try:
        return store.file_digest(workspace.run(kept.run).path / "verdict.json") == kept.verdict
    except StoreError:
        return False


def _doubted(
    settings: ComparedSettings,
    workspace: store.Workspace,
    judged: Judged,
    records: Mapping[str, Mapping[str, Any]],
    foreign: Collection[str],
    before: Sequence[Unlisted],
) -> Judged:
    lines = tuple(f"{UNLISTED}: {one.text}" for one in before)
    return replace(judged, doubts=doubts(settings, workspace, judged.verdict, records, foreign, lines))


def _interventions(
    document: progress.ProgressFile, config: Config
) -> tuple[dict[int, Intervention], dict[int, InterventionError]]:
    """The changes of hypotheses still to be judged, and what is wrong with those that cannot be tested."""
    argv, allowed = config.workload.argv(), config.allowed
    parsed = {}
    problems = {}
    for h in document.hypotheses:
        if h.status not in (Status.UNTESTED, Status.TESTING) or not h.intervention:
            continue
        try:
            change = parse_intervention(h.intervention, file=document.file, line=h.line)
            if h.status is Status.UNTESTED:
                _refuse_forbidden(change, argv, allowed, document.file, h.line)
            parsed[h.number] = change
        except InterventionError as e:
            problems[h.number] = e
    return parsed, problems


def _refuse_forbidden(
    change: Intervention, argv: Sequence[str], allowed: Allowed, file: str, line: int
) -> None:
    """InterventionError, at its place, for a change that no hypothesis may make."""
    try:
        change.refuse_forbidden(argv, allowed)
    except InterventionError as e:
        raise InterventionError(e.message, file=file, line=line, next=e.next) from None
