"""The elements of job arrays, each of which tests one hypothesis in a job of its own.

What an element tests is noted in the campaign's private folder. In `runs/.array` it has a folder with a copy
of the progress file and the runs that it makes until they are taken into the campaign. Its name is the number
before that of its first run.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import secrets
import stat
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from gpudebug.edges import removal
from gpudebug.edges.opener import os_error, saying
from gpudebug.edges.store.files import copy_into, get_json, make_folder, opened_folder, put_json
from gpudebug.edges.store.folders import run_number
from gpudebug.edges.store.foreign import ALLOCATION, Lives, unknown_job
from gpudebug.edges.store.locks import RunClaim, held_by, locked
from gpudebug.edges.store.root import RUNS
from gpudebug.edges.store.workspace import BLOCK, Workspace
from gpudebug.edges.walk import walk

ELEMENT_PROGRESS = "progress.md"
_NOTE = "element.json"
_LOCK = "worker.lock"
_NAME = re.compile(r"[0-9]{4,9}", re.ASCII)
_ARRAY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\[\]-]{0,63}", re.ASCII)
_SINCE = re.compile(r"[0-9T:.+-]{10,40}", re.ASCII)


@dataclass(frozen=True)
class ElementNote:
    """What an element tests since when, of which campaign of its folder, and in which array of the cluster:
    None until it was submitted.

    `ended` says that it will do nothing any more, and why; `left` that the cluster cut its worker off, and
    how: it is over, or begun again.
    """

    name: str
    campaign: str
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
    """The elements of the job arrays of a folder's campaigns."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = Workspace(workspace.root, workspace.scrub)
        self.folder = workspace.element_notes

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the notes for the moment of a change: none begins while they are submitted."""
        make_folder(self.folder)
        with locked(self.folder / "lock"):
            yield

    def path(self, note: ElementNote) -> Path:
        return self._workspace.elements / note.name

    def notes(self, campaign: str | None = None) -> tuple[ElementNote, ...]:
        """Return all that are not taken in yet, or a campaign's, by their numbers; a folder without a sound
        note is none."""
        try:
            names = sorted(os.listdir(self.folder), key=lambda name: (len(name), name))
        except (FileNotFoundError, NotADirectoryError):
            return ()
        except OSError as e:
            raise os_error(e, self.folder, "cannot list") from None
        found = (note for name in names if (note := _read(self.folder / name)) is not None)
        return tuple(note for note in found if campaign in (None, note.campaign))

    def note(self, name: str) -> ElementNote | None:
        return _read(self.folder / name)

    def make(self, campaign: str, hypotheses: tuple[int, ...], since: str) -> tuple[ElementNote, ...]:
        """New elements of a campaign, one for each hypothesis; their numbers begin above all that are taken.

        A folder that is there already is none's, whatever is in it.
        """
        numbers = [run_number(name) for name in self._workspace.run_names()]
        numbers += [int(note.name) for note in self.notes()]
        make_folder(self._workspace.elements)
        places = itertools.count(max(numbers, default=0) // BLOCK + 1)
        made = []
        for hypothesis in hypotheses:
            name = next(name for place in places if self._new(name := f"{place * BLOCK:04d}"))
            note = ElementNote(name, campaign, hypothesis, since)
            self.put(note)
            made.append(note)
        return tuple(made)

    def _new(self, name: str) -> bool:
        """Make a folder; False if the name is taken."""
        path = self._workspace.elements / name
        with saying(path, "cannot make the folder"):
            try:
                path.mkdir(mode=0o700)
            except FileExistsError:
                return False
        return True

    def put(self, note: ElementNote) -> None:
        make_folder(self.folder / note.name)
        put_json(self.folder / note.name / _NOTE, asdict(note))

    def put_progress(self, note: ElementNote, data: bytes) -> None:
        """The progress file as the element sees it, once its hypothesis is claimed for it."""
        copy_into(self.path(note) / ELEMENT_PROGRESS, data)

    def log(self, note: ElementNote) -> Path:
        """Return what its worker printed."""
        name = f"worker-{note.array}_{note.hypothesis}.log"
        return self._workspace.private / ALLOCATION / name

    def take(self, note: ElementNote, holder: Mapping[str, object], lives: Lives = unknown_job) -> RunClaim:
        """Return the lock of the element's worker. BusyError if one has it."""
        return RunClaim(self.folder / note.name / _LOCK, dict(holder), lives)

    def worked_on(self, note: ElementNote, lives: Lives = unknown_job) -> bool:
        """Tell whether its worker lives."""
        return held_by(self.folder / note.name / _LOCK, lives) is not None

    def take_in(self, note: ElementNote) -> list[Path]:
        """Move the element's runs to the campaign's. The last one may hold the verdict.

        What has the name of one is given another, whatever it is: only the element makes runs of its numbers.
        Where that is now.
        """
        own = Workspace(self._workspace.root, element=note.name)
        runs, aside = self._workspace.root / RUNS, list[Path]()
        for name in own.run_names():
            if not own.owns(name):
                continue
            with (
                saying(runs / name, "cannot move a run"),
                opened_folder(self.path(note)) as here,
                opened_folder(runs) as to,
            ):
                if removal.identity_at(to, name) is not None:
                    aside.append(runs / f".{name}.{secrets.token_hex(4)}")
                    removal.set_aside(to, name, aside[-1].name)
                removal.set_aside(here, name, name, into=to)
        return aside

    def remove(self, note: ElementNote) -> None:
        """Take the folders away, the note last; the runs are the campaign's by then."""
        _remove(self.path(note))
        worktrees = Workspace(self._workspace.root, element=note.name).worktrees
        if not any(files for _, _, files in walk(worktrees)):
            _remove(worktrees)
        _remove(self.folder / note.name)


def _remove(path: Path) -> None:
    if not os.path.lexists(path):
        return
    with saying(path, "cannot remove"), opened_folder(path.parent) as folder:
        removal.remove_folder(folder, path.name, removal.made_at(folder, path.name))


def _read(folder: Path) -> ElementNote | None:
    """Return the note in a folder; None if it is not one that gpudebug writes."""
    name, path = folder.name, folder / _NOTE
    named = _NAME.fullmatch(name) and int(name) and not int(name) % BLOCK and name == f"{int(name):04d}"
    if not named or folder.is_symlink() or not _is_file(path):
        return None
    match get_json(path):
        case {
            "name": str() as own,
            "campaign": str() as campaign,
            "hypothesis": int() as hypothesis,
            "since": str() as since,
            "array": str() | None as array,
            "ended": str() | None as ended,
            "left": str() | None as left,
        } if own == name and hypothesis > 0 and _SINCE.fullmatch(since):
            if array is None or _ARRAY.fullmatch(array):
                return ElementNote(name, campaign, hypothesis, since, array, ended, left)
    return None


def _is_file(path: Path) -> bool:
    """Whether it is a regular file; one that cannot be looked at now may be, and says so when it is read."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
