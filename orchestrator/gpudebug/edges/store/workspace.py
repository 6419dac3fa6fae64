"""Where a campaign keeps its files: its run folders, those of the elements of job arrays, its locks."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from gpudebug.core.errors import StoreError
from gpudebug.edges import removal, temporary
from gpudebug.edges.opener import os_error, saying
from gpudebug.edges.store.files import digest, opened_folder
from gpudebug.edges.store.folders import JOB, LEASES, RECORDS, RunFolder, Scrub, run_number
from gpudebug.edges.store.foreign import Lives, unknown_job
from gpudebug.edges.store.root import CONFIG, ELEMENTS, RUN_NAME, RUNS, WORKTREES, private_folder

if TYPE_CHECKING:
    from gpudebug.edges.store.locks import RunClaim


def _runs_in(folder: Path) -> list[str]:
    try:
        return [e.name for e in os.scandir(folder) if RUN_NAME.match(e.name) and _is_run(e)]
    except FileNotFoundError:
        return []
    except OSError as e:
        raise os_error(e, folder, "cannot list") from None


def _is_run(entry: os.DirEntry[str]) -> bool:
    """Tell whether it is a run's folder. A link to one that was moved away is read, and never written to."""
    if entry.is_symlink():
        return os.path.exists(os.path.join(entry.path, "manifest.json"))
    return entry.is_dir()


ARRAY = "array"
BLOCK = 100
"""So many numbers of runs are kept for an element of a job array: a baseline and a trial take some 30."""


class Workspace:
    """A campaign's files: `root` is the folder of gpudebug.yaml, `campaign` its name once that was read.

    In an `element` of a job array all that is written has a folder of its own, and of the campaign's runs
    those are seen that are sealed and whose numbers are below its own, whenever they were made. `scrub` takes
    secrets out of a text, `scrub_prose` out of one that a person or an agent typed.
    """

    def __init__(self, root: Path, scrub: Scrub = lambda text: text, element: str | None = None) -> None:
        self.root = root
        self.element = element
        self.runs = root / RUNS if element is None else root.joinpath(*ELEMENTS, element)
        self.scrub = self.scrub_prose = scrub
        self.campaign = ""

    @property
    def home(self) -> Path:
        """The folder that what is written here may not lead out of."""
        return self.root if self.element is None else self.runs

    @property
    def config(self) -> Path:
        return self.root / CONFIG

    @cached_property
    def private(self) -> Path:
        """Where all is kept that is believed later and is no run: nothing of it is ever read from runs/."""
        place = private_folder(self.root)
        return place if self.element is None else place.joinpath(ARRAY, self.element)

    @property
    def worktrees(self) -> Path:
        """Where the worktrees of all campaigns of this folder lie."""
        return self.root.joinpath(*WORKTREES, *([f".{self.element}"] if self.element else []))

    @property
    def elements(self) -> Path:
        """The folders of the elements of job arrays."""
        return self.root.joinpath(*ELEMENTS)

    @property
    def element_notes(self) -> Path:
        """Where it is noted what these elements test."""
        return private_folder(self.root) / ARRAY

    @property
    def leases(self) -> Path:
        """Of this campaign: another one of the same folder counts its hypotheses from 1 too."""
        return self.runs / LEASES / self.campaign

    @property
    def claim_path(self) -> Path:
        return self.private / "claim"

    def progress_lock(self, progress: Path) -> Path:
        return self.runs / f".{digest(str(progress).encode())[:16]}.lock"

    def claim(self, holder: dict[str, object], lives: Lives = unknown_job) -> RunClaim:
        """Raises BusyError if another process holds it; `lives` is asked of the job of another host's."""
        from gpudebug.edges.store.locks import RunClaim

        return RunClaim(self.claim_path, holder, lives)

    def claimed(self) -> bool:
        from gpudebug.edges.store.locks import held_by

        return held_by(self.claim_path) is not None

    def run_names(self) -> list[str]:
        """Names of all run folders, in the order of their numbers."""
        names = [name for name in _runs_in(self.runs) if self.owns(name)]
        if self.element is not None:
            before = (name for name in _runs_in(self.root / RUNS) if run_number(name) < int(self.element))
            names = [*(name for name in before if self.run(name).sealed), *names]
        return sorted(names, key=lambda name: (run_number(name), name))

    def run(self, name: str) -> RunFolder:
        return RunFolder((self.runs if self.owns(name) else self.root / RUNS) / name, self.scrub)

    def owns(self, name: str) -> bool:
        """Tell whether a run of this name is made here: an element makes those of its numbers alone."""
        return self.element is None or 0 < run_number(name) - int(self.element) < BLOCK

    def new_run(self, label: str) -> RunFolder:
        """Return a new folder `NNNN-label`, its number one above the highest."""
        names = self.run_names()
        number = self._free(run_number(names[-1]) + 1 if names else 1)
        self._sweep_unbegun(names)
        with saying(self.runs, "cannot make a run folder"):
            self.runs.mkdir(exist_ok=True)
            with opened_folder(self.runs) as folder:
                while True:
                    name = f"{number:04d}-{label}"
                    try:
                        os.mkdir(name, 0o700, dir_fd=folder)
                    except FileExistsError:
                        number = self._free(number + 1)
                    else:
                        return self._made(folder, name)

    def _free(self, number: int) -> int:
        """The first number from this one on that is not kept for another: those of an element are its own."""
        if self.element is not None:
            first = int(self.element) + 1
            if number >= first + BLOCK - 1:
                raise StoreError(
                    f"{BLOCK - 1} runs are in it already, and more do not fit into an element of an array",
                    file=str(self.runs),
                    next="lower protocol.max_runs, then gpudebug submit",
                )
            return max(number, first)
        while os.path.lexists(self.elements / f"{number - number % BLOCK:04d}"):
            number += BLOCK - number % BLOCK
        return number

    def _sweep_unbegun(self, names: Sequence[str]) -> None:
        """Temporaries of the newest folders in which no run began: these are neither recovered nor sealed."""
        for name in reversed(names):
            run = self.run(name)
            if run.has("run.json"):
                return
            with suppress(OSError, StoreError), run.opened() as folder:
                temporary.sweep(folder)

    def _made(self, folder: int, name: str) -> RunFolder:
        made = removal.made_at(folder, name)
        with removal.folder(self.runs, name) as run:
            for own in (JOB, RECORDS):
                os.mkdir(own, 0o700, dir_fd=run)
        temporary.confirm(folder)
        return RunFolder(self.runs / name, self.scrub, made)

    def made_anew(self, run: RunFolder) -> tuple[RunFolder, Path | None]:
        """Return a new folder for a run whose own was replaced, and where what replaced it is now.

        It is only given another name, whatever it is: it may be a link to something of the user's. StoreError
        if the campaign's folder is gone.
        """
        if not self.root.is_dir():
            raise StoreError(
                f"was moved or removed while {run.name} was under way",
                file=str(self.root),
                next="gpudebug next in the folder where it is now: it takes up what is left of the run",
            )
        aside = None
        with saying(run.path, "cannot make the run folder again"), opened_folder(self.runs) as folder:
            if removal.identity_at(folder, run.name) is not None:
                aside = f".{run.name}.{secrets.token_hex(4)}"
                removal.set_aside(folder, run.name, aside)
            os.mkdir(run.name, 0o700, dir_fd=folder)
            return self._made(folder, run.name), self.runs / aside if aside else None

    def discard(self, run: RunFolder) -> None:
        """Remove the folder of a run that never started."""
        with saying(run.path, "cannot remove"), opened_folder(self.runs) as folder:
            if run.made is not None:
                removal.remove_folder(folder, run.name, run.made)

    def seal(self, run: RunFolder) -> None:
        """Seal a run of this workspace."""
        run.seal()
