"""Sections around an object's methods, and around no other's: the method-level mode."""

from __future__ import annotations

import sys
from types import FunctionType, MethodType, ModuleType
from weakref import ref

from gpudebug.training.profiling.decorators import COROUTINE, GENERATOR, dressed, flags_of, profile_method
from gpudebug.training.profiling.state import state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from typing import Any, Iterable

# Whose methods are machinery, not the user's: torch.nn.Module has fifty.
_MACHINERY = ("torch.nn.modules.module", "builtins", "abc", "typing")


class _MethodGate:
    """A method of a class that is timed for some of its objects and passes for all others.

    Not in the objects' own namespaces: a shallow copy, or a replica of a model for another GPU, would take a
    bound method along and work on the object that it was copied from.
    """

    def __init__(self, cls: Any, key: str) -> None:
        self.cls = cls
        self.key = key
        self.inherited = key not in vars(cls)
        self.plain = getattr(cls, key)
        # By identity: what keeps it from being another object's, and the function that times.
        self.timed: dict[int, tuple[Any, Any]] = {}
        self.method = dressed(self._passing(), self.plain)
        setattr(cls, key, self.method)

    def _passing(self) -> Any:
        timed, plain = self.timed, (None, self.plain)
        flags = flags_of(self.plain)
        if flags & COROUTINE:

            async def coroutine(target: Any, /, *args: Any, **kwargs: Any) -> Any:
                return await timed.get(id(target), plain)[1](target, *args, **kwargs)

            return coroutine
        if flags & GENERATOR:

            def generator(target: Any, /, *args: Any, **kwargs: Any) -> Any:
                return (yield from timed.get(id(target), plain)[1](target, *args, **kwargs))

            return generator

        def method(target: Any, /, *args: Any, **kwargs: Any) -> Any:
            return timed.get(id(target), plain)[1](target, *args, **kwargs)

        return method

    def open(self, target: Any, section: str, track_memory: bool) -> tuple[Any, Any] | None:
        """Time the object's calls; what `close` takes to undo it."""
        ident, timed = id(target), self.timed
        before = timed.get(ident)
        function = profile_method(section, track_memory=track_memory)(before[1] if before else self.plain)
        try:
            held: Any = ref(target, lambda _: timed.pop(ident, None))
        except TypeError:
            held = target
        timed[ident] = (held, function)
        return before

    def close(self, target: Any, before: tuple[Any, Any] | None) -> None:
        """Undo `open`; without any object left the class is as it was."""
        self.timed.pop(id(target), None)
        if before is not None:
            self.timed[id(target)] = before
        if not self.timed and vars(self.cls).get(self.key) is self.method:
            if self.inherited:
                delattr(self.cls, self.key)
            else:
                setattr(self.cls, self.key, self.plain)
            _gates.pop((self.cls, self.key), None)


_gates: dict[tuple[Any, str], _MethodGate] = {}


def _gate(target: Any, key: str) -> _MethodGate | None:
    """None for what lies in the object itself, what knows no object, and PyTorch's own classes.

    Those are shared with code that is compiled from their source.
    """
    cls = type(target)
    if key in vars(target) or cls.__module__.partition(".")[0] == "torch":
        return None
    found = _gates.get((cls, key))
    if found is None and isinstance(_plain(cls, key), FunctionType):
        found = _gates[cls, key] = _MethodGate(cls, key)
    return found


class ProfiledObject:
    """What `profile_object` did: `undo()` takes it back, as does the end of a `with` statement."""

    def __init__(self, target: Any, name: str, names: list[str]) -> None:
        self.target = target
        self.name = name
        self.methods = names
        self._gated: list[tuple[_MethodGate, tuple[Any, Any] | None]] = []
        # What lay in the object's own namespace before; absent where it came from the class.
        self._before: dict[str, Any] = {key: vars(target)[key] for key in names if key in vars(target)}

    def undo(self) -> None:
        """Put the methods back as they were; done twice, nothing."""
        for gate, before in self._gated:
            gate.close(self.target, before)
        self._gated = []
        for key in self.methods:
            if key in self._before:
                _set(self.target, key, self._before[key])
            elif key in vars(self.target):
                _delete(self.target, key)
        self.methods = []

    def pass_through(self, gate: _MethodGate, section: str, track_memory: bool) -> None:
        """Time a method by its class's gate."""
        self._gated.append((gate, gate.open(self.target, section, track_memory)))

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

    `target` is an object, a class or a module; `name` is its class's own unless given. All public methods
    of its class and their bases are taken (those of `torch.nn.Module` itself apart, so of a model
    `forward`), or `methods`, which may name private ones. Copies and pickles of the object behave as
    before: a copy's methods are its own, and not timed unless PyTorch's class defines them. AttributeError
    for a method that is not there, TypeError for an object that holds no attributes of its own.
    """
    if not hasattr(target, "__dict__"):
        raise TypeError(
            f"a {type(target).__name__} has no attributes of its own: "
            "decorate the methods of its class with @profile_method, or pass the class"
        )
    shared = isinstance(target, (type, ModuleType))
    name = name or (target.__name__ if shared else type(target).__name__)
    if isinstance(methods, str):
        methods = (methods,)
    chosen = list(dict.fromkeys(methods)) if methods is not None else _public(target)
    if not chosen and methods is None:
        state.note(f"profile_object({name}): no public method of its class was found, name them: methods=")
    for key in chosen:
        if not callable(getattr(target, key)):
            raise TypeError(f"{name}.{key} is no method")
    profiled = ProfiledObject(target, name, chosen)
    for key in chosen:
        section = f"{name}.{key}"
        gate = None if shared else _gate(target, key)
        if gate is not None:
            profiled.pass_through(gate, section, track_memory)
            continue
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


VARIABLE = "GPUDEBUG_PROFILE_METHODS"
_KINDS = ("function", "staticmethod", "classmethod")


def parse(text: str) -> dict[str, list[str]]:
    """Parse GPUDEBUG_PROFILE_METHODS into class names by module; an empty list is all of its classes.

    `package.module:Class` each, separated by commas; `package.module` alone is all classes that it defines.
    """
    wanted: dict[str, list[str]] = {}
    for entry in text.split(","):
        module, _, name = entry.strip().partition(":")
        if module:
            names = wanted.setdefault(module, [])
            if name:
                names.append(name)
    return wanted


def time_named(text: str) -> None:
    """Time the methods, private ones too, of the classes that `text` names, once their module is imported."""
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
            state.note(f"{VARIABLE}: {module.__name__} has no class {name}")
            continue
        methods = [
            key
            for key, value in vars(cls).items()
            if type(value).__name__ in _KINDS and not (key.startswith("__") and key != "__call__")
        ]
        profile_object(cls, cls.__name__, methods)


class _MethodFinder:
    """Finds the modules that are wanted as everyone else does, and looks at them once they are there."""

    def __init__(self, wanted: dict[str, list[str]]) -> None:
        self.wanted = wanted

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname not in self.wanted:
            return None
        from importlib.util import find_spec

        names = self.wanted.pop(fullname)  # Before the search: it comes back here.
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _MethodLoader(spec.loader, names)  # type: ignore[assignment]
        return spec


class _MethodLoader:
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
            state.note(f"{VARIABLE}: {module.__name__}: {type(e).__name__}: {e}"[:200])
