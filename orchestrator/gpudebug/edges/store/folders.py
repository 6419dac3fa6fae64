"""The layout of a campaign's files: its root, its run folders and what is in them."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpudebug.core.errors import StoreError
from gpudebug.core.text.json_lines import parse
from gpudebug.edges import removal, temporary
from gpudebug.edges.opener import file_digest, read_file, saying
from gpudebug.edges.store.files import make_folder, opened_folder, resolve_inside, write_beside
from gpudebug.edges.walk import walk

if TYPE_CHECKING:
    from gpudebug.core.records import Record

FORMAT = 1
LEASES = ".leases"
JOB = "job"
"""The folder of a run folder that its job may write into; nothing in it is evidence."""
RECORDS = "records"
"""The one in which the job's processes tell of themselves while they run; so a job may empty its own."""
# Of one record; a manifest names thousands of files.
_LONGEST = 64 << 20
_READABLE = "make it readable (chmod), or move it out of the run folder"


def run_number(name: str) -> int:
    """Return the number in a run folder's name."""
    return int(name.partition("-")[0])


def slug(text: str) -> str:
    """Return a text as a short part of a file's name: at most 40 lower-case letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", text[:200].lower()).strip("-")[:40].rstrip("-")


def place_new(root: Path, relative: str, data: bytes) -> bool:
    """Write a file below `root` that is not there yet; False if its name is taken by other bytes."""
    path = resolve_inside(root / relative, root)
    if path.exists():
        return read_file(path) == data
    make_folder(path.parent)
    with saying(path, "cannot write"):
        write_beside(path, data, None)
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
    """One run's folder and the paths in it. What came from outside has passed `scrub`, but train.log.

    `made` is what the folder was when this process made it: another folder of its name is not written to.
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
    def records(self) -> Path:
        return self.path / RECORDS

    @property
    def replaced(self) -> bool:
        """Whether another file or folder, or a link, is in the place of the folder that was made."""
        if self.made is None:
            return False
        try:
            return removal.identity_of(self.path.lstat()) != self.made
        except OSError:
            return True

    @property
    def sealed(self) -> bool:
        return self.has("manifest.json")

    def has(self, name: str) -> bool:
        """Tell whether it has such a file, even one that may not be read: to read it says why."""
        try:
            (self.path / name).stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True
        return True

    def write(self, name: str, record: Record) -> bytes:
        """Write one JSON record of the run, redacted, at once; what the file holds."""
        return self._put(name, record.model_dump(mode="json"))

    def keep(self, name: str, data: bytes) -> None:
        """Write one file of the run as it is, at once."""
        with saying(self.path / name, "cannot write"), self.opened() as folder:
            temporary.write(folder, name, data, 0o600)

    def drop(self, name: str) -> None:
        """Remove one file of the run, if it is there."""
        with saying(self.path / name, "cannot remove"), self.opened() as folder:
            made = removal.identity_at(folder, name)
            if made is not None:
                removal.remove_file(folder, name, made)

    def make_way(self, *names: str) -> tuple[str, ...]:
        """Let records have these names: folders that have them are moved aside; their new names."""
        moved = []
        with saying(self.path, "cannot write"), opened_folder(self.path.parent) as parent:
            removal.give_owner_rights(parent, self.name)
            with self.opened() as folder:
                for name in names:
                    if (self.path / name).is_dir() and not (self.path / name).is_symlink():
                        aside = next(
                            n for i in count(1) if not os.path.lexists(self.path / (n := f"{name}.{i}"))
                        )
                        removal.move_folder(folder, name, aside, removal.made_at(folder, name))
                        moved.append(aside)
        return tuple(moved)

    def seal(self) -> None:
        """Write the manifest, last: from now on the run is evidence."""
        self._seal(self.digests())

    def seal_what_is_readable(self) -> tuple[str, ...]:
        """Seal a run that was cut off, whatever lies in it; the names of what could not be read."""
        found = dict(self._digested())
        self._seal({name: reason for name, reason in found.items() if reason is not None})
        return tuple(name for name, reason in found.items() if reason is None)

    def _seal(self, digests: dict[str, str]) -> None:
        from gpudebug.core.records import Manifest

        with saying(self.path, "cannot seal"), self.opened() as folder:
            temporary.sweep(folder)
            # Not dumped for JSON, which would lose of a file's name what is not UTF-8.
            self._put("manifest.json", Manifest(run=self.name, files=digests).model_dump())

    def _put(self, name: str, data: Any) -> bytes:
        from gpudebug.core.redaction.records import scrubbed_record

        text = json.dumps(scrubbed_record(data, self.scrub), indent=1, ensure_ascii=False)
        written = text.encode("utf-8", "surrogateescape") + b"\n"
        self.keep(name, written)
        return written

    @contextmanager
    def opened(self) -> Iterator[int]:
        """Open the folder itself: no link, and not another one that has its name by now."""
        with opened_folder(self.path) as folder:
            if self.made is not None and removal.identity_of(os.fstat(folder)) != self.made:
                raise removal.NotOurs(
                    "is not the folder in which this run began; nothing was written to it",
                    file=str(self.path),
                    next="move it away, then run the same command again",
                )
            yield folder

    def read(self, name: str) -> Any:
        """One JSON record of the run; StoreError if it is not there, not JSON or of another format."""
        path = self.path / name
        try:
            # As it was written: names of files need not be UTF-8.
            text = read_file(path, _LONGEST).decode("utf-8", "surrogateescape")
            found = parse(text, finite=True)
        except ValueError:
            raise StoreError(
                "not readable as JSON", file=str(path), next="move this run folder away"
            ) from None
        if isinstance(found, dict) and found.get("format", FORMAT) != FORMAT:
            raise OtherFormat(found["format"], path)
        return found

    def intact(self, *names: str) -> bool:
        """Tell whether these files are there, byte by byte as the manifest says."""
        try:
            sealed = dict(self.read("manifest.json")["files"])
            return all(sealed[name] == file_digest(self.path / name) for name in names)
        except (StoreError, KeyError, TypeError, ValueError):
            return False

    def digests(self, *, job: bool = False) -> dict[str, str]:
        """SHA-256 of each file by its path in the folder: regular files only, links not followed.

        Without `job` nothing in the folders that the job writes into, which may hold checkpoints of any size.
        """
        found = {}
        for name, sha256 in self._digested(job):
            if sha256 is None:
                raise StoreError("cannot read what the run wrote", file=str(self.path / name), next=_READABLE)
            found[name] = sha256
        return found

    def _digested(self, job: bool = False) -> Iterator[tuple[str, str | None]]:
        """Path in the folder and digest of each regular file but the manifest; None if it cannot be read."""
        unread: list[str] = []
        for place, folders, names in walk(self.path, onerror=lambda e: unread.append(str(e.filename))):
            if not job and Path(place) == self.path:
                folders[:] = [name for name in folders if name not in (JOB, RECORDS)]
            folders.sort()
            for name in sorted(names):
                path = Path(place, name)
                if path == self.path / "manifest.json":
                    continue
                try:
                    if stat.S_ISREG(path.lstat().st_mode):
                        yield str(path.relative_to(self.path)), file_digest(path)
                except (OSError, StoreError):
                    yield str(path.relative_to(self.path)), None
        for name in unread:
            yield os.path.relpath(name, self.path), None
