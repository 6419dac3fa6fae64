"""When ranks come to their collectives."""

from __future__ import annotations

import json
import random

import pytest
from tests.support.probe_lines import T0, line, start

from gpudebug.core.inside.probe.flight import (
    LEAST_STEPS,
    CollectiveCall,
    CollectiveKey,
    Lateness,
    calls,
    lateness,
)
from gpudebug.core.inside.probe.processes import read_probe

Calls = dict[CollectiveKey, CollectiveCall]


def job(late_s: float, steps: int = 40, jitter_s: float = 0.002, seed: int = 1) -> list[Calls]:
    """Three ranks with four collectives in each step of 0.1 s, the last of them `late_s` after the others."""
    made = random.Random(seed)
    found: list[Calls] = [{} for _ in range(3)]
    for step in range(steps):
        begun = [made.gauss(0.0, jitter_s) + late_s * (rank == 2) for rank in range(3)]
        for bucket in range(4):
            key = CollectiveKey("0", 4 * step + bucket, "nccl:all_reduce")
            for rank, at in enumerate(begun):
                found[rank][key] = CollectiveCall(500 + 0.1 * step + 0.02 + 0.01 * bucket + at, 1000)
    return found


def late(found: list[Calls], span: tuple[float, float] | None = None) -> list[Lateness]:
    told = lateness(found, [span] * len(found), 0.1)
    assert told is not None
    return told


def test_who_comes_last_by_how_much() -> None:
    first, second, last = late(job(0.03))
    assert last.mean_s == pytest.approx(0.03, abs=0.002)
    assert (last.steps, last.error_s < 0.001) == (40, True)
    # The others are as much before it.
    assert first.mean_s == pytest.approx(-0.03, abs=0.002) == second.mean_s


def test_collectives_of_one_step_count_as_one() -> None:
    """Four buckets that come late together say no more than one."""
    each = late(job(0.0, jitter_s=0.004))
    alone = late([{k: v for k, v in one.items() if k.number % 4 == 0} for one in job(0.0, jitter_s=0.004)])
    assert [one.error_s for one in each] == pytest.approx([one.error_s for one in alone])


def test_only_what_all_ranks_called_in_the_window_counts() -> None:
    found = job(0.03)
    del found[1][CollectiveKey("0", 0, "nccl:all_reduce")]
    found[0][CollectiveKey("1", 7, "nccl:broadcast")] = CollectiveCall(0.0, 1)
    assert late(found)[2].mean_s == pytest.approx(0.03, abs=0.002)
    assert late(found, (500.0, 502.9))[0].steps == 29
    assert lateness(found, [(500.0, 500.0 + 0.1 * (LEAST_STEPS - 2))] * 3, 0.1) is None
    assert lateness(found[:1], [None], 0.1) is None
    assert lateness([{}, {}], [None, None], 0.1) is None


ROW = ["0", 5, "gloo:all_reduce", 1_700_000_000_000_000, 1000, None]


@pytest.mark.parametrize(
    "rows",
    [None, 7, [None], [ROW[:5]], [[0, *ROW[1:]]], [[*ROW[:3], "x", 1, None]], [[*ROW[:3], -1, 1, None]]],
)
def test_what_is_not_the_probes_is_left_out(rows: object) -> None:
    assert calls({"rows": rows}) == {}


def test_a_process_has_its_calls_and_the_time_of_its_launch() -> None:
    timed = [*ROW[:1], 6, *ROW[2:5], 12.5]
    text = start() + line("collectives", 1, 8.0, now=1_700_000_009_000_000, rows=[ROW, timed])
    found = read_probe(text)
    assert found is not None
    (process,) = found.processes
    assert process.wall_s == 1_700_000_001.0
    assert process.calls == {
        CollectiveKey("0", 5, "gloo:all_reduce"): CollectiveCall(1_700_000_000.0, 1000),
        CollectiveKey("0", 6, "gloo:all_reduce"): CollectiveCall(1_700_000_000.0, 1000, 0.0125),
    }
    assert json.loads(text.splitlines()[1])["t"] == T0 + 8.0
