"""`runs/.array`: the elements of job arrays, each of which tests one hypothesis in a job of its own.

An element has a folder: what it tests (`element.json`), a copy of the progress file, and the runs that it
makes until they are taken into the campaign. Its name is the number before that of its first run.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from gpudebug.edges import removal
from gpudebug.edges.store.files import copy_into, get_json, make_folder, opened_folder, put_json, saying
from gpudebug.edges.store.folders import run_number
from gpudebug.edges.store.foreign import Lives, unknown_job
from gpudebug.edges.store.locks import RunClaim, held_by, locked
from gpudebug.edges.store.root import RUNS
from gpudebug.edges.store.workspace import BLOCK, Workspace
from gpudebug.edges.walk import walk

ELEMENT_PROGRESS = "progress.md"
ELEMENT_ACCEPTED = "accepted.json"
_NOTE = "element.json"
_LOCK = "worker.lock"


@dataclass(frozen=True)
class ElementNote:
    """What an element tests since when, and in which array of the cluster: None until it was submitted.

    `ended` says that it will do nothing any more, and why; `left` that the cluster cut its worker off, and
    how: it is over, or begun again.
    """

    name: str
    hypothesis: int
    since: str
    array: str | None = None
    ended: str | None = None
    left: str | None = None

    @property
    def session(self) -> str:
        """As whom it claims its hypothesis and makes its runs."""
        return f"array-{self.name}"


class Elements:
    """The elements of one campaign's job arrays."""

    def __init__(self, workspace: Workspace) -> None:
        self.folder = workspace.elements
        self._workspace = Workspace(workspace.root, workspace.scrub)

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the notes for the moment of a change: none begins while they are submitted."""
        make_folder(self.folder)
        with locked(self.folder / "lock"):
            yield

    def path(self, note: ElementNote) -> Path:
        return self.folder / note.name

    def notes(self) -> tuple[ElementNote, ...]:
        """All that are not taken in yet, by their numbers; a folder without a sound note is none."""
        try:
            names = sorted(os.listdir(self.folder), key=lambda name: (len(name), name))
        except FileNotFoundError:
            return ()
        return tuple(note for name in names if (note := _read(self.folder / name)) is not None)

    def note(self, name: str) -> ElementNote | None:
        return _read(self.folder / name)

    def make(self, hypotheses: tuple[int, ...], since: str) -> tuple[ElementNote, ...]:
        """New elements, one for each hypothesis; their numbers begin above all that are taken."""
        numbers = [run_number(name) for name in self._workspace.run_names()]
        numbers += [int(note.name) for note in self.notes()]
        first = max(numbers, default=0) // BLOCK + 1
        made = []
        for place, hypothesis in enumerate(hypotheses, first):
            note = ElementNote(f"{place * BLOCK:04d}", hypothesis, since)
            make_folder(self.path(note))
            self.put(note)
            made.append(note)
        return tuple(made)

    def put(self, note: ElementNote) -> None:
        put_json(self.path(note) / _NOTE, asdict(note))

    def put_campaign(self, note: ElementNote, progress: bytes, accepted: bytes) -> None:
        """What the element knows of its campaign, once its hypothesis is claimed for it: the progress file,
        and what was accepted by then."""
        copy_into(self.path(note) / ELEMENT_PROGRESS, progress)
        copy_into(self.path(note) / ELEMENT_ACCEPTED, accepted)

    def log(self, note: ElementNote) -> Path:
        """What its worker printed."""
        name = f"worker-{note.array}_{note.hypothesis}.log"
        return self._workspace.root / RUNS / ".allocation" / name

    def take(self, note: ElementNote, holder: Mapping[str, object], lives: Lives = unknown_job) -> RunClaim:
        """The lock of the element's worker. BusyError if one has it."""
        return RunClaim(self.path(note) / _LOCK, dict(holder), lives)

    def worked_on(self, note: ElementNote, lives: Lives = unknown_job) -> bool:
        """Whether its worker lives."""
        return held_by(self.path(note) / _LOCK, lives) is not None

    def take_in(self, note: ElementNote) -> list[str]:
        """Move the element's runs to the campaign's; their names. The last one may hold the verdict."""
        own = Workspace(self._workspace.root, element=note.name)
        names = [name for name in own.run_names() if run_number(name) > int(note.name)]
        runs = self._workspace.root / RUNS
        with (
            saying(runs, "cannot move a run"),
            opened_folder(self.path(note)) as here,
            opened_folder(runs) as to,
        ):
            for name in names:
                removal.set_aside(here, name, name, into=to)
        return names

    def remove(self, note: ElementNote) -> None:
        """Take the folder away; the runs are the campaign's by then."""
        _remove(self.path(note))
        worktrees = Workspace(self._workspace.root, element=note.name).worktrees
        if not any(files for _, _, files in walk(worktrees)):
            _remove(worktrees)


def _remove(path: Path) -> None:
    if not os.path.lexists(path):
        return
    with saying(path, "cannot remove"), opened_folder(path.parent) as folder:
        removal.remove_folder(folder, path.name, removal.made_at(folder, path.name))


def _read(folder: Path) -> ElementNote | None:
    found = get_json(folder / _NOTE)
    match found:
        case {
            "name": str() as name,
            "hypothesis": int() as hypothesis,
            "since": str() as since,
            "array": str() | None as array,
            "ended": str() | None as ended,
        } if name == folder.name:
            left = found.get("left")
            return ElementNote(name, hypothesis, since, array, ended, left if isinstance(left, str) else None)
    return None
