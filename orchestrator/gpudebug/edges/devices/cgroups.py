"""The control groups of a process, as folders."""

from __future__ import annotations

import os
from pathlib import Path

# The namespace that the kernel starts in (PROC_CGROUP_INIT_INO, include/linux/proc_ns.h).
_FIRST_NAMESPACE = "cgroup:[4026531835]"
ROOT = Path("/sys/fs/cgroup")


def folders(controller: str, pid: int | str = "self") -> list[Path]:
    """Return the folders of the process's group and of those above it that may hold a limit, own first."""
    found = []
    for line in lines(Path(f"/proc/{pid}/cgroup")):
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        mount = ROOT / controllers if controllers else ROOT
        own = mount / path.lstrip("/")
        above = [parent for parent in own.parents if parent == mount or mount in parent.parents]
        found += [own, *above]
    return found


def in_root(controller: str, pid: int | str = "self") -> bool:
    """Tell whether the process is in the group that holds all others, which nothing limits."""
    try:
        namespace = os.readlink(f"/proc/{pid}/ns/cgroup")
    except OSError:
        return False
    groups = [line.split(":", 2) for line in lines(Path(f"/proc/{pid}/cgroup"))]
    own = [path for _, names, path in groups if not names or controller in names.split(",")]
    return namespace == _FIRST_NAMESPACE and bool(own) and set(own) == {"/"}


def lines(path: Path) -> list[str]:
    """Return the lines of a file of the kernel's; none if it is not there, or not for us."""
    try:
        return path.read_text("utf-8", "replace").splitlines()
    except (FileNotFoundError, NotADirectoryError, PermissionError, ProcessLookupError):
        return []
