"""Where a training's Python imports packages from, by its own report and by looking at folders."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from gpudebug.edges import launcher

_MODULES = (".py", ".so", ".pyd")


def search_path(asked: launcher.Asked, env: Mapping[str, str], cwd: str, first: str) -> tuple[str, ...]:
    """The folders that a command in `cwd` with `env` searches, in their order; `first` is its program's."""
    return tuple(dict.fromkeys((*_ahead(env, cwd, first), *asked.path)))


def import_folders(
    asked: launcher.Asked, env: Mapping[str, str], cwd: str, first: str, names: tuple[str, ...]
) -> dict[str, str]:
    """From which folders it imports these packages. What is not found is left out; nothing is imported."""
    ahead = _ahead(env, cwd, first)
    found = {name: _folder(asked, ahead, name) for name in names}
    return {name: folder for name, folder in found.items() if folder}


def _ahead(env: Mapping[str, str], cwd: str, first: str) -> list[str]:
    """The folders in front of Python's own: the program's, unless a variable forbids that, and PYTHONPATH."""
    entries = env.get("PYTHONPATH", "").split(os.pathsep) if env.get("PYTHONPATH") else []
    own = [] if env.get("PYTHONSAFEPATH") else [first]
    return [*own, *(os.path.join(cwd, entry) for entry in entries)]


def _folder(asked: launcher.Asked, ahead: list[str], name: str) -> str | None:
    if name in asked.early:
        return asked.early[name][0]
    namespaces = []
    for folder in ahead:
        place = Path(folder, name)
        if (place / "__init__.py").is_file():
            return str(place)
        if any(place.with_name(name + end).is_file() for end in _MODULES):
            return None
        if place.is_dir():
            namespaces.append(str(place))
    known, namespace = asked.found.get(name, (None, True))
    return namespaces[0] if namespaces and namespace else known
