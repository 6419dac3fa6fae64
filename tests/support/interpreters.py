"""Other Pythons of this machine, for what runs in a training's own one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

# CI takes the oldest and the newest; what lies between them is like one of them.
VERSIONS = (
    "3.8",
    *(pytest.param(version, marks=pytest.mark.heavy) for version in ("3.9", "3.10", "3.11")),
    "3.12",
    "3.13",
)


def interpreter(version: str) -> str:
    """Path of a Python of this version that runs; without one the test is skipped."""
    found = _found(version)
    if found is None:
        pytest.skip(f"no python{version} that runs on this machine")
    return found


@cache
def _found(version: str) -> str | None:
    return next((path for path in _candidates(version) if _runs(path, version)), None)


def _candidates(version: str) -> Iterator[str]:
    if version == ".".join(map(str, sys.version_info[:2])):
        yield sys.executable
    if path := shutil.which(f"python{version}"):
        yield path
    # What pyenv has installed and not chosen is behind a shim that refuses.
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from map(str, sorted(root.glob(f"versions/{version}.*/bin/python")))


def _runs(path: str, version: str) -> bool:
    code = "import sys; print('.'.join(map(str, sys.version_info[:2])))"
    try:
        done = subprocess.run([path, "-c", code], capture_output=True, text=True, check=False)
    except OSError:
        return False
    return done.stdout.strip() == version
