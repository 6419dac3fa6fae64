"""Reads everything that a decision depends on, once: config, progress file, run folders, checkout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpudebug.core import progress
from gpudebug.core.agents.setups import files as agents_files
from gpudebug.core.campaign.accepted_changes import AcceptedChange, changes, effective
from gpudebug.core.change.intervention import Intervention
from gpudebug.core.change.intervention import parse as parse_intervention
from gpudebug.core.change.permits import Allowed
from gpudebug.core.config import Config
from gpudebug.core.errors import GpudebugError, InterventionError
from gpudebug.core.evidence import sound
from gpudebug.core.words import Status
from gpudebug.edges import git, store
from gpudebug.engine.campaign.accepted import acceptances_of, as_submitted, recorded
from gpudebug.engine.campaign.baselines import baselines_of, identities_of
from gpudebug.engine.campaign.campaign import (
    Entries,
    History,
    Loaded,
    MeasuredCode,
    Setup,
    in_force,
)
from gpudebug.engine.campaign.change_files import NoSuchPatch, patch_of
from gpudebug.engine.campaign.claims import living
from gpudebug.engine.campaign.facts import decidable
from gpudebug.engine.campaign.files import (
    progress_path,
    read,
)
from gpudebug.engine.campaign.pin_record import settings_of
from gpudebug.engine.campaign.private import refs
from gpudebug.engine.campaign.verdicts import (
    brought,
    doubted,
    judged,
    judged_runs,
    tested_before,
    unlisted,
)


def load(directory: Path, session: str | None = None) -> Loaded:
    """Read the campaign at or above `directory`. Expected errors only; nothing is written."""
    workspace, config, path, document = read(directory)
    home = progress_path(workspace, config)
    checkout = look(workspace, home)
    settings = settings_of(workspace, config, checkout)
    acceptances = acceptances_of(workspace.root, config.campaign, checkout)
    if workspace.element is not None:
        acceptances = as_submitted(acceptances, workspace.element)
    accepted = recorded(document, acceptances, session)
    _refuse_lost_patches(workspace, accepted)
    records = {name: r for name in workspace.run_names() if (r := _record(workspace.run(name)))}
    foreign = brought(workspace, checkout)
    verdicts = judged_runs(workspace, config.campaign, records)
    untold = unlisted(workspace, document, verdicts, records)
    trials = {h.number: judged(workspace, document, h, acceptances) for h in document.hypotheses}
    before = {
        h.number: tested_before(trials[h.number].change, h, untold, config.workload)
        for h in document.hypotheses
    }
    trials = doubted(trials, workspace, settings, records, foreign, before)
    stack = changes(document, in_force(accepted, trials, acceptances))
    measured = _measured_tree(document, records)
    code = _code(workspace, config, checkout, stack, session, measured, apart(workspace, home))
    if stack:
        config = config.model_copy(update={"workload": effective(config.workload, stack, config.allowed)})
    identities = identities_of(workspace, config, document, records, code.digest)
    baselines = baselines_of(
        workspace, config, document, records, identities, foreign=foreign, plays=settings.plays
    )
    interventions, problems = _interventions(document, config)
    setup = Setup(workspace, config, path, checkout, settings, session)
    leases = living(workspace, document)
    entries = Entries(document, trials, acceptances, interventions, problems, leases, session)
    history = History(records, baselines, identities, verdicts, untold)
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


def _record(run: store.RunFolder) -> dict[str, object]:
    """run.json, if the keys that decisions rest on are what gpudebug writes; {} otherwise."""
    try:
        found = run.read("run.json")
    except (GpudebugError, ValueError):
        return {}
    return found if sound.run(found) else {}


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
