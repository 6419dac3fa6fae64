"""Answers in a training's Python: its version, its packages, and where it finds the packages named.

Run as a file, alone in its folder: nothing beside it and nothing of the working folder is imported.
"""

from __future__ import annotations

import sys

if sys.path and sys.path[0] == __file__[: -len("/installed.py")]:
    del sys.path[0]

import importlib.util
import json
from importlib import metadata
from importlib.machinery import BuiltinImporter, FrozenImporter, ModuleSpec, PathFinder

MARK = "gpudebug-asked "
_NOT_FOUND = (ImportError, ValueError, AttributeError, OSError)


def package(spec: ModuleSpec | None) -> list[object] | None:
    """Return the folder of a package, and whether it is a namespace; None for anything else."""
    if spec is None or not spec.submodule_search_locations:
        return None
    return [next(iter(spec.submodule_search_locations)), spec.origin is None]


def usual(name: str) -> list[object] | None:
    try:
        return package(importlib.util.find_spec(name))
    except _NOT_FOUND:
        return None


def early(name: str) -> list[object] | None:
    """Return what a finder in front of the search path says, as those of some editable installs do."""
    for finder in sys.meta_path:
        if finder is PathFinder:
            return None
        if finder in (BuiltinImporter, FrozenImporter) or not hasattr(finder, "find_spec"):
            continue
        try:
            found = package(finder.find_spec(name, None))
        except _NOT_FOUND:
            continue
        if found:
            return found
    return None


def main() -> None:
    names = json.loads(sys.argv[1])
    installed = metadata.distributions()
    answer = {
        "version": sys.version.split()[0],
        "packages": {str(d.metadata["Name"]): d.version for d in installed if d.metadata["Name"]},
        "path": sys.path,
        "found": {name: place for name in names if (place := usual(name))},
        "early": {name: place for name in names if (place := early(name))},
    }
    # Anything that Python loads at its start may print too.
    sys.stdout.write("\n" + MARK + json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
