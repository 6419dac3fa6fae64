from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.text.titles import most_alike

SAME = [
    ("The loader waits", "the LOADER waits"),
    ("The loader waits for the store", "Waiting for the store: the loader"),
    ("The loader has too few workers", "Too few loader workers"),
    ("Unused image frames are copied to the GPU", "Image frames that nobody uses are copied to the GPU"),
    ("Batches are copied from pageable memory", "Pageable memory slows batch copies"),
    ("Synchronous logging stalls each step", "Logging synchronously stalls every step"),
    ("cudnn.benchmark is off", "cudnn benchmark disabled"),
    ("num_workers is 0", "Num workers is 0"),
    ("Mixed precision is off", "Mixed-precision off"),
    ("ＬＯＡＤＥＲ waits", "loader waits"),
]
OTHER = [
    ("The loader has too few workers", "Checkpoints are written each step"),
    ("Checkpoints block the training", "Evaluation blocks the training"),
    ("The tokenizer runs in the main process", "The image decoder runs in the main process"),
    ("Data is decoded in the main process", "Data is augmented in the main process"),
    ("The loader waits", "The store waits"),
    ("The loader waits", "GPU clocks are throttled"),
    ("By 1", "By 2"),
    ("", "The loader waits"),
    ("…", "…"),
    ("The", "The"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_titles_of_one_cause(one: str, other: str) -> None:
    assert most_alike(one, [(3, "Checkpoints are written each step"), (7, other)]) == 7


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_titles_of_two_causes(one: str, other: str) -> None:
    assert most_alike(one, [(7, other)]) is None


def test_the_most_alike_is_named_and_the_first_of_equals() -> None:
    others = [(1, "The loader waits on disk"), (2, "The loader waits"), (3, "Waits, the loader")]
    assert most_alike("The loader waits", others) == 2
    assert most_alike("The loader waits", []) is None


@given(st.text(max_size=200), st.text(max_size=200))
def test_titles_are_alike_both_ways(one: str, other: str) -> None:
    assert most_alike(one, [(1, other)]) == most_alike(other, [(1, one)])


def test_five_hundred_long_titles_are_compared_in_a_moment() -> None:
    title = "the loader waits for shards of the store " * 5
    begin = time.monotonic()
    most_alike(title[:200], [(n, f"{n} {title[n % 40 :]}"[:200]) for n in range(500)])
    assert time.monotonic() - begin < 5.0
