"""What a process did between two moments, interpolated between its beats."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.probe_lines import beat, bucket, start, training

from gpudebug.core.inside.probe.processes import Beat, TrainingProcess, read_probe
from gpudebug.core.inside.probe.spans import ProcessSpan, percentile, steady


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
