"""What one look at a command would be valid for as a campaign's baseline, if git holds its code."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gpudebug.core import config as configs
from gpudebug.core.config import Config
from gpudebug.core.errors import GpudebugError
from gpudebug.core.inside.imported_files import recorded, spoiling
from gpudebug.edges import git, store
from gpudebug.engine.campaign.baselines import identity
from gpudebug.engine.campaign.files import progress_path
from gpudebug.engine.campaign.measured_code import look
from gpudebug.engine.run.job import MeasuredRun, PreparedRun, RunCode
from gpudebug.engine.run.measure import set_aside

_NAMED = 3


def with_premises(job: PreparedRun, directory: Path, device: str, interval: float) -> PreparedRun:
    """Return the job with its code and identity, as a campaign that `init` makes in `directory` has them.

    Unchanged where there is no git repository with a commit, or nothing that a campaign could be made of.
    """
    workspace = store.Workspace(directory)
    try:
        config = initial(job.argv, device, interval)
        code = look(workspace, progress_path(workspace, config))
        known = identity(workspace, config, config.workload, code.tree)
        return replace(job, code=RunCode(known, code))
    except (GpudebugError, ValueError):
        return job


def initial(argv: Sequence[str], device: str, interval: float) -> Config:
    """Return the settings that `init` gives a campaign of this command. Raises what a command that cannot be
    written into gpudebug.yaml does."""
    config = configs.load(configs.config_text("why", shlex.join(argv)), store.CONFIG)
    protocol = config.protocol.model_copy(update={"interval": interval})
    return config.model_copy(update={"device": device, "protocol": protocol})


def note_code(measured: MeasuredRun, root: Path) -> None:
    """Record which files of the code were written meanwhile; a run whose code changed is set aside for
    everything but its diagnosis. Before it is sealed."""
    marks, record = measured.marks, measured.record
    if marks is None:
        return
    written = recorded(git.written_since(marks))
    changed = _tree(root) != record.checked_out
    paths = spoiling(written, [None])
    noted = replace(measured, record=record.model_copy(update={"rewritten": written}))
    measured.folder.write("run.json", noted.record)
    if changed or paths:
        named = f": {', '.join(paths[:_NAMED])}" if paths else ""
        set_aside(noted, f"the code changed while the run was under way{named}")


def _tree(root: Path) -> str | None:
    workspace = store.Workspace(root)
    try:
        return look(workspace, workspace.root / "progress" / "why.md").tree
    except GpudebugError:
        return None
