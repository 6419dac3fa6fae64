"""Facts about this host and about the Python that a training command runs on."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_PYTHON = re.compile(r"python[\d.]*$")
_ASK = (
    "import json,sys\n"
    "from importlib import metadata\n"
    "print(json.dumps([sys.version.split()[0],"
    "{str(d.metadata['Name']):d.version for d in metadata.distributions() if d.metadata['Name']}]))"
)
# As Python starts the command itself: its own folder stands first, unless a variable forbids that.
_FIND = (
    "import importlib.util as u,json,sys\n"
    "first,names=json.loads(sys.argv[1])\n"
    "sys.path[:1]=[first] if sys.path[:1]==[''] else sys.path[:1]\n"
    "found={}\n"
    "for n in names:\n"
    "    try: s=u.find_spec(n)\n"
    "    except (ImportError,ValueError,AttributeError,OSError): s=None\n"
    "    p=list(s.submodule_search_locations or ()) if s else []\n"
    "    if p: found[n]=p[0]\n"
    "print(json.dumps([found,sys.path]))"
)
_ASK_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The Python that a command runs on; `version` and `packages` are empty where it did not answer."""

    path: str
    version: str
    packages: dict[str, str]


def find_interpreter(executable: str, search: str) -> str | None:
    """Path of the Python behind a command: itself, behind `env`, or in the script's first line.

    `executable` is the command's first word as found on the PATH `search`. None where the command is no
    Python, as far as one sees.
    """
    if _PYTHON.fullmatch(Path(executable).name):
        return executable
    try:
        with open(executable, "rb") as f:
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
    """What tells one interpreter from another without starting it: path, and the binary's size and time."""
    if path is None:
        return "none"
    try:
        status = os.stat(path)
    except OSError:
        return path
    return f"{path} {status.st_size} {int(status.st_mtime)}"


def ask_interpreter(path: str, env: Mapping[str, str]) -> Interpreter:
    """Version and installed packages of an interpreter, asked once in each environment of a training."""
    return _asked(path, tuple(sorted(env.items())))


@lru_cache(maxsize=8)
def _asked(path: str, env: tuple[tuple[str, str], ...]) -> Interpreter:
    try:
        done = subprocess.run(
            [path, "-c", _ASK],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=dict(env),
            timeout=_ASK_TIMEOUT_S,
            check=True,
        )
        # Anything that Python loads at its start may print too.
        version, packages = json.loads(done.stdout)
        found = dict(sorted(packages.items()))
    except (OSError, subprocess.SubprocessError, ValueError, TypeError, AttributeError):
        return Interpreter(path, "", {})
    return Interpreter(path, str(version), found)


def import_folders(
    path: str, env: Mapping[str, str], cwd: str, first: str, names: tuple[str, ...]
) -> dict[str, str] | None:
    """From which folders an interpreter started in `cwd` would import these packages; None: it did not say.

    `first` is the folder that it searches first. Nothing is imported. What it does not find is left out.
    """
    found = _found(path, tuple(sorted(env.items())), cwd, first, names)
    return found[0] if found else None


def search_path(
    path: str, env: Mapping[str, str], cwd: str, first: str, names: tuple[str, ...]
) -> tuple[str, ...] | None:
    """The folders that it would search, in their order; asked together with `import_folders`."""
    found = _found(path, tuple(sorted(env.items())), cwd, first, names)
    return found[1] if found else None


@lru_cache(maxsize=8)
def _found(
    path: str, env: tuple[tuple[str, str], ...], cwd: str, first: str, names: tuple[str, ...]
) -> tuple[dict[str, str], tuple[str, ...]] | None:
    try:
        done = subprocess.run(
            [path, "-c", _FIND, json.dumps([first, names])],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd=cwd,
            env=dict(env),
            timeout=_ASK_TIMEOUT_S,
            check=True,
        )
        found, searched = json.loads(done.stdout)
        folders = {str(name): str(folder) for name, folder in found.items()}
        return folders, tuple(map(str, searched))
    except (OSError, subprocess.SubprocessError, ValueError, TypeError, AttributeError):
        return None


def ask_anew() -> None:
    """Forget what interpreters said: packages may have been installed since."""
    _asked.cache_clear()
    _found.cache_clear()


def host_name() -> str:
    return platform.node()


def cpu_quota() -> float | None:
    """Cores that the control group allows (cgroup v2, else v1); None where it sets no limit."""
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
