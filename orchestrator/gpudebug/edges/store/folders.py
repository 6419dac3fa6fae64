"""The layout of a campaign's files: its root, its run folders and what is in them."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpudebug.core.errors import StoreError
from gpudebug.edges import removal
from gpudebug.edges.store.files import (
    digest,
    file_digest,
    make_folder,
    os_error,
    read_file,
    resolve_inside,
    sync_folder,
    write_beside,
)
from gpudebug.edges.store.locks import Claim, claimed

if TYPE_CHECKING:
    from gpudebug.core.models import Record

CONFIG = "gpudebug.yaml"
FORMAT = 1
WORKTREES = ("runs", "worktrees")
LEASES = ".leases"
JOB = "job"
"""The folder of a run folder that its job may write into; nothing in it is evidence."""
_RUN_NAME = re.compile(r"[0-9]{4,9}-[a-z]")


def run_number(name: str) -> int:
    """The number in a run folder's name."""
    return int(name.partition("-")[0])


def find_root(start: Path) -> Path | None:
    """The nearest folder at or above `start` that holds gpudebug.yaml.

    Inside one of a campaign's worktrees it is the folder of that campaign, not its copy there.
    """
    start = start.resolve()
    above = (start, *start.parents)
    owners = (d.parents[1] for d in above if d.parts[-2:] == WORKTREES)
    outermost = [d for d in owners if os.path.lexists(d / CONFIG)]
    if outermost:
        return outermost[-1]
    return next((d for d in above if os.path.lexists(d / CONFIG)), None)


def slug(text: str) -> str:
    """A text as a short part of a file's name: at most 40 lower-case letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", text[:200].lower()).strip("-")[:40].rstrip("-")


def place_new(root: Path, relative: str, data: bytes) -> bool:
    """Write a file below `root` that is not there yet; False where its name is taken by other bytes."""
    path = root / relative
    resolve_inside(path, root)
    if path.exists():
        return read_file(path) == data
    make_folder(path.parent)
    try:
        write_beside(path, data, None)
    except OSError as e:
        raise os_error(e, path, "cannot write") from None
    return True


Scrub = Callable[[str], str]


class OtherFormat(StoreError):
    """A record of another format version than `FORMAT`, `found`."""

    def __init__(self, found: object, path: Path) -> None:
        super().__init__(
            f"has format {found}, this gpudebug reads {FORMAT}",
            file=str(path),
            next="use the gpudebug that wrote it, or move this run folder away",
        )
        self.found = found


@dataclass(frozen=True)
class RunFolder:
    """One run's folder and the paths in it. Every text in it but train.log has passed `scrub`.

    `made` is the identity of a folder that this process made: nothing is written into another one that
    took its place.
    """

    path: Path
    scrub: Scrub
    made: removal.Identity | None = None

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def samples(self) -> Path:
        return self.path / "samples.csv"

    @property
    def log(self) -> Path:
        return self.path / "train.log"

    @property
    def notes(self) -> Path:
        return self.path / "sampler.json"

    @property
    def job(self) -> Path:
        return self.path / JOB

    @property
    def replaced(self) -> bool:
        """Whether another file or folder, or a link, is in the place of the folder that was made."""
        if self.made is None:
            return False
        try:
            return removal.identity_of(self.path.lstat()) != self.made
        except OSError:
            return True

    def ensure_ours(self) -> None:
        """Raise StoreError if the folder that was made is not there any more."""
        if self.replaced:
            raise StoreError(
                "is not the folder that gpudebug made for the run; nothing was written into it",
                file=str(self.path),
                next="move it away, then gpudebug next",
            )

    @property
    def sealed(self) -> bool:
        return self.has("manifest.json")

    def has(self, name: str) -> bool:
        """Whether it has such a file, be it one that nobody may look at: to read that says why."""
        try:
            (self.path / name).stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True
        return True

    def write(self, name: str, record: Record) -> None:
        """Write one JSON record of the run, redacted, at once."""
        self._put(name, record.model_dump(mode="json"))

    def keep(self, name: str, data: bytes) -> None:
        """Write one file of the run as it is, at once."""
        self.ensure_ours()
        try:
            write_beside(self.path / name, data, 0o644)
        except OSError as e:
            raise os_error(e, self.path / name, "cannot write") from None

    def seal(self) -> None:
        """Write the manifest, last: from now on the run is evidence."""
        from gpudebug.core.models import Manifest

        # Not dumped for JSON, which would lose of a file's name what is not UTF-8.
        self._put("manifest.json", Manifest(run=self.name, files=self.digests()).model_dump())
        sync_folder(self.path)

    def _put(self, name: str, data: Any) -> None:
        from gpudebug.core.redact import scrubbed

        self.ensure_ours()
        text = json.dumps(scrubbed(data, self.scrub), indent=1, ensure_ascii=False)
        try:
            write_beside(self.path / name, text.encode("utf-8", "surrogateescape") + b"\n", 0o644)
        except OSError as e:
            raise os_error(e, self.path / name, "cannot write") from None

    def read(self, name: str) -> Any:
        """One JSON record of the run; StoreError where it is not there, not JSON or of another format."""
        path = self.path / name
        try:
            # As it was written: names of files need not be UTF-8.
            found = json.loads(read_file(path).decode("utf-8", "surrogateescape"))
        except (ValueError, RecursionError):
            raise StoreError(
                "not readable as JSON", file=str(path), next="move this run folder away"
            ) from None
        if isinstance(found, dict) and found.get("format", FORMAT) != FORMAT:
            raise OtherFormat(found["format"], path)
        return found

    def intact(self, *names: str) -> bool:
        """Whether these files are there, byte by byte as the manifest says."""
        try:
            sealed = dict(self.read("manifest.json")["files"])
            return all(sealed[name] == file_digest(self.path / name) for name in names)
        except (StoreError, OSError, KeyError, TypeError, ValueError):
            return False

    def digests(self, *, job: bool = False) -> dict[str, str]:
        """SHA-256 of each file by its path in the folder: regular files only, links not followed.

        Without `job` nothing in the job's own folder, which may hold checkpoints of any size.
        """
        try:
            return {
                str(p.relative_to(self.path)): file_digest(p)
                for p in sorted(self._files(job))
                if p.is_file() and not p.is_symlink() and p != self.path / "manifest.json"
            }
        except OSError as e:
            raise os_error(e, self.path, "cannot read what the run wrote") from None

    def _files(self, job: bool) -> Iterator[Path]:
        for folder, folders, names in os.walk(self.path):
            if not job and Path(folder) == self.path and JOB in folders:
                folders.remove(JOB)
            yield from (Path(folder, name) for name in names)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Not a link: what is written into a run folder would go to wherever it leads."""
    return entry.is_dir(follow_symlinks=False)


class Workspace:
    """A campaign's files: `root` is the folder of gpudebug.yaml, `campaign` its name once that was read."""

    def __init__(self, root: Path, scrub: Scrub = lambda text: text) -> None:
        self.root = root
        self.scrub = scrub
        self.campaign = ""

    @property
    def config(self) -> Path:
        return self.root / CONFIG

    @property
    def runs(self) -> Path:
        return self.root / "runs"

    @property
    def worktrees(self) -> Path:
        """Where the worktrees of all campaigns of this folder lie."""
        return self.root.joinpath(*WORKTREES)

    @property
    def leases(self) -> Path:
        """Of this campaign: another one of the same folder counts its hypotheses from 1 too."""
        return self.runs / LEASES / self.campaign

    @property
    def claim_path(self) -> Path:
        return self.runs / ".claim"

    def progress_lock(self, progress: Path) -> Path:
        return self.runs / f".{digest(str(progress).encode())[:16]}.lock"

    def claim(self, holder: dict[str, object]) -> Claim:
        """Raises BusyError where another process holds it."""
        return Claim(self.claim_path, holder)

    def claimed(self) -> bool:
        return claimed(self.claim_path)

    def run_names(self) -> list[str]:
        """Names of all run folders, in the order of their numbers."""
        try:
            names = [e.name for e in os.scandir(self.runs) if _RUN_NAME.match(e.name) and _is_folder(e)]
        except FileNotFoundError:
            return []
        except OSError as e:
            raise os_error(e, self.runs, "cannot list") from None
        return sorted(names, key=lambda name: (run_number(name), name))

    def run(self, name: str) -> RunFolder:
        return RunFolder(self.runs / name, self.scrub)

    def new_run(self, label: str) -> RunFolder:
        """A new folder `NNNN-label`, its number one above the highest."""
        names = self.run_names()
        number = run_number(names[-1]) + 1 if names else 1
        try:
            self.runs.mkdir(exist_ok=True)
            while True:
                path = self.runs / f"{number:04d}-{label}"
                try:
                    path.mkdir()
                except FileExistsError:
                    number += 1
                else:
                    return self._made(path)
        except OSError as e:
            raise os_error(e, self.runs, "cannot make a run folder") from None

    def _made(self, path: Path) -> RunFolder:
        made = removal.identity_of(path.lstat())
        (path / JOB).mkdir(0o700)
        sync_folder(self.runs)
        return RunFolder(path, self.scrub, made)

    def made_anew(self, run: RunFolder) -> tuple[RunFolder, Path | None]:
        """A new folder for a run whose own was replaced, and where what replaced it is now.

        It is only given another name, whatever it is: it may be a link to something of the user's.
        """
        aside = None
        try:
            if os.path.lexists(run.path):
                aside = run.path.with_name(f".{run.name}.{secrets.token_hex(4)}")
                os.rename(run.path, aside)
            run.path.mkdir()
            return self._made(run.path), aside
        except OSError as e:
            raise os_error(e, run.path, "cannot make the run folder again") from None

    def discard(self, run: RunFolder) -> None:
        """Remove the folder of a run that never started."""
        try:
            shutil.rmtree(run.path)
        except OSError as e:
            raise os_error(e, run.path, "cannot remove") from None

    def seal(self, run: RunFolder) -> None:
        """Seal a run of this workspace."""
        run.seal()
