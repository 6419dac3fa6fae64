"""Whether two sides printed the same losses: what may differ by rounding, and what shows nothing."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from gpudebug.core.statistics.same_losses import Begin, same

NOISE = random.Random(7)
BATCHES = [NOISE.gauss(0, 0.05) for _ in range(30)]


def printed(of: Callable[[int], float], digits: int = 4, steps: int = 30, every: int = 5) -> Begin:
    return [(every * (n + 1), round(of(n), digits)) for n in range(steps)]


def loss(n: int) -> float:
    """It falls, and varies from batch to batch."""
    return 4.0 - 0.04 * n + BATCHES[n]


BEFORE = [printed(loss)] * 4
SAME = {
    "to the digit": printed(loss),
    "but for rounding": [(step, round(value + 1e-4, 4)) for step, value in printed(loss)],
    "over the steps in common": printed(loss)[:4] + printed(loss)[6:],
}
OTHER = {
    "by two digits in one line": [(s, v + (2e-4 if s == 50 else 0)) for s, v in printed(loss)],
    "of another input": printed(lambda n: loss(n) + 0.002 * BATCHES[-n]),
    "with a lower fall": printed(lambda n: loss(n) + 0.001 * n),
    "at other steps": printed(loss, every=4),
    "of too few steps": printed(loss, steps=19),
    "without steps": [],
    "with fewer digits": printed(loss, digits=2),
}


@pytest.mark.parametrize("after", SAME.values(), ids=SAME)
def test_the_same_losses_are_the_same_work(after: Begin) -> None:
    assert same([*BEFORE, after, after])


@pytest.mark.parametrize("after", OTHER.values(), ids=OTHER)
def test_other_losses_are_not(after: Begin) -> None:
    assert not same([*BEFORE, printed(loss), after])


def test_single_precision_is_no_difference() -> None:
    before = [(n, loss(n)) for n in range(30)]
    assert same([before, [(n, value * (1 + 5e-6)) for n, value in before]])
    assert same([before, [(n, value * (1 + 5e-5)) for n, value in before]]) is False


# With these, other work may print the same.
SILENT = {
    "constant": lambda n: 0.693,
    "smooth": lambda n: 4 - 0.01 * n,
    "of batches alone, as before a warm-up is over": lambda n: 4 + BATCHES[n],
    "that rises": lambda n: 4 + 0.04 * n + BATCHES[n],
}


@pytest.mark.parametrize("of", SILENT.values(), ids=SILENT)
def test_losses_that_change_little_show_nothing(of: Callable[[int], float]) -> None:
    assert same([printed(of), printed(of)]) is None


def test_of_few_digits_they_show_nothing() -> None:
    assert same([printed(loss, digits=1), printed(loss, digits=1)]) is None


def test_one_run_is_no_comparison() -> None:
    assert same([printed(loss)]) is None and same([]) is None
