"""Stops a training before it empties, replaces or removes a file that was there before its run.

Python's own ways to do so are wrapped, and the few functions of libraries that write natively. An audit hook
would see all of Python's in one place, but each `id()` calls one: a step of a small training does 78 times,
and each took ten times as long.

What is opened to be read and written is let pass, for reading alone does no harm: how it was is noted, so
that it can be said afterwards that it was changed. Files that this run made, or an earlier one of gpudebug
and nobody since, are no one's loss.
"""

from __future__ import annotations

import os
import sys
from stat import S_ISREG

# typing would cost a Python that never trains more than all else here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VARIABLE = "GPUDEBUG_KEEP"
"""Lines: `stop`, or `allow` to note alone; when the run began, in ns; the file of what earlier runs wrote;
then `+FOLDER`, whose files count wherever it lies, and `-FOLDER`, whose files do not."""
NOTES = "wrote.txt"
"""In the folder of the records: `KIND SIZE MTIME PATH` a line, size and time of before. `w`: written by this
run; `a`: added to, or moved away; `r`: opened to be read and written; `d`: a folder that got this name."""
STOPPED = "stopped.txt"
"""In the same folder, once a process was stopped: such a line of the file that it would have overwritten."""
STATUS = 1
LARGEST = 4 << 20
_FOLDERS = 4096
# Names of folders that hold what any program makes again, and the parts of names of such files.
CACHES = frozenset(("cache", "caches", "__pycache__"))
SUFFIXES = (".pyc", ".cache")
PREFIXES = ("cache-", "cached_")
SYSTEM = ("/proc/", "/sys/", "/dev/", "/run/")
_STATX = (-100, 0, 0x800, 256, 80)


class Keeper:
    """What of this process's writing would cost somebody a file."""

    def __init__(self, run: str, spec: str) -> None:
        mode, begun, self._earlier, *places = spec.split("\n")
        self._allows = mode != "stop"
        self._begun = int(begun)
        self._run = run
        self._counts = tuple(place[1:].rstrip(os.sep) + os.sep for place in places if place[:1] == "+")
        self._apart = tuple(place[1:].rstrip(os.sep) + os.sep for place in places if place[:1] == "-")
        self._notes = os.path.join(run, NOTES)
        if "GPUDEBUG_NODE" in os.environ:
            from .record import file_of

            self._notes = os.path.join(run, file_of(NOTES, os.environ))
        self._home = os.path.expanduser("~").rstrip(os.sep) + os.sep
        self._mine: set[str] = set()
        self._noted: set[tuple[str, str]] = set()
        self._folders: dict[tuple[int, int], str] = {}
        self._read_to = 0
        self._known: set[bytes] | None = None
        self._open, self._close = os.open, os.close

    def writes(self, path: Any, at: int | None = None, name: bool = False, ours: bool = True) -> None:
        """What is at `path` is emptied, replaced or removed now; `name`: itself, not what a link leads to.

        Not `ours` is what is put there: a file of theirs that gets this name.
        """
        try:
            place = self._place(path, at, name)
            if place is None or place in self._mine:
                return
            status = self._kept(place, name)
            if status is not None and not self._allows and self._is_theirs(place, status):
                self._stop(place, status)
            if ours:
                self._mine.add(place)
                self._note("w", place, status)
        except Exception:  # noqa: BLE001, S110 - a training never fails because it is watched
            pass

    def adds(self, path: Any, at: int | None = None, name: bool = False) -> bool:
        """Something is added at its end, or it gets another name: nothing is lost. Whether it is theirs."""
        return self._lets("a", path, at, name)

    def reads(self, path: Any, at: int | None = None) -> None:
        """It may be written to: how it is now tells later whether it was."""
        self._lets("r", path, at, False)

    def moved(self, path: Any, at: int | None, new: Any, at_new: int | None) -> None:
        """A file or folder got another name."""
        try:
            place = self._place(new, at_new, True)
            if place is not None and os.path.isdir(place):
                old = self._place(path, at, True)
                self._append("d 0 0 " + str(old) + "\t" + place + "\n")
        except Exception:  # noqa: BLE001, S110
            pass

    def _lets(self, kind: str, path: Any, at: int | None, name: bool) -> bool:
        try:
            place = self._place(path, at, name)
            if place is None or place in self._mine or (kind, place) in self._noted:
                return place is not None and place not in self._mine
            status = self._kept(place, False)
            theirs = status is not None and self._is_theirs(place, status)
            if theirs:
                self._noted.add((kind, place))
            else:
                self._mine.add(place)
            self._note(kind if theirs else "w", place, status)
        except Exception:  # noqa: BLE001
            return False
        return theirs

    # Which files count

    def _place(self, path: Any, at: int | None, name: bool) -> str | None:
        """Return the file's real path; None of a descriptor, and where files do not count."""
        if isinstance(path, int):
            return None
        text = os.fsdecode(path)
        if at is not None and not os.path.isabs(text):
            text = os.path.join(os.readlink("/proc/self/fd/" + str(at)), text)
        folder, base = os.path.split(os.path.abspath(text))
        status = os.stat(folder)
        key = (status.st_dev, status.st_ino)
        real = self._folders.get(key)
        if real is None:
            if len(self._folders) >= _FOLDERS:
                self._folders.clear()
            real = self._folders[key] = os.path.realpath(folder)
        place = os.path.join(real, base)
        if not name and os.path.islink(place):
            place = os.path.realpath(place)
        return None if self._is_apart(place) or "\n" in place else place

    def _is_apart(self, place: str) -> bool:
        if place.startswith(SYSTEM) or _holds(self._apart, place):
            return True
        root = next((one for one in self._counts if place.startswith(one)), None)
        if root is None and place.startswith(_temporary()):
            return True
        return is_made_again(place[len(root or (self._home if place.startswith(self._home) else "")) :])

    def _kept(self, place: str, name: bool) -> os.stat_result | None:
        """Return the status of a file that has something to lose."""
        try:
            status = os.lstat(place)
        except OSError:
            return None
        lost = S_ISREG(status.st_mode) and status.st_size and not (name and status.st_nlink > 1)
        return status if lost else None

    def _is_theirs(self, place: str, status: os.stat_result) -> bool:
        """Tell whether it was there before this run, and no run of gpudebug was the last to write it."""
        self._refresh()
        if place in self._mine:
            return False
        if self._known is None:
            self._known = _lines_of(self._earlier + ".1").union(_lines_of(self._earlier))
        if state_line(place, status) in self._known:
            return False
        born = born_at(place)
        return born is None or born < self._begun

    # Notes

    def _refresh(self) -> None:
        """Take over what other processes of this run have written by now."""
        try:
            if os.stat(self._notes).st_size <= self._read_to:
                return
            fd = self._open(self._notes, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return
        try:
            os.lseek(fd, self._read_to, os.SEEK_SET)
            data = os.read(fd, LARGEST)
        finally:
            self._close(fd)
        whole = data.rfind(b"\n") + 1
        self._read_to += whole
        for line in data[:whole].split(b"\n"):
            if line.startswith(b"w "):
                self._mine.add(os.fsdecode(line.split(b" ", 3)[3]))

    def _note(self, kind: str, place: str, status: os.stat_result | None) -> None:
        self._append(_line(kind, place, status))

    def _append(self, line: str) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = self._open(self._notes, flags, 0o600)
        try:
            if os.fstat(fd).st_size < LARGEST:
                os.write(fd, os.fsencode(line))
        finally:
            self._close(fd)

    def _stop(self, place: str, status: os.stat_result) -> None:
        """End this process, without anything that it would do as it ends; gpudebug ends the others."""
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
            fd = self._open(os.path.join(self._run, STOPPED), flags, 0o600)
            os.write(fd, os.fsencode(_line("w", place, status)))
            # Python's standard error may lie in the hands of the program.
            said = "gpudebug: stopped before " + place + " was overwritten: it is not of this program's run\n"
            os.write(2, os.fsencode(said))
        except OSError:
            # Another process was the first, or the disk is full: gpudebug sees that the file is there.
            pass
        os._exit(STATUS)


def is_made_again(path: str) -> bool:
    """Tell whether a relative path is a cache's, byte code, or a tool's own: in a hidden folder."""
    *folders, name = path.lower().split(os.sep)
    hidden = any(part.startswith(".") or part in CACHES for part in (*folders, name))
    return hidden or name.endswith(SUFFIXES) or name.startswith(PREFIXES)


def state_line(path: str, status: os.stat_result) -> bytes:
    """Return what the file of earlier runs says of a file in this state."""
    return os.fsencode(f"{status.st_size} {status.st_mtime_ns} {path}")


def born_at(path: str) -> int | None:
    """Return when a file came to be, in ns; None if the file system or the C library does not say."""
    at, flags, wanted, size, offset = _STATX
    try:
        import ctypes

        found = ctypes.create_string_buffer(size)
        if ctypes.CDLL(None).statx(at, os.fsencode(path), flags, wanted, found):
            return None
        order, raw = sys.byteorder, found.raw
        if not int.from_bytes(raw[:4], order) & wanted:
            return None
        seconds = int.from_bytes(raw[offset : offset + 8], order, signed=True)
        return seconds * 10**9 + int.from_bytes(raw[offset + 8 : offset + 12], order)
    except Exception:  # noqa: BLE001 - another C library
        return None


def _line(kind: str, place: str, status: os.stat_result | None) -> str:
    size, time = (status.st_size, status.st_mtime_ns) if status is not None else (0, 0)
    return f"{kind} {size} {time} {place}\n"


def _lines_of(path: str) -> set[bytes]:
    try:
        with open(path, "rb") as file:
            return set(file.read(LARGEST).split(b"\n"))
    except OSError:
        return set()


def _holds(folders: tuple[str, ...], place: str) -> bool:
    return bool(folders) and place.startswith(folders)


def _temporary() -> tuple[str, ...]:
    named = (os.environ.get("TMPDIR"), "/tmp", "/var/tmp")
    return tuple(os.path.realpath(path) + os.sep for path in named if path)
