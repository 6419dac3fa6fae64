"""Facts about this host and about the Python that a training command runs on."""

from __future__ import annotations

import datetime
import os
import re
from dataclasses import dataclass
from pathlib import Path

from gpudebug.edges import opener

_PYTHON = re.compile(r"python[\d.]*$")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The Python that a command runs on; `version` and `packages` are empty if it did not answer."""

    path: str
    version: str
    packages: dict[str, str]


def find_interpreter(executable: str, search: str) -> str | None:
    """Path of the Python behind a command: itself, behind `env`, or in the script's first line.

    `executable` is the command's first word as found on the PATH `search`. None if the command is no
    Python, as far as one sees.
    """
    if _PYTHON.fullmatch(Path(executable).name):
        return executable
    try:
        with opener.opened(executable, follow=True) as f:
            first = f.readline(512)
    except OSError:
        return None
    if not first.startswith(b"#!"):
        return None
    words = os.fsdecode(first[2:]).split()
    if words and Path(words[0]).name == "env":
        words = [w for w in words[1:] if not w.startswith("-") and "=" not in w]
    if not words or not _PYTHON.fullmatch(Path(words[0]).name):
        return None
    if "/" in words[0]:
        return words[0]
    return next(
        (
            str(Path(folder) / words[0])
            for folder in search.split(os.pathsep)
            if (Path(folder) / words[0]).is_file()
        ),
        None,
    )


def interpreter_identity(path: str | None) -> str:
    """Identify an interpreter without starting it: path, and the binary's size and time."""
    if path is None:
        return "none"
    try:
        status = os.stat(path)
    except OSError:
        return path
    return f"{path} {status.st_size} {int(status.st_mtime)}"


def host_name() -> str:
    return os.uname().nodename


def boot_id() -> str | None:
    """Return the kernel's id of this boot: another host has another one, a container its host's."""
    try:
        return _BOOT_ID.read_text("ascii").strip() or None
    except (OSError, ValueError):
        return None


def allowed_cores() -> tuple[int, ...]:
    """Return the numbers of the cores that this process may use, as its step or its parents left them."""
    return tuple(sorted(os.sched_getaffinity(0)))


def cpu_quota() -> float | None:
    """Cores that the control group allows (cgroup v2, else v1); None if it sets no limit."""
    for quota, period in (
        ("/sys/fs/cgroup/cpu.max", None),
        ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "/sys/fs/cgroup/cpu/cpu.cfs_period_us"),
    ):
        try:
            words = Path(quota).read_text().split()
            words += Path(period).read_text().split() if period else []
            if len(words) == 2 and words[0] not in ("max", "-1"):
                return round(int(words[0]) / int(words[1]), 3)
        except (OSError, ValueError):
            continue
    return None


def free_disk_mb(path: Path) -> float:
    """Free space for this user on the file system of `path`."""
    status = os.statvfs(path)
    return status.f_bavail * status.f_frsize / 2**20


def now() -> str:
    """Return the time of day, UTC, to the second, for people to read; durations never come from it."""
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
