"""Python's own ways to write a file, and those of libraries that write natively, asking the keeper first."""

from __future__ import annotations

import builtins
import io
import os

from .hook import when_imported
from .keep import Keeper

# typing would cost a Python that never trains more than all else here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_PLAIN = frozenset(("r", "rb", "rt", "br", "tr"))


def watch(run: str, spec: str) -> None:
    """Guard the files of the user from this process; notes go to the folder `run`."""
    keeper = Keeper(run, spec)
    builtins.open = _put(io, "open", _opening(io.open, keeper))
    _put(os, "open", _opening_descriptor(os.open, keeper))
    for name in ("rename", "replace"):
        _put(os, name, _moving(getattr(os, name), keeper))
    for name in ("remove", "unlink"):
        _put(os, name, _removing(getattr(os, name), keeper))
    _put(os, "truncate", _native(os.truncate, keeper.writes, 0, "path"))
    for module, owner, name, place, keyword in _NATIVE:
        what = keeper.reads if module == "sqlite3" else keeper.writes
        when_imported(module, _installing(owner, name, what, place, keyword))


# Module, what in it has the function, the function, and where among its arguments the path is.
_NATIVE = (
    ("torch", "", "save", 1, "f"),
    ("torch", "serialization", "save", 1, "f"),
    ("safetensors", "", "serialize_file", 1, "filename"),
    ("h5py", "h5f", "create", 0, "name"),
    ("sqlite3", "", "connect", 0, "database"),
    ("sqlite3", "dbapi2", "connect", 0, "database"),
)
_H5_EXCLUSIVE = 4


def _opening(original: Callable[..., Any], keeper: Keeper) -> Callable[..., Any]:
    def open(file: Any, mode: Any = "r", *args: Any, **kwargs: Any) -> Any:
        # What an opener opens, it opens by os.open.
        if mode.__class__ is str and mode not in _PLAIN and kwargs.get("opener") is None and len(args) < 6:
            if "w" in mode:
                keeper.writes(file)
            elif "a" in mode or "x" in mode:
                keeper.adds(file)
            elif "+" in mode:
                keeper.reads(file)
        return original(file, mode, *args, **kwargs)

    return open


def _opening_descriptor(original: Callable[..., Any], keeper: Keeper) -> Callable[..., Any]:
    kinds = os.O_WRONLY | os.O_RDWR | os.O_TRUNC

    def open(path: Any, flags: Any, *args: Any, dir_fd: int | None = None, **kwargs: Any) -> Any:
        if flags.__class__ is int and flags & kinds:
            if flags & os.O_EXCL or (flags & os.O_APPEND and not flags & os.O_TRUNC):
                keeper.adds(path, dir_fd)
            elif flags & (os.O_TRUNC | os.O_WRONLY):
                keeper.writes(path, dir_fd)
            else:
                keeper.reads(path, dir_fd)
        return original(path, flags, *args, dir_fd=dir_fd, **kwargs)

    return open


def _moving(original: Callable[..., Any], keeper: Keeper) -> Callable[..., Any]:
    def move(src: Any, dst: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None) -> Any:
        theirs = keeper.adds(src, src_dir_fd, name=True)
        keeper.writes(dst, dst_dir_fd, name=True, ours=not theirs)
        result = original(src, dst, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        keeper.moved(src, src_dir_fd, dst, dst_dir_fd)
        return result

    return move


def _removing(original: Callable[..., Any], keeper: Keeper) -> Callable[..., Any]:
    def remove(path: Any, *, dir_fd: int | None = None) -> Any:
        keeper.writes(path, dir_fd, name=True)
        return original(path, dir_fd=dir_fd)

    return remove


def _native(
    original: Callable[..., Any], told: Callable[[Any], None], place: int, keyword: str
) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        path = args[place] if len(args) > place else kwargs.get(keyword)
        exclusive = keyword == "name" and _H5_EXCLUSIVE in args[1:2]
        if isinstance(path, (str, bytes, os.PathLike)) and not exclusive:
            told(path)
        return original(*args, **kwargs)

    return call


def _installing(
    owner: str, name: str, told: Callable[[Any], None], place: int, keyword: str
) -> Callable[[Any], None]:
    def install(module: Any) -> None:
        found = getattr(module, owner) if owner else module
        _put(found, name, _native(getattr(found, name), told, place, keyword))

    return install


class _Function:
    """What stands in the place of a built-in function: no method in a class, and pickled by its name."""

    def __init__(self, original: Any, owner: Any, name: str) -> None:
        self.__wrapped__ = original
        self.__name__ = self.__qualname__ = name
        self.__doc__ = original.__doc__
        self.__module__ = owner.__name__

    def __reduce__(self) -> str:
        return self.__name__

    def __repr__(self) -> str:
        return repr(self.__wrapped__)


def _put(owner: Any, name: str, wrapper: Callable[..., Any]) -> Any:
    """Put a wrapper in the place of a function, and where `os` lists what that can do."""
    original = getattr(owner, name)
    kind = type(name, (_Function,), {"__call__": staticmethod(wrapper)})
    made = kind(original, owner, name)
    for known in _abilities():
        if original in known:
            known.add(made)
    setattr(owner, name, made)
    return made


def _abilities() -> Iterator[set[Any]]:
    names = ("supports_dir_fd", "supports_fd", "supports_follow_symlinks", "supports_effective_ids")
    return (getattr(os, name) for name in names if hasattr(os, name))
