"""Traces of several ranks beside each other."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from tests.support import traces
from tests.support.traces import Event, host, launched

from gpudebug.core.answers.analyze import RanksTogether
from gpudebug.core.trace.ranks import CHANCE, Collectives, RankTrace, compare_ranks, late_by_chance
from gpudebug.core.trace.summary import summarise

ALL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
PAIR = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"


def trace(
    rank: int,
    arrivals: Sequence[float],
    ends: Sequence[float],
    name: str = ALL,
    shift: float = 0.0,
    every: int = 1000,
) -> RankTrace:
    """A rank that comes to its collectives at these microseconds, one a step."""
    events: list[Event] = []
    for n, (begin, end) in enumerate(zip(arrivals, ends, strict=True)):
        events.append(host("user_annotation", f"ProfilerStep#{n}", shift + every * n, every))
        events += launched("gemm", shift + every * n + 1, shift + every * n + 5, 50, 2 * n + 1)
        events += launched(name, shift + begin - 10, shift + begin, end - begin, 2 * n + 2)
    found = summarise([traces.text(events)])
    answer = found.answer
    return RankTrace(rank, f"{rank}.json", found.collectives, answer["span_s"], 0.001, answer["busy_share"])


def job(late: dict[int, float], ranks: int = 4, steps: int = 20, noise: float = 5.0) -> RanksTogether:
    """Ranks that arrive about 300 us into each step, some of them later, on clocks of their own."""
    made = random.Random(7)
    base = [
        [1000 * n + 300 + late.get(r, 0) + made.uniform(0, noise) for n in range(steps)] for r in range(ranks)
    ]
    ends = [max(b[n] for b in base) + 20 for n in range(steps)]
    return compare_ranks([trace(r, base[r], ends, shift=1e6 * made.uniform(0, 50)) for r in range(ranks)])


def test_the_rank_that_waits_least_and_comes_last_is_named() -> None:
    found = job({2: 200})
    assert (found.late, found.collectives, found.coverage, found.reason) == (2, 20, 1.0, None)
    assert found.skew_p50_s == pytest.approx(200e-6, rel=0.1)
    late = found.ranks[2]
    assert late.last == 20
    assert late.cost_s == pytest.approx(20 * 200e-6, rel=0.1)
    assert late.waited_s < 1e-9
    assert all(r.waited_s == pytest.approx(20 * 200e-6, rel=0.1) for r in found.ranks if r.rank != 2)


def test_healthy_ranks_are_not_blamed() -> None:
    found = job({})
    assert (found.late, found.reason, len(found.ranks)) == (None, None, 4)
    assert sum(r.last for r in found.ranks) == 20


def test_a_rank_that_is_often_a_little_later_costs_too_little() -> None:
    assert job({1: 10}, noise=2.0).late is None


def jittery(seed: int, ranks: int, steps: int, late_us: float = 0.0) -> RanksTogether:
    """Steps of 50 ms whose ranks come within a few milliseconds of each other, rank 1 `late_us` after."""
    made = np.random.default_rng(seed)
    come = np.arange(steps)[:, None] * 50_000.0 + made.normal(0, 2500, (steps, ranks))
    come[:, 1] += late_us
    end = come.max(axis=1) + 3000
    return compare_ranks(
        [
            RankTrace(
                rank,
                f"{rank}.json",
                Collectives(come[:, rank], end.copy(), ("allreduce",) * steps, (-1,) * steps),
                steps * 0.05,
                None,
                None,
            )
            for rank in range(ranks)
        ]
    )


@pytest.mark.parametrize(("ranks", "steps"), [(2, 400), (2, 20), (2, 6), (3, 60), (8, 400)])
def test_ranks_that_jitter_alike_are_not_blamed(ranks: int, steps: int) -> None:
    """Of two such ranks one comes last to more than half, and what it costs is far above 2 % of the trace."""
    found = [jittery(seed, ranks, steps) for seed in range(40)]
    assert [f.late for f in found] == [None] * 40
    if steps == 400 and ranks == 2:
        assert all(max(r.cost_s for r in f.ranks) > 0.02 * steps * 0.05 for f in found)


def test_a_late_rank_is_named_through_jitter() -> None:
    assert [jittery(seed, 2, 60, late_us=5000).late for seed in range(20)] == [1] * 20


def test_how_often_chance_makes_a_rank_last() -> None:
    assert late_by_chance(8, 8, 2) == pytest.approx(2 / 256)
    assert late_by_chance(15, 20, 2) == pytest.approx(2 * 0.020694733)
    assert late_by_chance(0, 5, 4) == 1.0
    assert late_by_chance(207, 400, 2) > 10 * CHANCE
    assert 0 <= late_by_chance(150_000, 200_000, 2) < 1e-12


def test_two_late_ranks_share_the_cost() -> None:
    """Without the later of two the others would still wait for the other one."""
    assert job({1: 200, 3: 205}, noise=2.0).late is None


def test_traces_of_one_rank_are_not_compared() -> None:
    ends = [1000 * n + 400 for n in range(10)]
    same = [trace(0, [e - 50 for e in ends], ends) for _ in range(2)]
    assert compare_ranks(same).reason == "two traces are of rank 0"


def test_without_collectives_nothing_is_said() -> None:
    ends = [1000.0 * n + 400 for n in range(10)]
    both = [trace(r, [e - 50 for e in ends], ends, name="gemm2") for r in range(2)]
    assert compare_ranks(both).reason == "no collective is in the traces"


def test_collectives_that_some_ranks_lack_are_not_guessed() -> None:
    ends = [1000 * n + 400 for n in range(20)]
    whole, part = trace(0, [e - 50 for e in ends], ends), trace(1, [e - 50 for e in ends[:10]], ends[:10])
    found = compare_ranks([whole, part])
    assert (found.late, found.coverage) == (None, 0.5)
    assert found.reason == "10 of 20 collectives are on all ranks in the same order"


def test_collectives_that_do_not_end_together_are_of_other_groups() -> None:
    made = random.Random(1)
    ends = [[10_000 * n + made.uniform(400, 9000) for n in range(20)] for _ in range(2)]
    found = compare_ranks([trace(r, [e - 30 for e in ends[r]], ends[r], every=10_000) for r in range(2)])
    assert found.late is None
    assert "end together" in str(found.reason)


def test_an_all_to_all_of_sends_and_receives_counts() -> None:
    ends = [1000 * n + 600 for n in range(20)]
    both = [trace(r, [e - 50 - 200 * (1 - r) for e in ends], ends, name=PAIR) for r in range(2)]
    assert compare_ranks(both).late == 1
