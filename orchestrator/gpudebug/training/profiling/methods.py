"""Sections around every method of classes that the environment names: GPUDEBUG_PROFILE_METHODS.

`package.module:Class` each, separated by commas; `package.module` alone is all classes that it defines.
Private methods are timed too. A class is taken when its module has been imported; the code stays as it is.
"""

from __future__ import annotations

import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.util import find_spec

from gpudebug.training.profiling.objects import profile_object
from gpudebug.training.profiling.settings import settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

VARIABLE = "GPUDEBUG_PROFILE_METHODS"
_KINDS = ("function", "staticmethod", "classmethod")


def parse(text: str) -> dict[str, list[str]]:
    """Class names by module; an empty list is all of its classes."""
    wanted: dict[str, list[str]] = {}
    for entry in text.split(","):
        module, _, name = entry.strip().partition(":")
        if module:
            names = wanted.setdefault(module, [])
            if name:
                names.append(name)
    return wanted


def arrange(text: str) -> None:
    """Time the methods of the classes that `text` names, now or when their module is imported."""
    wanted = parse(text)
    for module in [name for name in wanted if name in sys.modules]:
        take(sys.modules[module], wanted.pop(module))
    if wanted:
        sys.meta_path.insert(0, _MethodFinder(wanted))


def take(module: ModuleType, names: list[str]) -> None:
    """Time the methods of a module's classes; a name that it lacks is a note of the report."""
    own = [k for k, v in vars(module).items() if isinstance(v, type) and v.__module__ == module.__name__]
    for name in names or own:
        cls = getattr(module, name, None)
        if not isinstance(cls, type):
            settings.note(f"{VARIABLE}: {module.__name__} has no class {name}")
            continue
        methods = [
            key
            for key, value in vars(cls).items()
            if type(value).__name__ in _KINDS and not (key.startswith("__") and key != "__call__")
        ]
        profile_object(cls, cls.__name__, methods)


class _MethodFinder(MetaPathFinder):
    """Finds the modules that are wanted as everyone else does, and looks at them once they are there."""

    def __init__(self, wanted: dict[str, list[str]]) -> None:
        self.wanted = wanted

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname not in self.wanted:
            return None
        names = self.wanted.pop(fullname)  # Before the search: it comes back here.
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _MethodLoader(spec.loader, names)
        return spec


class _MethodLoader(Loader):
    """A module's own loader, and the look at its classes after it."""

    def __init__(self, loader: Any, names: list[str]) -> None:
        self._loader = loader
        self._names = names

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        try:
            take(module, self._names)
        except Exception as e:  # noqa: BLE001 - a training never fails because it is timed
            settings.note(f"{VARIABLE}: {module.__name__}: {type(e).__name__}: {e}"[:200])
