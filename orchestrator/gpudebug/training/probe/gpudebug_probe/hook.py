"""Tells when a module has been imported for the first time, and changes nothing about how it is."""

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
    sys.meta_path.insert(0, _Finder(name, callback))


def _complete(module: ModuleType) -> bool:
    return not getattr(getattr(module, "__spec__", None), "_initializing", False)


class _Finder:
    """In front of sys.meta_path until the module is there. Finds nothing itself: it asks those behind it.

    The loader that they return stays as it is but for this one `exec_module`, so that whoever looks at the
    spec, pickles the module or asks for its source meets the real one.
    """

    def __init__(self, name: str, callback: Callable[[ModuleType], object]) -> None:
        self._name = name
        self._callback: Callable[[ModuleType], object] | None = callback

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != self._name:
            self._look()
            return None
        spec = self._ask_others(name, path, target)
        execute = getattr(spec and spec.loader, "exec_module", None)
        if spec is None or execute is None:
            return spec

        def exec_module(module: ModuleType) -> None:
            loader.__dict__.pop("exec_module", None)
            execute(module)
            self._done(module)

        loader: Any = spec.loader
        try:  # noqa: SIM105 - contextlib is not loaded yet
            loader.exec_module = exec_module
        except (AttributeError, TypeError):
            pass  # found when the next module is imported: see _look
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

    def _look(self) -> None:
        """A finder in front of this one, or a loader of another kind, may have imported it unseen."""
        module = sys.modules.get(self._name)
        if module is not None and _complete(module):
            self._done(module)

    def _done(self, module: ModuleType) -> None:
        callback, self._callback = self._callback, None
        if self in sys.meta_path:
            sys.meta_path.remove(self)  # type: ignore[arg-type]
        if callback is not None:
            try:  # noqa: SIM105
                callback(module)
            except Exception:  # noqa: BLE001, S110 - an import never fails because it is watched
                pass
