"""What a process did between two moments, interpolated between its beats."""

from __future__ import annotations

import json
import math
import random
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.probe_lines import T0, beat, bucket, start, training
from tests.support.stack_lines import told

from gpudebug.core.inside.probe.processes import Beat, TrainingProcess, read_probe
from gpudebug.core.inside.probe.spans import (
    CLOCK_WITHIN_S,
    MOST,
    MOST_NODES,
    PIDS,
    Lately,
    LiveSteps,
    ProcessSpan,
    bars,
    counted,
    joined,
    percentile,
    quantile,
    records_of,
    steady,
)
from gpudebug.core.inside.ranks import rank_evidence
from gpudebug.core.inside.stacks import read_stacks
from gpudebug.core.records import Window


def process(text: str) -> TrainingProcess:
    found = read_probe(text)
    assert found is not None
    return found.processes[0]


def beats(*points: tuple[float, int], **counters: list[float]) -> TrainingProcess:
    told = [
        Beat(t, steps, {name: values[i] for name, values in counters.items()}, {})
        for i, (t, steps) in enumerate(points)
    ]
    return TrainingProcess(pid=1, start_s=0.0, t0=0.0, steps=points[-1][1], beats=told)


STEADY = {
    "from iteration ten": (training(begins=2, step_s=0.1, steps=100, every=5), (3.0, 12.0)),
    "from a twentieth of many": (training(begins=2, step_s=0.1, steps=1000, every=5), (7.0, 102.0)),
    "the beat after it": (training(begins=2, step_s=0.1, steps=98, every=7), (3.4, 11.8)),
    "slow ones": (training(begins=0, step_s=30.0, steps=20, every=1), (300.0, 600.0)),
    "too few": (training(steps=9, every=1), None),
    "ten of ten": (training(steps=10, every=1), None),
    "one beat": (start() + beat(1, 3, 50), None),
    "none": (start(), None),
}


@pytest.mark.parametrize(("text", "bounds"), STEADY.values(), ids=STEADY)
def test_the_steady_iterations(text: str, bounds: tuple[float, float] | None) -> None:
    assert steady(process(text)) == (None if bounds is None else pytest.approx(bounds))


def test_a_span_from_beat_to_beat_is_exact() -> None:
    span = ProcessSpan(process(training(step_s=0.1, steps=200, per_step={"data_s": 0.06})), 5.0, 15.0)
    assert (span.seconds, span.steps) == (pytest.approx(10), pytest.approx(100))
    assert span.delta("data_s") == pytest.approx(6)


def test_between_beats_is_interpolated() -> None:
    uneven = beats((0, 1), (10, 11), (20, 111), data_s=[0.0, 1.0, 2.0])
    assert ProcessSpan(uneven, 5, 15).steps == pytest.approx(5 + 50)
    assert ProcessSpan(uneven, 5, 10).delta("data_s") == pytest.approx(0.5)


def test_a_span_is_cut_to_what_the_beats_know() -> None:
    span = ProcessSpan(process(training(begins=2, step_s=0.1, steps=100)), 0.0, 60.0)
    assert (span.start_s, span.end_s) == pytest.approx((2.1, 12.0))
    assert span.steps == pytest.approx(99)


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (50.0, 60.0), (5.0, 5.0)])
def test_where_it_did_not_train_nothing_is_known(bounds: tuple[float, float]) -> None:
    span = ProcessSpan(process(training(begins=2, step_s=0.1, steps=100, per_step={"data_s": 0.01})), *bounds)
    assert (span.seconds, span.steps, span.delta("data_s"), span.step_times()) == (0, 0, None, {})


def test_a_counter_that_nobody_told_is_unknown_and_not_zero() -> None:
    told = process(training(per_step={"data_s": 0.0}))
    span = ProcessSpan(told, 5, 15)
    assert (span.delta("gpu_s"), span.delta("data_s")) == (None, 0)


def test_a_counter_that_is_told_once_it_is_needed_was_zero() -> None:
    text = start() + "".join(beat(1, 3 + i, 5 + i, **({"sync_n": i - 9} if i > 9 else {})) for i in range(20))
    assert ProcessSpan(process(text), 3, 22).delta("sync_n") == pytest.approx(10)


def test_a_counter_that_is_told_no_more_is_unknown() -> None:
    text = start() + "".join(beat(1, 3 + i, 5 + i, **({"samples_n": i} if i < 9 else {})) for i in range(20))
    assert ProcessSpan(process(text), 3, 22).delta("samples_n") is None
    assert ProcessSpan(process(text), 3, 10).delta("samples_n") == pytest.approx(7)


POINTS = st.lists(st.tuples(st.floats(0.01, 5), st.integers(1, 50), st.floats(0, 3)), min_size=2, max_size=12)


@given(POINTS, st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_parts_of_a_span_add_up_to_it(
    points: list[tuple[float, int, float]], a: float, b: float, c: float
) -> None:
    t, steps, seconds = 0.0, 0, 0.0
    told, rises = [], []
    for width, made, rise in points:
        t, steps, seconds = t + width, steps + made, seconds + rise
        told.append((t, steps))
        rises.append(seconds)
    known = beats(*told, data_s=rises)
    first, last = told[0][0], told[-1][0]
    start_, middle, end = sorted(first + share * (last - first) for share in (a, b, c))
    left, right, whole = (
        ProcessSpan(known, start_, middle),
        ProcessSpan(known, middle, end),
        ProcessSpan(known, start_, end),
    )
    assert left.steps + right.steps == pytest.approx(whole.steps, rel=1e-9, abs=1e-6)
    parts = [span.delta("data_s") or 0.0 for span in (left, right)]
    assert sum(parts) == pytest.approx(whole.delta("data_s") or 0.0, rel=1e-9, abs=1e-6)
    assert 0 <= whole.steps <= told[-1][1]


def test_the_percentiles_of_real_spreads_are_within_a_bucket() -> None:
    noise = random.Random(3)
    times = sorted(noise.lognormvariate(-3, 0.4) for _ in range(4000))
    counted: dict[int, float] = {}
    for seconds in times:
        counted[int(bucket(seconds))] = counted.get(int(bucket(seconds)), 0) + 1
    for share in (0.05, 0.5, 0.95):
        assert percentile(counted, share) == pytest.approx(times[round(share * len(times))], rel=0.02)
    assert percentile({}, 0.5) is None


@given(st.dictionaries(st.integers(0, 1500), st.floats(0.1, 100), min_size=1, max_size=9))
def test_percentiles_rise_and_stay_among_the_times(counted: dict[int, float]) -> None:
    found = [percentile(counted, share) or 0.0 for share in (0.0, 0.05, 0.5, 0.95, 1.0)]
    assert found == sorted(found)
    low, high = 1e-6 * 2 ** (min(counted) / 32), 1e-6 * 2 ** ((max(counted) + 1) / 32)
    assert low * 0.999 <= found[0] <= found[-1] <= high * 1.001


def test_of_a_beat_that_lies_in_a_span_partly_that_part_of_its_iterations_counts() -> None:
    told = process(training(begins=0, step_s=0.1, steps=100, every=10))
    times = ProcessSpan(told, 2.5, 7.5).step_times()
    assert sum(times.values()) == pytest.approx(50)
    assert percentile(times, 0.5) == pytest.approx(0.1, rel=0.03)


TEXT = training(steps=40, every=4).encode()


@given(st.lists(st.integers(0, len(TEXT)), max_size=8))
def test_however_it_arrives(cuts: list[int]) -> None:
    live = LiveSteps()
    marks = [0, *sorted(cuts), len(TEXT)]
    for begin, end in pairwise(marks):
        live.feed(TEXT[begin:end])
    assert live.steps == 40


def test_the_process_that_made_the_most_and_nothing_before_the_first() -> None:
    live = LiveSteps()
    live.feed((start() + "loss 3\n[1]\n").encode())
    assert live.steps is None
    live.feed((beat(1, 3, 5) + beat(2, 3, 4) + '{"kind": "beat", "pid": 1, "steps": "9"}\n').encode())
    assert live.steps == 5
    live.feed(b"x" * 100_000)
    live.feed(b"\n" + beat(1, 4, 9).encode())
    assert live.steps == 9


def test_the_distance_of_two_reports_is_of_one_clock() -> None:
    """Another node's clock counts from its own boot: a stall would be waited for as long as it was up."""
    live = LiveSteps()
    for at, steps, host in ((3, 5, "a"), (5, 9, "a"), (90_000, 10, "b"), (90_003, 14, "b")):
        text = beat(1, at, steps).replace('"pid": 1', f'"pid": 1, "host": "{host}"')
        live.feed(text.encode())
        assert live.gap <= 3
    assert (live.steps, live.gap) == (14, 3)


def lately(text: str) -> Lately:
    found = Lately()
    found.feed(text.encode())
    return found


def test_what_a_training_did_lately() -> None:
    found = lately(training(step_s=0.1, steps=300, per_step={"data_s": 0.04}))
    assert found.steps == 300
    assert found.steps_per_s == pytest.approx(10)
    assert found.data_wait_share == pytest.approx(0.4)


def test_lately_is_the_last_minute() -> None:
    slow = [beat(1, 2 + n, 10 * n, data_s=0.9 * n) for n in range(100)]
    fast = [beat(1, 102 + n, 1000 + 40 * n, data_s=90.0) for n in range(100)]
    found = lately("".join([start(), *slow, *fast]))
    assert found.steps_per_s == pytest.approx(40) and found.data_wait_share == 0.0


def test_rare_beats_are_enough() -> None:
    found = lately(beat(1, 100, 10, data_s=1.0) + beat(1, 400, 40, data_s=151.0))
    assert found.steps_per_s == pytest.approx(0.1) and found.data_wait_share == pytest.approx(0.5)


UNKNOWN = {
    "nothing": "",
    "one beat": beat(1, 5, 10, data_s=1.0),
    "no counter": beat(1, 5, 10) + beat(1, 6, 20),
    "no numbers": beat(1, 5, 10, data_s=float("nan")) + beat(1, 6, 20, data_s=-1.0),
    "counters that are none": '{"kind": "beat", "pid": 1, "t": 5, "steps": 3, "counters": [1]}\n' * 2,
}


@pytest.mark.parametrize("text", UNKNOWN.values(), ids=UNKNOWN)
def test_a_wait_that_nobody_tells_is_unknown(text: str) -> None:
    assert lately(text).data_wait_share is None


def test_the_process_that_made_the_most_iterations_tells() -> None:
    text = "".join(
        beat(1, n, 10 * n, data_s=0.1 * n) + beat(2, n, 9 * n, data_s=0.9 * n) for n in range(1, 9)
    )
    assert lately(text).data_wait_share == pytest.approx(0.1)


def test_a_line_that_was_cut_counts_for_nothing() -> None:
    found = lately(beat(1, 5, 10, data_s=1.0) + beat(1, 6, 20)[:30])
    found.feed((beat(1, 7, 1)[9:] + beat(1, 8, 40, data_s=2.5)).encode(), torn=True)
    assert found.steps == 40 and found.data_wait_share == pytest.approx(0.5)


STAMP = 1.8e9
AHEAD_S = 5000.0


def rank(number: int, node: str, *, ahead: float = 0.0, within: float = 0.001, **more: Any) -> str:
    """The record of one rank, with the same pid on every node, by a clock that is `ahead` of the launch's."""
    own = {"boot": f"boot-{node}", "clock": [T0 + ahead, within, STAMP], **more}
    text = training(7, rank=number, world_size=2, node=node, **own)
    lines = [json.loads(line) for line in text.splitlines()]
    return "".join(json.dumps({**line, "t": line["t"] + ahead}) + "\n" for line in lines)


def test_ranks_of_two_nodes_are_on_one_clock_and_told_apart_whatever_their_pids() -> None:
    record = read_probe(joined(rank(0, "n0"), {"n1": rank(1, "n1", ahead=AHEAD_S)}))
    assert record is not None
    first, other = record.ranks
    assert (first.pid, other.pid) == (7, 7 + PIDS)
    assert (first.node, other.node, other.aside) == ("n0", "n1", False)
    assert other.start_s == pytest.approx(first.start_s, abs=1e-3)
    assert other.moved_s == pytest.approx(AHEAD_S)
    assert [b.t for b in other.beats] == pytest.approx([b.t for b in first.beats], abs=1e-3)
    whole = Window(start_s=5.0, end_s=25.0, duration_s=20.0, samples=100, rule="given")
    ranks = rank_evidence(record, None, whole)
    assert [one.own_clock for one in ranks] == [False, False]
    assert ranks[1].last_step_s == pytest.approx(ranks[0].last_step_s)


@pytest.mark.parametrize(
    "more",
    [
        {"within": CLOCK_WITHIN_S},
        {"within": -1.0},
        {"clock": None},
        {"clock": [1.0]},
        {"clock": ["a", 0, 0]},
        {"clock": [10**400, 0, 0]},
        {"clock": [True, 0, 0]},
    ],
    ids=["measured badly", "impossible", "not measured", "short", "text", "beyond a float", "yes"],
)
def test_a_clock_that_was_not_measured_well_stays_its_own(more: dict[str, Any]) -> None:
    record = read_probe(joined(rank(0, "n0"), {"n1": rank(1, "n1", ahead=AHEAD_S, **more)}))
    assert record is not None
    assert [one.aside for one in record.ranks] == [False, True]


def computes(ahead: float) -> str:
    """What was seen of a rank from second 10 to 30, by a clock that is `ahead`."""
    rows = [["backward", [0], 4, 12.0, 12.0, 240], ["data", [0], 3, 8.0, 0.0, 160]]
    frames = ["job/train.py:main"]
    return told(7, 10.0 + ahead, 30.0 + ahead, s=20.0, cpu=12.0, n=400, frames=frames, stacks=rows)


def test_what_was_seen_of_another_nodes_rank_is_of_the_same_time() -> None:
    # Booted so shortly before the other that its times could be the other's.
    text = joined(
        rank(0, "n0") + computes(0.0),
        {"n1": rank(1, "n1", ahead=8.0) + computes(8.0)},
    )
    whole = Window(start_s=10.0, end_s=30.0, duration_s=20.0, samples=100, rule="given")
    ranks = rank_evidence(read_probe(text), read_stacks(text), whole)
    assert [one.data_share for one in ranks] == pytest.approx([0.4, 0.4])
    assert [one.samples for one in ranks] == [400, 400]


def test_the_first_record_is_kept_to_the_byte_and_torn_lines_are_left_out() -> None:
    first = rank(0, "n0") + '{"kind": "beat", "pi'
    text = joined(first, {"n1": rank(1, "n1") + '{"torn'})
    assert text.startswith(first + "\n")
    assert "torn" not in text
    assert joined("", {}) == ""


def test_nodes_are_in_the_order_of_their_numbers_and_no_more_than_can_be_looked_at() -> None:
    others = {f"n{number}": rank(number, f"n{number}") for number in range(1, MOST_NODES + 5)}
    lines = [json.loads(line) for line in joined("", others).splitlines()]
    started = [line["node"] for line in lines if line["kind"] == "start"]
    assert started == [f"n{number}" for number in range(1, MOST_NODES + 1)]


def test_no_more_files_are_read_than_can_be_looked_at() -> None:
    names = [f"probe.n{number}.jsonl" for number in range(MOST_NODES + 5, 0, -1)]
    found = records_of([*names, "probe.jsonl", "probe.a/b.jsonl", "sections.json"])
    assert list(found) == [f"n{number}" for number in range(1, MOST_NODES + 1)]
    assert found["n1"] == "probe.n1.jsonl"


@given(st.lists(st.floats(1e-7, 1e5), max_size=200))
def test_every_step_is_in_the_bar_of_its_time(seconds: list[float]) -> None:
    found = bars(counted(seconds))
    assert len(found) <= MOST
    assert sum(count for _, _, count in found) == len(seconds)
    assert all(low < high for low, high, _ in found)
    assert all(a[1] <= b[0] * (1 + 1e-5) for a, b in pairwise(found))
    for low, high, count in found:
        inside = [s for s in seconds if low * (1 - 1e-5) <= s <= high * (1 + 1e-5)]
        assert len(inside) >= count


def test_what_is_no_time_is_in_none() -> None:
    assert bars(counted([0.0, -1.0, math.nan, math.inf])) == []
    assert bars({}) == []


def test_bars_are_as_fine_as_the_buckets_where_those_are_few() -> None:
    ((low, high, count),) = bars(counted([0.1] * 5))
    assert low <= 0.1 <= high < 1.03 * low
    assert count == 5


def test_parts_of_steps_are_counted_as_such() -> None:
    assert [count for _, _, count in bars({500: 2.52, 501: 0.01})] == [2.5]


def test_quantiles_of_bars() -> None:
    found = [[0.0, 1.0, 50], [1.0, 2.0, 0], [2.0, 4.0, 50]]
    assert [quantile(found, share) for share in (0.25, 0.5, 0.75, 1)] == [0.5, 1.0, 3.0, 4.0]
    assert quantile([], 0.5) is None
