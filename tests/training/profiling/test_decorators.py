"""Functions of every kind under a section, and still what they were."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.interpreters import VERSIONS, interpreter
from tests.support.profiled import by_name, places, report_of, run

KINDS = """
import asyncio, inspect, time

@profile_method
def plain(a, b=2, *, c: int = 3) -> int:
    "Adds."
    return a + b + c

@profile_method()
def called(): return 1

@profile_function("named", track_memory=True)
def other(): return 2

@profile_method(name="by_keyword")
def keyword(): return 3

class Policy:
    @profile_method
    def act(self, x): return self.helper(x)
    @staticmethod
    @profile_method
    def helper(x): return x + 1
    @profile_method
    @staticmethod
    def outside(x): return x + 2
    @profile_method
    @classmethod
    def make(cls): return cls()

@profile_method
async def coroutine():
    await asyncio.sleep(0.01)
    return 4

@profile_method
def generator(n):
    total = 0
    for i in range(n):
        try:
            total += (yield i) or 0
        except KeyError:
            total += 100
    return total

@profile_method
async def asynchronous(n):
    for i in range(n):
        try:
            yield i
        except KeyError:
            yield "caught"

def use():
    assert (plain(1), called(), other(), keyword()) == (6, 1, 2, 3)
    p = Policy.make()
    assert (p.act(1), Policy.helper(1), p.outside(1)) == (2, 2, 3)
    assert asyncio.run(coroutine()) == 4
    g = generator(3)
    assert (next(g), g.send(5), g.throw(KeyError("x"))) == (0, 1, 2)
    try:
        next(g)
    except StopIteration as e:
        assert e.value == 105
    def delegating():
        return (yield from generator(2))
    assert list(delegating()) == [0, 1]
    left = generator(9); next(left); left.close()
    async def consume():
        items = [i async for i in asynchronous(2)]
        a = asynchronous(2)
        items += [await a.__anext__(), await a.athrow(KeyError("x"))]
        await a.aclose()
        return items
    assert asyncio.run(consume()) == [0, 1, 0, "caught"]

assert inspect.iscoroutinefunction(coroutine) and asyncio.iscoroutinefunction(coroutine)
assert inspect.isgeneratorfunction(generator) and inspect.isasyncgenfunction(asynchronous)
assert (plain.__name__, plain.__doc__, plain.__module__) == ("plain", "Adds.", "__main__")
assert str(inspect.signature(plain)).startswith("(a, b=2, *, c")
assert Policy.act.__qualname__ == "Policy.act" and plain.__wrapped__(1) == 6
use()
assert get_profiler().report()["sections"] == []
enable_profiling()
use()
"""


@pytest.mark.parametrize("version", VERSIONS)
def test_functions_of_every_kind(tmp_path: Path, version: str) -> None:
    report = report_of(KINDS, tmp_path, interpreter(version))
    found = by_name(report)
    assert {name: (s["calls"], s["errors"]) for name, s in found.items()} == {
        "plain": (1, 0),
        "called": (1, 0),
        "named": (1, 0),
        "by_keyword": (1, 0),
        "Policy.act": (1, 0),
        "Policy.helper": (2, 0),
        "Policy.outside": (1, 0),
        "Policy.make": (1, 0),
        "coroutine": (1, 0),
        # Each item, and the end.
        "generator": (4 + 3 + 1, 0),
        "asynchronous": (3 + 2, 0),
    }
    assert found["coroutine"]["total_s"] >= 0.01
    assert found["named"]["mem_peak_mb"] is not None
    assert "Policy.act/Policy.helper" in places(report)
    assert report["open"] == []


def test_what_the_consumer_of_a_generator_does_is_not_timed(tmp_path: Path) -> None:
    code = """
    import time
    enable_profiling()
    @profile_method
    def batches():
        for i in range(5):
            with profile_section("read"):
                time.sleep(0.002)
            yield i
    for _ in batches():
        with profile_section("train"):
            time.sleep(0.1)
    """
    report = report_of(code, tmp_path)
    found = by_name(report)
    assert set(places(report)) == {"batches", "batches/read", "train"}
    # Of half a second; a busy machine makes the sleeps of reading longer.
    assert 0.01 <= found["batches"]["total_s"] < 0.1
    assert found["batches"]["calls"] == 6


def test_what_cannot_be_decorated_is_refused(tmp_path: Path) -> None:
    code = """
    class Policy: pass
    for what in (3, property(lambda self: 3), Policy):
        try:
            profile_method(what)
        except TypeError as e:
            print(e)
    """
    assert run(code, tmp_path).out.splitlines() == [
        "profile_method takes a function, not int: 3",
        "profile_method takes a function, not property: put it below @property",
        "profile_method takes a function, not a class: profile_object(Policy)",
    ]


def test_an_exception_leaves_a_decorated_function_as_it_is(tmp_path: Path) -> None:
    code = """
    import asyncio, traceback
    enable_profiling()
    @profile_method
    def f(): raise KeyError("f")
    @profile_method
    async def g(): raise KeyError("g")
    @profile_method
    def h():
        yield 1
        raise KeyError("h")
    for action in (f, lambda: asyncio.run(g()), lambda: list(h())):
        try:
            action()
        except KeyError as e:
            print(e.args[0])
    """
    done = run(code + "\n    import json; print(json.dumps(get_profiler().report()))", tmp_path)
    assert done.out.splitlines()[:3] == ["f", "g", "h"]
    assert {n: s["errors"] for n, s in by_name(done.json).items()} == {"f": 1, "g": 1, "h": 1}
