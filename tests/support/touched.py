"""Print the tests of a change: those of the rooms that it touches, and of the rooms that import these.

`python -m tests.support.touched [BASE]` compares the working tree with where it left BASE, else origin/main.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from tests.test_architecture import MODULES

ROOT = Path(__file__).resolve().parents[2]
ALWAYS = "tests/test_architecture.py"
_ROOMED = ("core", "edges", "engine", "training")
_PACKAGE = "orchestrator/gpudebug/"


def room(module: str) -> str:
    """The folder or module that is tested together: `core/verdict` of gpudebug.core.verdict.judge."""
    parts = module.split(".")[1:]
    return "/".join(parts[:2] if parts and parts[0] in _ROOMED else parts[:1])


def importers() -> dict[str, set[str]]:
    """Each room with the rooms that import it, on every floor."""
    found: dict[str, set[str]] = {}
    for module in MODULES:
        for imported in module.imports:
            found.setdefault(room(imported.module), set()).add(room(module.name))
    return found


def selected(
    changed: Iterable[str], above: Mapping[str, set[str]], users: Mapping[str, set[str]]
) -> set[str]:
    """The folders and files below `tests` that a change of these paths needs.

    `above` are the rooms that import a room, `users` the test files that import a helper of tests/support.
    """
    found = {ALWAYS}
    for path in changed:
        if path.startswith(_PACKAGE) and path.endswith(".py"):
            module = path.removeprefix("orchestrator/").removesuffix(".py").removesuffix("/__init__")
            here = room(module.replace("/", "."))
            found |= {f"tests/{place}" for place in {here, *above.get(here, ())} if place}
        elif path.startswith(_PACKAGE):
            found |= {"tests/engine/report", "tests/docs"}
        elif path.startswith("hypotheses/"):
            found |= {"tests/core/catalogue", "tests/core/diagnosis", "tests/engine/diagnosis"}
        elif path.startswith("tests/support/") and not PurePosixPath(path).name.startswith("test_"):
            found |= users.get(PurePosixPath(path).stem, set())
        elif path.startswith("tests/"):
            found.add(
                path if PurePosixPath(path).name.startswith("test_") else str(PurePosixPath(path).parent)
            )
        elif path.endswith(".md"):
            found.add("tests/docs")
    return found


def _users() -> dict[str, set[str]]:
    """Each helper of tests/support with the test files that import it."""
    texts = {str(p.relative_to(ROOT)): p.read_text("utf-8") for p in (ROOT / "tests").rglob("test_*.py")}
    names = [path.stem for path in (ROOT / "tests" / "support").glob("*.py")]
    asked = {name: re.compile(rf"tests\.support(\.{name}\b| import .*\b{name}\b)") for name in names}
    return {name: {path for path, text in texts.items() if asked[name].search(text)} for name in names}


def _there(place: str) -> str | None:
    """The path of a room's tests: a folder, or the test of a module that is alone on its floor."""
    path = PurePosixPath(place)
    names = (place, f"{path.parent}/test_{path.name}.py")
    return next((name for name in names if (ROOT / name).exists()), None)


def _git(*words: str) -> list[str]:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def main(base: str = "origin/main") -> None:
    (since,) = _git("merge-base", base, "HEAD")
    changed = [*_git("diff", "--name-only", since), *_git("ls-files", "--others", "--exclude-standard")]
    found = {_there(place) for place in selected(changed, importers(), _users())} - {None}
    print("\n".join(sorted(map(str, found))))


if __name__ == "__main__":
    main(*sys.argv[1:])
