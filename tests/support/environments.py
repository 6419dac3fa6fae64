"""Environments with training frameworks for heavy tests: one that is named, or one made for the test."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest


def python_with(folder: Path, variable: str, packages: Sequence[str], modules: Sequence[str]) -> str:
    """A Python that imports `modules`: the one that `variable` names, this one, or one in a new environment
    below `folder` with `packages`. The test is skipped where these cannot be installed."""
    given = os.environ.get(variable)
    if given:
        assert imports(given, modules), f"{variable}={given} lacks one of {', '.join(modules)}"
        return given
    if imports(sys.executable, modules):
        return sys.executable
    environment = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    python = str(environment / "bin" / "python")
    install = [python, "-m", "pip", "install", "-q", *packages]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    if done.returncode != 0 or not imports(python, modules):
        reason = (done.stderr.strip().splitlines() or ["the installed packages do not import"])[-1]
        pytest.skip(f"{', '.join(packages)} cannot be installed here: {reason}")
    return python


def imports(python: str, modules: Sequence[str]) -> bool:
    probe = [python, "-c", f"import {', '.join(modules)}"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0
