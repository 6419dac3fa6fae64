"""A version 2 control group of the job's own, where this user may make one.

It is the one mechanism that also holds a process which cleared its environment and outlived its warden.
"""
# pathlib would cost the warden a quarter of its start.

from __future__ import annotations

import binascii
import contextlib
import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX = "gpudebug-"
SELF = "/proc/self"


def folder_name(marker: str) -> str:
    """The group's name for a run: readable, and different for markers that differ only in odd characters."""
    readable = "".join(c if c.isalnum() and c.isascii() else "_" for c in marker)[:80]
    return f"{PREFIX}{readable}-{binascii.crc32(marker.encode('utf-8', 'surrogateescape')):08x}"


def _mount() -> tuple[str, str] | None:
    """(root inside the hierarchy, mount point) of the version 2 hierarchy."""
    with (
        contextlib.suppress(OSError),
        open(f"{SELF}/mountinfo", encoding="utf-8", errors="surrogateescape") as f,
    ):
        for line in f:
            left, _, right = line.partition(" - ")
            if right.startswith("cgroup2 "):
                fields = left.split(" ")
                return _plain(fields[3]), _plain(fields[4])
    return None


def _plain(path: str) -> str:
    """Undoes mountinfo's octal escapes of blanks and backslashes."""
    for code, text in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        path = path.replace(code, text)
    return path


def own_folder() -> str | None:
    """Return the folder of this process's own group, or None if there is no version 2 hierarchy in reach."""
    mount = _mount()
    if mount is None:
        return None
    root, point = mount
    path = None
    with (
        contextlib.suppress(OSError),
        open(f"{SELF}/cgroup", encoding="utf-8", errors="surrogateescape") as f,
    ):
        for line in f:
            if line.startswith("0::"):
                path = line[3:].rstrip("\n")
    if path is None or ".." in path.split("/"):
        return None
    if root != "/":
        if path != root and not path.startswith(root + "/"):
            return None
        path = path[len(root) :]
    return point + path.rstrip("/")


class Cgroup:
    """One group, named after the run. Every method may be called when the group is gone already."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    @classmethod
    def create(cls, marker: str) -> Cgroup | None:
        """Return a new group below our own; None if that is not permitted, which is the usual case."""
        parent = own_folder()
        if parent is None:
            return None
        group = cls(f"{parent}/{folder_name(marker)}")
        try:
            os.mkdir(group.folder)
        except FileExistsError:
            return group if group.usable() and not group.pids() else None
        except OSError:
            return None
        if not group.usable():
            group.remove()
            return None
        return group

    @classmethod
    def find(cls, marker: str) -> Iterator[Cgroup]:
        """Groups of that run anywhere in the hierarchy: a later process may live in another branch."""
        mount = _mount()
        if mount is None:
            return
        name = folder_name(marker)
        for folder, folders, _ in os.walk(mount[1]):
            if name in folders:
                yield cls(f"{folder}/{name}")

    def usable(self) -> bool:
        return os.access(f"{self.folder}/cgroup.procs", os.W_OK)

    def join(self) -> None:
        """Moves the calling process in; without it the tree is still held by other means."""
        with contextlib.suppress(OSError), open(f"{self.folder}/cgroup.procs", "wb", buffering=0) as file:
            file.write(b"0")

    def pids(self) -> list[int]:
        """Return the processes inside, sub-groups included; zombies are not among them."""
        found: list[int] = []
        for folder, _, _ in os.walk(self.folder):
            # A sub-group may vanish while we read.
            with contextlib.suppress(OSError), open(f"{folder}/cgroup.procs", encoding="ascii") as file:
                found += [int(line) for line in file if line.strip() != "0"]
        return found

    def kill(self) -> None:
        """Kills all inside; one call is atomic against forks since Linux 5.14, before that it is repeated."""
        try:
            with open(f"{self.folder}/cgroup.kill", "wb", buffering=0) as file:
                file.write(b"1")
        except OSError:
            for pid in self.pids():
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)

    def remove(self) -> bool:
        """Removes the emptied group and its sub-groups; False while the kernel still counts a member."""
        for folder, _, _ in os.walk(self.folder, topdown=False):
            with contextlib.suppress(FileNotFoundError):
                try:
                    os.rmdir(folder)
                except OSError:
                    return False
        return True
