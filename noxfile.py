"""Tasks of contributors, run with the Python that nox runs with: `nox -s unit`, `check` or `full`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nox

nox.options.default_venv_backend = "none"
nox.options.sessions = ["check"]
# Most of them wait: more processes than cores.
PYTEST = ("pytest", "-n", "5", "--dist", "worksteal")


def run(session: nox.Session, module: str, *words: str) -> None:
    session.run(sys.executable, "-m", module, *words, *session.posargs)


@nox.session
def unit(session: nox.Session) -> None:
    """Test the core alone: pure functions, no process."""
    # Nothing of it waits: more processes than cores would only collect the tests once more.
    run(session, *PYTEST, "-n", "logical", "tests/core")


@nox.session
def check(session: nox.Session) -> None:
    """Lint, check types and run all tests but slow ones."""
    lint(session)
    run(session, *PYTEST)


@nox.session
def touched(session: nox.Session) -> None:
    """Test the rooms of a change and those that import them; `-- BASE` compares with another commit."""
    base = session.posargs or ["origin/main"]
    words = [sys.executable, "-m", "tests.support.touched", *base]
    paths = session.run(*words, silent=True)
    session.run(sys.executable, "-m", *PYTEST, "--run-slow", *str(paths).split())


@nox.session
def full(session: nox.Session) -> None:
    """Run what CI runs: slow tests too."""
    lint(session)
    run(session, *PYTEST, "--run-slow")


@nox.session
def lint(session: nox.Session) -> None:
    """Lint, check the format and check types."""
    for module, *words in (("ruff", "check", "."), ("ruff", "format", "--check", "."), ("mypy",)):
        session.run(sys.executable, "-m", module, *words)


@nox.session
def reference(session: nox.Session) -> None:
    """Write the generated pages of docs/reference, and the manifests of the plugin."""
    run(session, "tests.support.reference")
    run(session, "tests.support.manifests")


@nox.session
def figures(session: nox.Session) -> None:
    """Print how large the package is, and what makes it hard to read."""
    run(session, "tests.support.figures")


@nox.session
def findings(session: nox.Session) -> None:
    """Check that what surprised us of other libraries still is so; `-- NAME` for one alone. No part of CI."""
    scripts = sorted(Path("findings").glob("*.sh"))
    chosen = [one for one in scripts if not session.posargs or one.stem in session.posargs]
    # A changed one is news, and the others may be, too: each is run.
    changed = [one.stem for one in chosen if subprocess.run(["bash", str(one)], check=False).returncode]
    if changed or not chosen:
        session.error(f"changed: {', '.join(changed)}" if changed else "no finding of that name")
