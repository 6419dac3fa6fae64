"""Sections around whole functions: `@profile_method` and `@profile_function("name")`."""

from __future__ import annotations

from gpudebug.training.profiling.sections import profile
from gpudebug.training.profiling.state import state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, TypeVar, overload

    F = TypeVar("F", bound=Callable[..., Any])

# Of a code object, as `inspect` names them: CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR.
GENERATOR, COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x200
_KEPT = ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__", "__type_params__")


if TYPE_CHECKING:

    @overload
    def profile_method(function: F) -> F: ...

    @overload
    def profile_method(
        function: str | None = None, *, name: str | None = None, track_memory: bool = False
    ) -> Callable[[F], F]: ...

    def profile_method(function: Any = None, *, name: Any = None, track_memory: bool = False) -> Any: ...

else:

    def profile_method(
        function: Callable[..., Any] | str | None = None,
        *,
        name: str | None = None,
        track_memory: bool = False,
    ) -> Any:
        """Time each call of a function or method, under its qualified name or the one that is given.

        Bare, or with arguments: `@profile_method("name", track_memory=True)`. A coroutine is timed until it
        is done, waiting included; of a generator, each item is one call (its end one more), and what its
        consumer does with it is not timed. To `inspect` and `asyncio` the function stays what it was.
        """
        if function is None or isinstance(function, str):
            name = name if function is None else function
            return lambda decorated: _wrapped(decorated, name, track_memory)
        return _wrapped(function, name, track_memory)


profile_function = profile_method


def _wrapped(function: Any, name: str | None, track_memory: bool) -> Any:
    if isinstance(function, (staticmethod, classmethod)):
        return type(function)(_wrapped(function.__func__, name, track_memory))
    if isinstance(function, type):
        raise TypeError(f"profile_method takes a function, not a class: profile_object({function.__name__})")
    if not callable(function):
        kind = type(function).__name__
        below = f": put it below @{kind}" if "property" in kind else f": {function!r}"
        raise TypeError(f"profile_method takes a function, not {kind}{below}")
    return dressed(_around(function, name or name_of(function), track_memory), function)


def name_of(function: Any) -> str:
    """`Policy.forward`; without the function in which it was defined."""
    qualified = getattr(function, "__qualname__", None) or type(function).__qualname__
    return str(qualified).rpartition("<locals>.")[2]


def flags_of(function: Any) -> int:
    """Of its code; 0 if it has none."""
    return int(getattr(getattr(function, "__code__", None), "co_flags", 0))


def _around(function: Any, name: str, track_memory: bool) -> Any:
    flags = flags_of(function)
    if flags & COROUTINE:

        async def coroutine(*args: Any, **kwargs: Any) -> Any:
            with profile(name, track_memory):
                return await function(*args, **kwargs)

        return coroutine
    if flags & _ASYNC_GENERATOR:
        return _async_generator(function, name, track_memory)
    if flags & GENERATOR:
        return _generator(function, name, track_memory)

    def call(*args: Any, **kwargs: Any) -> Any:
        if not state.on:
            return function(*args, **kwargs)
        with profile(name, track_memory):
            return function(*args, **kwargs)

    return call


def _generator(function: Any, name: str, track_memory: bool) -> Any:
    def generator(*args: Any, **kwargs: Any) -> Any:
        inner = function(*args, **kwargs)
        resume, given = inner.send, None
        while True:
            with profile(name, track_memory):
                try:
                    item = resume(given)
                except StopIteration as e:
                    return e.value
            try:
                resume, given = inner.send, (yield item)
            except GeneratorExit:
                inner.close()
                raise
            except BaseException as e:  # noqa: BLE001 - thrown in, for the generator to handle
                resume, given = inner.throw, e

    return generator


def _async_generator(function: Any, name: str, track_memory: bool) -> Any:
    async def generator(*args: Any, **kwargs: Any) -> Any:
        inner = function(*args, **kwargs)
        resume, given = inner.asend, None
        while True:
            with profile(name, track_memory):
                try:
                    item = await resume(given)
                except StopAsyncIteration:
                    return
            try:
                resume, given = inner.asend, (yield item)
            except GeneratorExit:
                await inner.aclose()
                raise
            except BaseException as e:  # noqa: BLE001 - thrown in, for the generator to handle
                resume, given = inner.athrow, e

    return generator


def dressed(wrapper: Any, function: Any) -> Any:
    """`wrapper` under the name and documentation of `function`: `functools.wraps` without its import."""
    for attribute in _KEPT:
        if hasattr(function, attribute):
            setattr(wrapper, attribute, getattr(function, attribute))
    wrapper.__dict__.update(getattr(function, "__dict__", {}))
    wrapper.__wrapped__ = function
    return wrapper
