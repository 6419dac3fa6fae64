"""What is made when it is first asked for: the names of a package, and regular expressions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, AnyStr, cast


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


class _Later:
    """Stands for an expression, and has its methods from the first use on."""

    def __init__(self, text: str | bytes, flags: int) -> None:
        self._source = text, flags

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(*self.__dict__["_source"])
        # Loops over lines ask this again and again: a method of the instance costs no call.
        self.__dict__.update({each: getattr(compiled, each) for each in _NAMES})
        return getattr(compiled, name)


_NAMES = [name for name in dir(re.Pattern) if not name.startswith("_")]


def regex(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return an expression as `re.compile` does; re.error is raised at its first use."""
    return cast("re.Pattern[AnyStr]", _Later(text, flags))
