"""Names that a package has of its modules, each loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def loader(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package; `homes` are the names by the module that they are from, which is
    the package's own unless it is named in full."""
    home = {name: module for module, names in homes.items() for name in names.split()}

    def load(name: str) -> Any:
        module = home.get(name, name)
        if module not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = import_module(module if "gpudebug." in module else f"{package}.{module}")
        return found if name in homes else getattr(found, name)

    return load
