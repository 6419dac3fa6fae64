"""The only owner of paths: reading and replacing files, locks, run folders, manifests."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import glob
import json
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from gpudebug.core.errors import BusyError, StoreError

if TYPE_CHECKING:
    from gpudebug.core.models import Record

CONFIG = "gpudebug.yaml"
_RUN_NAME = re.compile(r"[0-9]{4,9}-.")
_MAX_TEXT = 256 << 20
# How long a dead holder's warden may still hold its claim while it ends what was left.
_DYING_S = 10.0
_ABANDONED_S = 60.0


class SavedInBetween(StoreError):
    """Somebody else saved the file between our reading and our writing; nothing was overwritten."""


def find_root(start: Path) -> Path | None:
    """The nearest folder at or above `start` that holds gpudebug.yaml."""
    start = start.resolve()
    return next((d for d in (start, *start.parents) if os.path.lexists(d / CONFIG)), None)


def read_file(path: Path) -> bytes:
    """The bytes of a regular file. A FIFO or device is refused without being opened for good."""
    with _regular(path) as f:
        if os.fstat(f.fileno()).st_size > _MAX_TEXT:
            raise StoreError(
                f"larger than {_MAX_TEXT >> 20} MB", file=str(path), next="is this the right file?"
            )
        try:
            return f.read()
        except OSError as e:
            raise _os_error(e, path, "cannot read") from None


def read_head(path: Path, size: int) -> bytes:
    """The first bytes of a regular file of any size."""
    with _regular(path) as f:
        return f.read(size)


def _regular(path: Path) -> BinaryIO:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as e:
        raise _os_error(e, path, "cannot read") from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise StoreError("not a regular file", file=str(path), next="put a plain file in its place")
    return os.fdopen(fd, "rb")


def start_file(path: Path) -> None:
    """Make an empty file for a run's output, mode 0600; an older one of that name is emptied."""
    try:
        status = path.stat() if path.exists() else None
        if status and not stat.S_ISREG(status.st_mode):
            raise StoreError("not a regular file", file=str(path), next="name another file")
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600))
    except OSError as e:
        raise _os_error(e, path, "cannot write") from None


def copy_into(path: Path, data: bytes) -> None:
    """Write a new file of a run folder, mode 0600."""
    try:
        _write_beside(path, data, 0o600)
    except OSError as e:
        raise _os_error(e, path, "cannot write") from None


def digest(data: bytes) -> str:
    import hashlib

    return hashlib.sha256(data).hexdigest()


def file_digest(path: Path) -> str:
    import hashlib

    h = hashlib.sha256()
    with path.open("rb") as f:
        while chunk := f.read(1 << 20):
            h.update(chunk)
    return h.hexdigest()


_NEXT = {
    errno.ENOSPC: "free some disk space and run the same command again",
    errno.EDQUOT: "free some of your disk quota and run the same command again",
    errno.EROFS: "make the file system writable, or work in a writable copy",
    errno.EACCES: "give yourself permission to it (chmod, chown)",
    errno.EPERM: "give yourself permission to it (chmod, chown)",
    errno.ENOENT: "check the path",
}


def _os_error(e: OSError, path: Path, what: str) -> StoreError:
    reason = os.strerror(e.errno) if e.errno else str(e)
    return StoreError(
        f"{what}: {reason}", file=str(path), next=_NEXT.get(e.errno or 0, "mend it and run again")
    )


def resolve_inside(path: Path, root: Path) -> Path:
    """`path` with its links followed; refused where it leaves `root` or is no regular file."""
    try:
        target = path.resolve()
    except (OSError, RuntimeError):  # RuntimeError up to Python 3.12
        raise StoreError("links lead in a circle", file=str(path), next="remove the link") from None
    if not target.is_relative_to(root.resolve()):
        raise StoreError(
            f"leads out of the repository, to {target}", file=str(path), next="keep it inside the repository"
        )
    try:
        status = target.stat()
    except FileNotFoundError:
        return target
    except OSError as e:
        raise _os_error(e, path, "cannot read") from None
    if not stat.S_ISREG(status.st_mode):
        raise StoreError("not a regular file", file=str(path), next="put a plain file in its place")
    return target


def replace_file(path: Path, data: bytes, *, root: Path, expected: str | None) -> None:
    """Replace a file at once and durably: readers see the old bytes or the new ones.

    A link is followed and its target replaced beside itself; the mode is kept. `expected` is the digest
    that the file had when it was read, None where it was not there: SavedInBetween where it differs now.
    """
    target = resolve_inside(path, root)
    try:
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
        found = file_digest(target) if mode is not None else None
        if found != expected:
            raise SavedInBetween(
                "was saved by somebody else in the meantime; nothing was overwritten",
                file=str(path),
                next="run the same command again",
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        if mode is not None and not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, "", str(target))
        _write_beside(target, data, mode)
        _remove_abandoned(target)
    except OSError as e:
        raise _os_error(e, path, "cannot write; it is unchanged") from None


def _remove_abandoned(target: Path) -> None:
    """Temporary files that a killed process left beside `target`; one of a live process is seconds old."""
    for path in target.parent.glob(f".{glob.escape(target.name)}.*.tmp"):
        # Somebody else may tidy up at the same moment.
        with contextlib.suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > _ABANDONED_S:
                path.unlink()


def _write_beside(target: Path, data: bytes, mode: int | None) -> None:
    import tempfile

    fd, temporary = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
    try:
        with os.fdopen(fd, "wb") as f:
            f.write(data)
            f.flush()
            os.fchmod(f.fileno(), mode if mode is not None else 0o666 & ~_umask())
            os.fsync(f.fileno())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    _sync_folder(target.parent)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive flock on a lock file for the milliseconds of one update."""
    fd = _open_lock(path)
    try:
        _flock(fd, fcntl.LOCK_EX, path)
        yield
    finally:
        os.close(fd)


def _open_lock(path: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
    except OSError as e:
        raise _os_error(e, path, "cannot open the lock") from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise StoreError("the lock is not a regular file", file=str(path), next="remove it")
    return fd


def _flock(fd: int, how: int, path: Path) -> None:
    try:
        fcntl.flock(fd, how)
    except BlockingIOError:
        raise
    except OSError as e:
        reason = os.strerror(e.errno or 0)
        raise StoreError(
            f"this file system cannot lock files ({reason}), so two sessions could overwrite each other",
            file=str(path),
            next="keep the repository on a file system with flock",
        ) from None


class Claim:
    """The exclusive right to run something in this campaign, held by an flock that dies with its holders.

    `fd` may be handed to the warden: the claim lasts until the last holder has closed it.
    """

    def __init__(self, path: Path, holder: dict[str, object]) -> None:
        self.fd = _open_lock(path)
        try:
            self._take(path)
            os.ftruncate(self.fd, 0)
            os.write(self.fd, json.dumps(holder).encode())
        except OSError as e:
            os.close(self.fd)
            raise _os_error(e, path, "cannot write") from None
        except (BusyError, StoreError):
            os.close(self.fd)
            raise

    def _take(self, path: Path) -> None:
        """Wait for a holder that is dead already, whose warden is still ending what it left; and for
        `claimed`, which looks for microseconds. A live holder names itself in the file."""
        deadline = time.monotonic() + _DYING_S
        while True:
            try:
                return _flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB, path)
            except BlockingIOError:
                said = os.pread(self.fd, 4096, 0)
                if _alive(said) or time.monotonic() > deadline:
                    raise BusyError(
                        f"another gpudebug runs here{_holder(said)}",
                        next="wait for it to end, then run this again",
                    ) from None
            time.sleep(0.05)

    def __enter__(self) -> Claim:
        return self

    def __exit__(self, *_: object) -> None:
        os.ftruncate(self.fd, 0)
        os.close(self.fd)


def _alive(text: bytes) -> bool:
    try:
        os.kill(int(json.loads(text)["pid"]), 0)
    except (ValueError, KeyError, TypeError):
        return False
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _holder(text: bytes) -> str:
    try:
        said = json.loads(text)
        return f": pid {said['pid']}, `{said['command']}`, since {said['since']}"
    except (ValueError, KeyError, TypeError):
        return ""


def claimed(path: Path) -> bool:
    """Whether somebody holds the claim at this moment. Reads only."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    except OSError as e:
        raise _os_error(e, path, "cannot read") from None
    try:
        _flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB, path)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


Scrub = Callable[[str], str]


@dataclass(frozen=True)
class RunFolder:
    """One run's folder and the paths in it. Every text in it but train.log has passed `scrub`."""

    path: Path
    scrub: Scrub

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
    def sealed(self) -> bool:
        return (self.path / "manifest.json").exists()

    def has(self, name: str) -> bool:
        return (self.path / name).exists()

    def write(self, name: str, record: Record) -> None:
        """Write one JSON record of the run, redacted, at once."""
        text = json.dumps(_scrubbed(record.model_dump(mode="json"), self.scrub), indent=1, ensure_ascii=False)
        try:
            _write_beside(self.path / name, text.encode("utf-8", "surrogateescape") + b"\n", 0o644)
        except OSError as e:
            raise _os_error(e, self.path / name, "cannot write") from None

    def read(self, name: str) -> Any:
        """One JSON record of the run; StoreError where it is not there or not JSON."""
        path = self.path / name
        try:
            return json.loads(read_file(path))
        except ValueError:
            raise StoreError(
                "not readable as JSON", file=str(path), next="move this run folder away"
            ) from None

    def digests(self) -> dict[str, str]:
        return {p.name: file_digest(p) for p in sorted(self.path.iterdir()) if p.name != "manifest.json"}


def _scrubbed(value: Any, scrub: Scrub) -> Any:
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, dict):
        return {k: _scrubbed(v, scrub) for k, v in value.items()}
    if isinstance(value, list):
        return [_scrubbed(v, scrub) for v in value]
    return value


class Workspace:
    """A campaign's files: `root` is the folder of gpudebug.yaml."""

    def __init__(self, root: Path, scrub: Scrub = lambda text: text) -> None:
        self.root = root
        self.scrub = scrub

    @property
    def config(self) -> Path:
        return self.root / CONFIG

    @property
    def runs(self) -> Path:
        return self.root / "runs"

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
            names = [e.name for e in os.scandir(self.runs) if _RUN_NAME.match(e.name) and e.is_dir()]
        except FileNotFoundError:
            return []
        except OSError as e:
            raise _os_error(e, self.runs, "cannot list") from None
        return sorted(names, key=lambda name: (int(name.partition("-")[0]), name))

    def run(self, name: str) -> RunFolder:
        return RunFolder(self.runs / name, self.scrub)

    def new_run(self, label: str) -> RunFolder:
        """A new folder `NNNN-label`, its number one above the highest."""
        names = self.run_names()
        number = int(names[-1].split("-")[0]) + 1 if names else 1
        try:
            self.runs.mkdir(exist_ok=True)
            while True:
                path = self.runs / f"{number:04d}-{label}"
                try:
                    path.mkdir()
                except FileExistsError:
                    number += 1
                else:
                    _sync_folder(self.runs)
                    return RunFolder(path, self.scrub)
        except OSError as e:
            raise _os_error(e, self.runs, "cannot make a run folder") from None

    def seal(self, run: RunFolder) -> None:
        """Write the manifest, last: from now on the run is evidence."""
        from gpudebug.core.models import Manifest

        run.write("manifest.json", Manifest(run=run.name, files=run.digests()))
        _sync_folder(run.path)


def make_folder(path: Path) -> None:
    """A folder that may be there already."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise _os_error(e, path, "cannot make the folder") from None


def check_locks(folder: Path) -> None:
    """StoreError where `folder` cannot be written to or its file system cannot lock."""
    path = folder / f".gpudebug-check-{os.getpid()}"
    try:
        with locked(path):
            pass
    finally:
        path.unlink(missing_ok=True)
