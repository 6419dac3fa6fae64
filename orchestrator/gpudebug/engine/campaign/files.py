"""What people and gpudebug wrote of a campaign: its configuration and its progress file."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gpudebug.core import config as configs
from gpudebug.core import progress
from gpudebug.core.config import Config, ServerSettings, Workload
from gpudebug.core.errors import ConfigError, GpudebugError, StoreError
from gpudebug.core.evidence import sound
from gpudebug.core.words import VERDICTS, device_kind
from gpudebug.edges import clusters, store
from gpudebug.edges.clusters.shared import cluster_file
from gpudebug.engine.campaign.links import refuse_links

if TYPE_CHECKING:
    from gpudebug.core.redaction.redact import Redactor

_GOAL = 2000
_LARGEST_CONFIG = 16 << 20
_LARGEST_PROGRESS = 64 << 20
_MARKDOWN = (".md", ".markdown")
# A heading of a progress file that has no entries yet: its own, or that of a part.
# Markdown in a folder of this name is meant for gpudebug, whatever it holds so far.
_USUAL = "progress"
_WAITING = re.compile(rb"^[ \t>]*#{1,6}[^\n]*\b(hypothes[ei]s|baselines?|gpu|gpudebug)\b", re.I | re.M)
ROLES = ("workload", "reference")


class Written(NamedTuple):
    """What people and gpudebug wrote of a campaign: no runs, no code."""

    workspace: store.Workspace
    config: Config
    progress_path: Path
    document: progress.ProgressFile


def read(directory: Path) -> Written:
    """Config and progress file of the campaign at or above `directory`. Expected errors only."""
    workspace = find(directory)
    config = read_config(workspace)
    refuse_other_campaign(workspace, config)
    path = progress_path(workspace, config)
    if workspace.element is not None:
        path = workspace.runs / store.ELEMENT_PROGRESS
    document = seen(workspace, read_progress(path))
    workspace.scrub, workspace.scrub_prose = _scrubs(config)
    workspace.campaign = config.campaign
    return Written(workspace, config, path, document)


def refuse_other_campaign(workspace: store.Workspace, config: Config) -> None:
    """ConfigError in an element of a job array that is of another campaign than gpudebug.yaml names."""
    note = store.Elements(workspace).note(workspace.element) if workspace.element is not None else None
    if note is not None and note.campaign != config.campaign:
        raise ConfigError(
            f"names campaign {config.campaign} now, and hypothesis {note.hypothesis} is {note.campaign}'s",
            file=str(workspace.config),
            next=f"put campaign {note.campaign} back, then gpudebug submit",
        )


def workload_of(config: Config, role: str) -> Workload | None:
    return config.workload if role == "workload" else config.reference


def find(directory: Path) -> store.Workspace:
    """Return the campaign at or above a folder. ConfigError if there is none.

    In the folder of a job array's element that is the element's own view for its worker alone.
    """
    element = store.find_element(directory.absolute())
    if element is not None and not _works_in(*element):
        return find(element[0])
    root = store.find_root(directory if element is None else element[0])
    if root is None:
        raise ConfigError(
            "no gpudebug.yaml here or in a folder above",
            file=str(directory),
            next="gpudebug init --command 'YOUR TRAINING COMMAND'",
        )
    workspace = store.Workspace(root)
    refuse_links(workspace)
    return workspace if element is None else store.Workspace(root, element=element[1])


def _works_in(root: Path, element: str) -> bool:
    """Tell whether this process is in the job of an element; of one whose note is gone, in that of any."""
    job = clusters.inside()
    if job is None or job.element is None:
        return False
    note = store.Elements(store.Workspace(root)).note(element)
    return note is None or (note.array, note.hypothesis) == (job.array, job.element)


def read_config(workspace: store.Workspace) -> Config:
    """gpudebug.yaml, complete with its defaults. ConfigError with the line of what is wrong."""
    data = store.read_file(workspace.config, _LARGEST_CONFIG, follow=True)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as e:
        line = data[: e.start].count(b"\n") + 1
        raise ConfigError(
            "not UTF-8", file=str(workspace.config), line=line, next="save it as UTF-8"
        ) from None
    return configs.load(text, str(workspace.config), cluster=cluster_defaults())


def cluster_defaults() -> Mapping[str, Any]:
    """Return what `runner.slurm` inherits on this cluster, as it is written there."""
    found = cluster_file()
    return {} if found is None else configs.cluster_defaults(*found)


def progress_path(workspace: store.Workspace, config: Config) -> Path:
    """Return where the progress file is or will be. StoreError if a link leads out of the repository."""
    path = workspace.root / config.progress
    target = store.resolve_inside(path, workspace.root)
    if target == workspace.config.resolve():
        raise _no_progress_file(path, "is gpudebug.yaml itself")
    if not target.exists() and target.suffix.lower() not in _MARKDOWN:
        raise _no_progress_file(path, "would be a new file that is not Markdown")
    return path


def _no_progress_file(path: Path, why: str) -> StoreError:
    return StoreError(
        why, file=str(path), next="set progress: in gpudebug.yaml to a Markdown file of its own"
    )


def read_progress(path: Path) -> progress.ProgressFile:
    """Return the progress file; an empty one if there is none yet. ProgressError if it is broken."""
    if not path.exists():
        return progress.parse(b"", str(path))
    document = progress.parse(store.read_file(path, _LARGEST_PROGRESS, follow=True), str(path))
    if document.data.strip() and not (document.baselines or document.hypotheses):
        _refuse_other_text(path, document.data)
    return document


def _refuse_other_text(path: Path, data: bytes) -> None:
    """StoreError if a file without entries is not one that is waiting for them: they would be appended."""
    if path.resolve().suffix.lower() not in _MARKDOWN:
        raise _no_progress_file(path, "is not a progress file, and not Markdown")
    if path.parent.name != _USUAL and not _WAITING.search(data):
        raise StoreError(
            "is not a progress file: it has no baselines, no hypotheses and no heading for them",
            file=str(path),
            next="add the line '## Hypotheses' to it, or set progress: in gpudebug.yaml to another file",
        )


def seen(workspace: store.Workspace, document: progress.ProgressFile) -> progress.ProgressFile:
    """Return what of a progress file is the campaign's; in an element of a job array what it tests, and what
    was judged before, and the baseline that it records itself."""
    if workspace.element is None:
        return document
    note = store.Elements(workspace).note(workspace.element)
    return replace(
        document,
        baselines=tuple(b for b in document.baselines if any(workspace.owns(name) for name in b.runs)),
        hypotheses=tuple(
            h
            for h in document.hypotheses
            if h.status in VERDICTS or (note is not None and h.number == note.hypothesis)
        ),
    )


def progress_head(config: Config) -> str:
    """Return how a new progress file begins. The goal in it is harmless and has no secret."""
    from gpudebug.edges import templates

    _, scrub = _scrubs(config)
    goal = scrub(progress.harmless(scrub(config.goal), limit=_GOAL))
    return templates.render("progress.md.j2", campaign=config.campaign, goal=goal)


def _scrubs(config: Config) -> tuple[store.Scrub, store.Scrub]:
    """What takes the secrets of every command of this campaign out of a text, and, of prose that somebody
    typed, what of the environment may be one; built when it is first used."""

    @cache
    def redactor() -> Redactor:
        return redactor_of(config)

    return lambda text: redactor().redact(text), lambda text: redactor().quoted(text)


def redactor_of(config: Config) -> Redactor:
    """Return what knows the secrets of every command of a campaign and of its surroundings."""
    from gpudebug.core.redaction.redact import Redactor

    workloads = [w for role in ROLES if (w := workload_of(config, role)) is not None]
    env = {k: v for w in workloads for k, v in training_environment(w).items()}
    return Redactor(env, [word for w in workloads for word in w.argv()])


# Where git looks, set by a hook or an alias that gpudebug was called from: no matter of the training's.
_GIT_PLACES = frozenset(
    {
        *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX"),
        *("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE"),
    }
)


def training_environment(workload: Workload | ServerSettings) -> dict[str, str]:
    """Return the variables that a training starts with: ours, and the workload's own."""
    ours = {name: value for name, value in os.environ.items() if name not in _GIT_PLACES}
    return {**ours, **workload.env}


_SOUND = {"verdict.json": sound.verdict, "evidence.json": sound.evidence}


def stored_record(run: store.RunFolder, name: str) -> dict[str, Any]:
    """One record of a run; {} if it is missing, not readable, or not what gpudebug writes."""
    try:
        return dict(record_of(run, name))
    except (GpudebugError, TypeError, ValueError):
        return {}


def stored_verdict(run: store.RunFolder) -> dict[str, Any] | None:
    """verdict.json of a run; None if it is missing, not readable or not what gpudebug writes."""
    return stored_record(run, "verdict.json") or None


def record_of(run: store.RunFolder, name: str) -> Any:
    """One record of a run. StoreError if it is missing, not readable, or not what gpudebug writes."""
    found = run.read(name)
    if not _SOUND.get(name, sound.plain)(found):
        raise StoreError(
            "is not what gpudebug writes", file=str(run.path / name), next="move this run folder away"
        )
    return found


def recorded_run(run: store.RunFolder) -> dict[str, Any]:
    """Return run.json, if the keys that decisions rest on are what gpudebug writes; {} otherwise.

    gpudebug 0.1.0 did not record whether the run was played back: that is read from what else it kept.
    """
    try:
        found = run.read("run.json")
    except (GpudebugError, ValueError):
        return {}
    return {**found, "replayed": replayed(found, run)} if sound.run(found) else {}


REPLAYED = "replayed"
REPLAYED_NOTE = f"{REPLAYED}: recordings were played back, nothing was measured here"


def replayed(record: Mapping[str, Any], run: store.RunFolder) -> bool | None:
    """Tell whether the run with this run.json was played back; None if unknown.

    gpudebug 0.1.0 did not record it: the kind of its devices and the source of its samples do.
    """
    recorded = record.get("replayed")
    if isinstance(recorded, bool):
        return recorded
    devices = record.get("devices")
    kinds = [d.get("kind") for d in devices if isinstance(d, dict)] if isinstance(devices, list) else []
    if any(device_kind(kind).is_recording for kind in kinds):
        return True
    source = sampled_from(run)
    return None if source is None or not kinds else device_kind(source).is_recording


def sampled_from(run: store.RunFolder) -> str | None:
    """Return the source that the sampler names; None if it left no word."""
    source = stored_record(run, "sampler.json").get("source")
    return source if isinstance(source, str) else None
