"""Reports when a module has been imported for the first time, and changes nothing about how it is."""

from __future__ import annotations

import sys

# typing would cost a Python that never trains more than all else here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any


def when_imported(name: str, callback: Callable[[ModuleType], object]) -> None:
    """Call `callback(module)` once the top-level module `name` is imported; now, if it is already.

    What `callback` raises is kept from the import: it must note it itself.
    """
    module = sys.modules.get(name)
    if module is not None and _complete(module):
        callback(module)
        return
    waiting = next((one for one in sys.meta_path if isinstance(one, _Finder) and one.name == name), None)
    if waiting is not None:
        # Two finders of one name would ask each other without end.
        waiting.callbacks.append(callback)
        return
    sys.meta_path.insert(0, _Finder(name, callback))


def _complete(module: ModuleType) -> bool:
    return not getattr(_spec(module), "_initializing", False)


def _spec(module: ModuleType) -> object:
    """Without waking a module that loads itself when it is asked for anything."""
    try:
        return object.__getattribute__(module, "__dict__").get("__spec__")
    except AttributeError:
        return None


class _Finder:
    """In front of sys.meta_path until the module is there. Finds nothing itself: it asks those behind it.

    The loader that they return stays as it is but for this one `exec_module`, so that whoever looks at the
    spec, pickles the module or asks for its source meets the real one.
    """

    def __init__(self, name: str, callback: Callable[[ModuleType], object]) -> None:
        self.name = name
        self.callbacks = [callback]
        self._watched: list[ModuleSpec] = []

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != self.name:
            # Python goes through the list by number: who leaves it meanwhile must answer for those behind.
            return self._ask_others(name, path, target) if self._came_unseen() else None
        spec = self._ask_others(name, path, target)
        if spec is not None and self._watch(spec.loader):
            self._watched.append(spec)
        return spec

    def _ask_others(self, name: str, path: Any, target: ModuleType | None) -> ModuleSpec | None:
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec = find(name, path, target)
            if spec is not None:
                return spec  # type: ignore[no-any-return]
        return None

    def _watch(self, loader: Any) -> bool:
        """Call back when the loader has executed the module, if it ever does; whether that is possible."""
        execute = getattr(loader, "exec_module", None)
        known = getattr(loader, "__dict__", None)
        # One without either, or a class.
        if execute is None or type(known) is not dict:
            return False
        before = {"exec_module": known["exec_module"]} if "exec_module" in known else {}

        def exec_module(module: ModuleType) -> None:
            # A loader may be shared with other modules.
            if module.__name__ != self.name:
                execute(module)
                return
            known.pop("exec_module", None)
            known.update(before)
            execute(module)
            self._done(module)

        known["exec_module"] = exec_module
        return True

    def _came_unseen(self) -> bool:
        """A finder in front of this one, or a loader that cannot be watched, may have imported it."""
        module = sys.modules.get(self.name)
        if module is None or not _complete(module) or any(_spec(module) is spec for spec in self._watched):
            return False
        self._done(module)
        return True

    def _done(self, module: ModuleType) -> None:
        callbacks, self.callbacks = self.callbacks, []
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        for callback in callbacks:
            try:  # noqa: SIM105 - contextlib need not be loaded
                callback(module)
            except Exception:  # noqa: BLE001, S110 - an import never fails because it is watched
                pass
