"""Sections around an object's methods, without a change to its class: the method-level mode."""

from __future__ import annotations

from types import FunctionType, MethodType, ModuleType

from gpudebug.training.profiling.decorators import dressed, profile_method
from gpudebug.training.profiling.settings import settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable

# Whose methods are machinery, not the user's: torch.nn.Module has fifty.
_MACHINERY = ("torch.nn.modules.module", "builtins", "abc", "typing")


class ProfiledObject:
    """What `profile_object` did: `undo()` takes it back, as does the end of a `with` statement."""

    def __init__(self, target: Any, name: str, names: list[str]) -> None:
        self.target = target
        self.name = name
        self.methods = names
        # What lay in the object's own namespace before; absent where it came from the class.
        self._before: dict[str, Any] = {key: vars(target)[key] for key in names if key in vars(target)}

    def undo(self) -> None:
        """Put the methods back as they were; done twice, nothing."""
        for key in self.methods:
            if key in self._before:
                _set(self.target, key, self._before[key])
            elif key in vars(self.target):
                _delete(self.target, key)
        self.methods = []

    def __enter__(self) -> ProfiledObject:
        return self

    def __exit__(self, *_: object) -> None:
        self.undo()


def profile_object(
    target: Any,
    name: str | None = None,
    methods: Iterable[str] | str | None = None,
    track_memory: bool = False,
) -> ProfiledObject:
    """Time each call of an object's methods, as sections `name.method` inside each other.

    `target` is an object, a class or a module; `name` is its class's own unless given. All public methods of
    its class and their bases are taken (those of `torch.nn.Module` itself apart, so of a model `forward`),
    or `methods`, which may name private ones. Copies and pickles of the object behave as before: a copy's
    methods are its own. AttributeError for a method that is not there, TypeError for an object that holds
    no attributes of its own.
    """
    if not hasattr(target, "__dict__"):
        raise TypeError(
            f"a {type(target).__name__} holds no attributes of its own: "
            "decorate the methods of its class with @profile_method, or pass the class"
        )
    shared = isinstance(target, (type, ModuleType))
    name = name or (target.__name__ if shared else type(target).__name__)
    if isinstance(methods, str):
        methods = (methods,)
    chosen = list(dict.fromkeys(methods)) if methods is not None else _public(target)
    if not chosen and methods is None:
        settings.note(f"profile_object({name}): no public method of its class was found, name them: methods=")
    for key in chosen:
        if not callable(getattr(target, key)):
            raise TypeError(f"{name}.{key} is no method")
    profiled = ProfiledObject(target, name, chosen)
    for key in chosen:
        section = f"{name}.{key}"
        new = (
            _of_shared(target, key, section, track_memory)
            if shared
            else _bound(target, key, section, track_memory)
        )
        _set(target, key, new)
    return profiled


def _public(target: Any) -> list[str]:
    if isinstance(target, ModuleType):
        own = [
            k
            for k, v in vars(target).items()
            if isinstance(v, FunctionType) and v.__module__ == target.__name__
        ]
    else:
        own = [
            key
            for base in (target if isinstance(target, type) else type(target)).__mro__
            if base.__module__ not in _MACHINERY
            for key, value in vars(base).items()
            if isinstance(value, (FunctionType, staticmethod, classmethod))
        ]
    return [key for key in dict.fromkeys(own) if not key.startswith("_")]


def _of_shared(target: Any, key: str, section: str, track_memory: bool) -> Any:
    """For a class or module: the decorated function; an inherited one becomes the class's own."""
    return profile_method(section, track_memory=track_memory)(_plain(target, key))


def _plain(target: Any, key: str) -> Any:
    for base in getattr(target, "__mro__", (target,)):
        if key in vars(base):
            return vars(base)[key]
    return getattr(target, key)


def _bound(target: Any, key: str, section: str, track_memory: bool) -> MethodType:
    """For an object: a bound method, because copying and pickling bind that to the copy."""
    found = getattr(target, key)
    function = getattr(found, "__func__", None)
    if function is None or found.__self__ is not target:
        function = dressed(_without_self(found), found)
    return MethodType(profile_method(section, track_memory=track_memory)(function), target)


def _without_self(found: Any) -> Any:
    """A static or class method, or a callable that lies in the object itself, as a function of the object."""

    def function(_: Any, *args: Any, **kwargs: Any) -> Any:
        return found(*args, **kwargs)

    return function


def _set(target: Any, key: str, value: Any) -> None:
    if isinstance(target, (type, ModuleType)):
        setattr(target, key, value)
    else:
        # Past a __setattr__ that refuses (a frozen dataclass) or has ideas of its own.
        object.__setattr__(target, key, value)


def _delete(target: Any, key: str) -> None:
    if isinstance(target, (type, ModuleType)):
        delattr(target, key)
    else:
        object.__delattr__(target, key)
