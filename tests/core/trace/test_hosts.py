"""Operators' own time, outermost spans and stacks, against a tree that is walked by hand."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.trace.events import EventKind, Names
from gpudebug.core.trace.hosts import Hosts
from gpudebug.core.trace.spans import total

Node = tuple[str, int, list[Any]]
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"

# A tree of calls: name, own microseconds before each child and after the last, children.
trees = st.recursive(
    st.tuples(st.sampled_from("abc"), st.integers(1, 5), st.just([])),
    lambda inner: st.tuples(st.sampled_from("abc"), st.integers(1, 5), st.lists(inner, max_size=3)),
    max_leaves=12,
)


def placed(node: Node, at: int) -> tuple[list[tuple[str, int, int]], int]:
    """(name, start, duration) of the node and of all below it, and when it ends."""
    name, own, children = node
    spans, now = [], at + own
    for child in children:
        below, now = placed(child, now)
        spans += below
        now += own
    return [(name, at, now - at), *spans], now


def expected(node: Node, open_: tuple[str, ...], own: Counter[str], whole: Counter[str]) -> int:
    name, gap, children = node
    inner = sum(expected(child, (*open_, name), own, whole) for child in children)
    mine = gap * (len(children) + 1)
    own[name] += mine
    if name not in open_:
        whole[name] += mine + inner
    return mine + inner


def fed(
    spans: list[tuple[str, int, int]], kind: int = EventKind.OPERATOR, window: int = 150_000, tid: int = 1
) -> Hosts:
    hosts = Hosts(Names(), window)
    for name, start, length in spans:
        number = hosts.names.ids.get(name)
        hosts.add(start, length, hosts.names.add(name) if number is None else number, tid, kind)
    hosts.finish()
    return hosts


def by_name(hosts: Hosts, values: dict[int, float]) -> dict[str, float]:
    return {hosts.names.texts[n]: v for n, v in values.items() if v}


@given(st.lists(trees, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_own_time_is_what_no_operator_inside_took(forest: list[Node], shuffle: Any) -> None:
    spans, now = [], 0
    own: Counter[str] = Counter()
    whole: Counter[str] = Counter()
    for tree in forest:
        found, now = placed(tree, now + 1)
        spans += found
        expected(tree, (), own, whole)
    shuffle.shuffle(spans)
    hosts = fed(spans)
    assert by_name(hosts, hosts.own) == own
    assert by_name(hosts, hosts.total) == whole
    assert by_name(hosts, hosts.calls) == Counter(name for name, _, _ in spans)
    assert len(hosts.operators) == len(forest)
    assert hosts.late == 0


def test_more_events_than_the_window_give_the_same() -> None:
    spans = []
    for i in range(3000):
        spans += [("outer", 100 * i, 90), ("inner", 100 * i + 10, 30), ("inner", 100 * i + 50, 30)]
    hosts = fed(spans, window=500)
    assert by_name(hosts, hosts.own) == {"outer": 90_000, "inner": 180_000}
    assert hosts.late == 0
    # A parent that is written behind its children, as Kineto writes a step's annotation.
    late = sorted(spans, key=lambda s: (s[1] // 100, -s[1]))
    assert by_name(fed(late, window=500), fed(late, window=500).own) == {"outer": 90_000, "inner": 180_000}


def test_events_far_from_their_order_are_counted_and_named() -> None:
    spans = [("a", 10 * i, 5) for i in range(2000)]
    hosts = fed([*spans[1000:], *spans[:1000]], window=100)
    assert hosts.late > 0
    assert by_name(hosts, hosts.calls) == {"a": 2000}
    assert by_name(hosts, hosts.own) == {"a": 10_000}
    assert total(hosts.operators.union()) == 10_000


def test_threads_are_told_apart() -> None:
    hosts = Hosts(Names())
    number = hosts.names.add("a")
    for tid in (1, 2, "three"):
        hosts.add(0, 10, number, tid, EventKind.OPERATOR)
        hosts.add(2, 5, number, tid, EventKind.OPERATOR)
    hosts.finish()
    assert hosts.own[number] == 30
    assert hosts.total[number] == 30
    assert len(hosts.operators) == 3


def test_loaders_and_annotations_are_outermost() -> None:
    spans = [("mine", 0, 100), (LOADER, 10, 50), (LOADER, 12, 40), ("inner", 70, 20), (LOADER, 120, 5)]
    hosts = fed(spans, EventKind.ANNOTATION)
    start, end, _ = hosts.loaders.arrays()
    assert list(zip(start, end, strict=True)) == [(10, 60), (120, 125)]
    start, end, _ = hosts.annotations.arrays()
    assert list(zip(start, end, strict=True)) == [(0, 100), (120, 125)]


def test_a_read_keeps_its_stack() -> None:
    hosts = Hosts(Names())
    add = hosts.names.add
    hosts.add(0, 100, add("train.py(10): step"), 1, EventKind.PYTHON)
    item = add("aten::item")
    for start in (10, 50):
        hosts.add(start, 20, item, 1, EventKind.OPERATOR)
    hosts.add(200, 5, item, 1, EventKind.OPERATOR)
    hosts.finish()
    texts = hosts.names.texts
    found = {tuple(texts[n] for n, _ in stack): seen for (_, stack), seen in hosts.reads.items()}
    assert found == {("train.py(10): step",): [2, 40.0], (): [1, 5.0]}
    stacks = hosts.holders.find(hosts.thread(1), [12.0, 75.0, 201.0], [15.0, 76.0, 204.0])
    named = [s and [texts[n] for n, _ in s] for s in stacks]
    assert named == [["aten::item", "train.py(10): step"], None, ["aten::item"]]
    assert hosts.holders.find(hosts.thread(2), [12.0], [13.0]) == [None]


@pytest.mark.parametrize("window", [3, 4, 7])
def test_a_window_of_any_size_loses_nothing(window: int) -> None:
    hosts = fed([("a", i, 1) for i in range(101)], window=window)
    assert by_name(hosts, hosts.calls) == {"a": 101}
