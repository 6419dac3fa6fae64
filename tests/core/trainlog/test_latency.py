"""What an inference program prints of its latency, in the many ways in which programs print it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.trainlog.latency import Latency, LatencyReader
from gpudebug.core.trainlog.reader import LogReader


def read(text: str) -> Latency | None:
    reader = LatencyReader()
    reader.feed(text.encode())
    return reader.latency()


ONE_VALUE = {
    "a name and a unit": ("latency: 12.5 ms", 0.0125),
    "seconds beside the number": ("Direct inference time: 0.234s", 0.234),
    "equals": ("inference_time=0.5 s", 0.5),
    "the unit in the name": ("latency_ms=12.5", 0.0125),
    "the unit in brackets": ("Latency (ms): 12.5", 0.0125),
    "behind a step": ("iter 3/50 latency: 12.5 ms", 0.0125),
    "behind a clock": ("12:30:01.5 INFO latency=12.5ms", 0.0125),
    "microseconds": ("latency: 900 µs", 0.0009),
    "an exponent": ("latency 1.25e-2 s", 0.0125),
    "words between": ("the inference took 12.5 ms", 0.0125),
    "time per something": ("time per inference: 12.5 milliseconds", 0.0125),
    "a colour": ("\x1b[32mlatency:\x1b[0m 12.5 ms", 0.0125),
    "more behind it": ("latency: 12.5 ms, 80.0 it/s, 3 actions", 0.0125),
    "the unit as another program writes it": ("Avg latency: 12500 usec (standard deviation 56 usec)", 0.0125),
    "a time of a response": ("response time: 12.5 ms", 0.0125),
    "a time of a prediction": ("Prediction took 12.5 ms", 0.0125),
    "a name that ends with the unit": (
        "{'server_timing': {'infer_ms': 12.5, 'prev_total_ms': 20.1}}",
        0.0125,
    ),
    "a printed mean": ("Mean inference time: 12.5 ms", 0.0125),
    "a median where no mean is": ("latency p50: 12.5 ms", 0.0125),
}
NO_LATENCY = {
    "no unit": "latency: 12.5",
    "a target": "target latency: 20 ms",
    "a total": "total inference time: 3.4 s",
    "a percentile": "latency p95: 20 ms",
    "a percentile in words": "95th percentile latency: 20 ms",
    "a percentile in percent": "99% latency: 20 ms",
    "percentiles of a benchmark": "10% percentile latency: 1.1 seconds\n90% percentile latency: 1.5 seconds",
    "a load generator": "Concurrency: 1, throughput: 809.2 infer/sec, latency 1234 usec",
    "a standard deviation": "latency std: 2 ms",
    "another duration": "data time: 12.5 ms",
    "nothing": "",
    "zero, as of a clock that stands": "latency: 0.0 ms",
    "below zero, as of a clock that jumped": "latency: -3.5 ms",
    "words that change what it is": "latency at batch 8",
    "a training step": "step 3: 0.5 s",
    "elapsed time": "".join(f"iter {i}: {i}.0 s\n" for i in range(1, 9)),
    "not text": "\x00\xff latency",
}


@pytest.mark.parametrize(("text", "seconds"), ONE_VALUE.values(), ids=ONE_VALUE)
def test_one_value_is_read_with_its_unit(text: str, seconds: float) -> None:
    found = read(text)
    assert found is not None
    assert found.mean == pytest.approx(seconds)


@pytest.mark.parametrize("text", NO_LATENCY.values(), ids=NO_LATENCY)
def test_what_is_no_latency_is_left_alone(text: str) -> None:
    assert read(text) is None


def test_a_summary_in_one_line() -> None:
    found = read("Inference latency: mean 12.0 ms, min 10.0 ms, max 20.0 ms, p95 18.0 ms, std 2 ms\n")
    assert found == Latency(mean=0.012, least=0.01, most=0.02)


def test_a_summary_over_lines() -> None:
    found = read("Mean inference time: 12.0 ms\nMin inference time: 10.0 ms\nMax inference time: 20.0 ms\n")
    assert found == Latency(mean=0.012, least=0.01, most=0.02)


def test_single_values_beat_the_summary() -> None:
    text = "".join(f"latency: {v} ms\n" for v in (10, 20, 30, 20)) + "mean latency: 99 ms\n"
    found = read(text)
    assert found is not None
    assert (found.mean, found.least, found.most, found.first, found.count) == pytest.approx(
        (0.02, 0.01, 0.03, 0.01, 4)
    )


def test_the_first_slow_ones_are_warm_up_where_there_are_enough() -> None:
    values = [2000, 900, 400, 120, 60] + [10 + i % 3 for i in range(45)]
    found = read("".join(f"latency: {v} ms\n" for v in values))
    assert found is not None
    assert found.warmup == 5
    assert found.count == 45
    assert found.first == pytest.approx(2.0)
    assert found.mean == pytest.approx(0.011)


def test_turns_of_a_loop_count_where_no_inference_is_timed() -> None:
    loops = [f"Loop {i}: 0.{i}00s total\n" for i in (3, 2, 4)]
    turns = read("".join(loops))
    assert turns is not None
    assert turns.mean == pytest.approx(0.3)
    both = read("".join(f"Direct inference time: 0.1s\n{line}" for line in loops))
    assert both is not None
    assert both.mean == pytest.approx(0.1)


@given(
    st.lists(st.floats(0.01, 1e4).map(lambda v: round(v, 3)), min_size=3, max_size=60),
    st.integers(1, 40),
)
def test_where_the_output_is_cut_makes_no_difference(values: list[float], chunk: int) -> None:
    data = "".join(f"latency: {v} ms\r\n" for v in values).encode()
    reader = LatencyReader()
    for start in range(0, len(data), chunk):
        reader.feed(data[start : start + chunk])
    found = reader.latency()
    assert found == read(data.decode())
    assert found is not None
    assert found.least is not None and found.most is not None
    assert found.least * (1 - 1e-9) <= found.mean <= found.most * (1 + 1e-9)
    assert (found.count or 0) + found.warmup == len(values)


VLLM = """\
Avg latency: 1.234 seconds
10% percentile latency: 1.1 seconds
25% percentile latency: 1.15 seconds
50% percentile latency: 1.2 seconds
90% percentile latency: 1.4 seconds
"""


def test_the_percentiles_of_a_benchmark_are_no_single_latencies() -> None:
    found = read(VLLM)
    assert found == Latency(mean=1.234, median=1.2)


def test_the_images_of_a_prediction_are_its_latencies() -> None:
    found = read("".join(f"image {i}/40 /data/{i}.jpg: 384x640 1 person, 12.5ms\n" for i in range(1, 41)))
    assert found is not None
    assert (found.mean, found.count) == (pytest.approx(0.0125), 40)


@pytest.mark.parametrize(
    "line",
    [
        "image 3/40 /data/3.jpg: 384x640 1 person, 12.5ms",
        "response time: 12.5 ms",
        "Predict time: 12.5 ms",
        "infer_ms: 12.5",
    ],
)
def test_a_log_is_read_for_each_form(line: str) -> None:
    reader = LogReader()
    reader.feed(f"{line}\n".encode() * 5, 1.0)
    assert reader.summary().latencies.count == 5
