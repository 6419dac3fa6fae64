"""The code that a campaign measures: its tree, the changes on it by their bytes, and what is no code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from gpudebug.core import progress
from gpudebug.core.agents.setups import files as agents_files
from gpudebug.core.campaign.accepted_changes import AcceptedChange
from gpudebug.core.change.intervention import Intervention
from gpudebug.core.change.intervention import parse as parse_intervention
from gpudebug.core.config import Config
from gpudebug.core.errors import InterventionError, StoreError
from gpudebug.core.text.values import short_digest
from gpudebug.edges import git, store
from gpudebug.engine.campaign.campaign import Loaded, MeasuredCode
from gpudebug.engine.campaign.files import progress_path
from gpudebug.engine.campaign.private import refs


class MeasuredTrees(NamedTuple):
    """What the workload's baseline was measured of: the digest of its `code`, and the tree that it `ran` in,
    accepted patches included. None: not known."""

    code: str | None = None
    ran: str | None = None


class NoSuchPatch(StoreError):
    """A change names a patch that is not there."""


def tested_change(workspace: store.Workspace, written: str | None) -> str | None:
    """Return the digest of an entry's change as it is written now; None if none can be read."""
    try:
        change = parse_intervention(written) if written else None
        return change_digest(change, patch_of(workspace, change)) if change else None
    except (InterventionError, StoreError):
        return None


def patch_of(workspace: store.Workspace, change: Intervention) -> bytes | None:
    """Return the bytes of the patch that a change names; None if it names none.

    NoSuchPatch if the file is missing, StoreError if it leads out of the repository.
    """
    if change.patch is None:
        return None
    path = store.resolve_inside(workspace.root / change.patch, workspace.root)
    if not path.exists():
        raise NoSuchPatch(
            "the patch is missing",
            file=str(workspace.root / change.patch),
            next="put it back, or reword the entry",
        )
    return store.read_file(path)


def change_digest(intervention: Intervention, patch: bytes | None = None) -> str:
    """Return what sets one change apart from another: how it is written, and what its patch holds."""
    return digest_of(intervention.text, patch)


def digest_of(written: str, patch: bytes | None) -> str:
    """Return the digest of a change that is `written` like this."""
    text = written.encode("utf-8", "surrogateescape")
    return short_digest(text if patch is None else text + b"\0" + patch)


def refuse_lost_patches(workspace: store.Workspace, accepted: Sequence[progress.HypothesisEntry]) -> None:
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


def code_of(
    workspace: store.Workspace,
    config: Config,
    checkout: git.Checkout,
    stack: tuple[AcceptedChange, ...],
    session: str | None,
    measured: MeasuredTrees,
    apart: tuple[Path, ...],
) -> MeasuredCode:
    """The code that this caller measures. People move the base by recording a baseline; sessions cannot.

    Where the checkout has what was accepted by now and nothing else, the base stays. If it is lost, or
    another commit has its place, the checkout is it if the baseline says so. `apart` is what is not code.
    """
    found = (patch_of(workspace, step.intervention) for step in stack)
    patches = tuple(patch for patch in found if patch is not None)
    here = MeasuredCode(checkout.tree, patches, stack=stack)
    applied = bool(patches) and checkout.tree == measured.ran
    if session is None and not applied:
        return here
    ref = f"{refs(workspace.root, config.campaign, checkout)}/checkout"
    base = git.stored(checkout.at, ref)
    counted = git.MeasuredTree(apart, store.CONFIG)
    sure = base is not None and git.trusted(checkout.at, ref, base.commit, base.tree, counted)
    kept = MeasuredCode(base.tree, patches, base.tree != checkout.tree, stack) if base and sure else None
    if kept is not None and applied and kept.digest == measured.code:
        return replace(kept, drifted=False, applied=True)
    if session is None:
        return here
    if kept is not None:
        return kept
    known = [MeasuredCode(checkout.tree, patches[:count]).digest for count in range(len(patches) + 1)]
    return replace(here, drifted=measured.code not in (None, *known))


def code_for(loaded: Loaded, session: str | None) -> MeasuredCode:
    """Return the code that another caller would measure."""
    workspace, config, checkout = loaded.setup.workspace, loaded.setup.config, loaded.setup.checkout
    measured = measured_tree(loaded.entries.document, loaded.history.records)
    home = progress_path(workspace, config)
    return code_of(workspace, config, checkout, loaded.code.stack, session, measured, apart(workspace, home))


def measured_tree(document: progress.ProgressFile, records: Mapping[str, Mapping[str, Any]]) -> MeasuredTrees:
    """Return what the workload's baseline was measured of, as its first run records it."""
    entry = next((b for b in document.baselines if b.role == "workload" and b.runs), None)
    record = records.get(entry.runs[0], {}) if entry else {}
    return MeasuredTrees(record.get("identity", {}).get("tree") or None, record.get("checked_out"))


def look(workspace: store.Workspace, progress: Path) -> git.Checkout:
    """The code as it lies there, without what gpudebug itself, its users' notes and agents' files change."""
    return git.identify(workspace.root, apart(workspace, progress), store.CONFIG)


def apart(workspace: store.Workspace, progress: Path) -> tuple[Path, ...]:
    """Return what is not code."""
    ours = (workspace.root / name for name in ("progress", "hypotheses", ".gitignore", *agents_files()))
    return (workspace.config, progress, workspace.root / store.RUNS, *ours)
