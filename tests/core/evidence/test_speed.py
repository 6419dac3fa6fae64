"""What a log shows of speed beyond its step rate."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.evidence import speed
from gpudebug.core.records import Window
from gpudebug.core.trainlog.reader import LogReader, LogSummary

WINDOW = Window(start_s=3.0, end_s=8.0, samples=20, rule="steps")


def summary(*lines: str, patterns: dict[str, str] | None = None, times: bool = True) -> LogSummary:
    """The log of a program that prints one line a second, from second 0."""
    reader = LogReader(patterns)
    for second, line in zip(count(), lines, strict=False):
        reader.feed(f"{line}\n".encode(), float(second) if times else None)
    return reader.summary()


STEPS = [f"step {i}/10 loss {2 - i / 10}" for i in range(1, 11)]


@pytest.mark.parametrize(
    ("lines", "flags", "rates", "expected"),
    [
        (["batch size: 8"], {}, (10.0, 10.0), (80.0, "batch")),
        (["batch size: 8"], {"batch_size": "4"}, (10.0, 10.0), (80.0, "batch")),
        ([], {"batch_size": "4"}, (10.0, 10.0), (40.0, "flags")),
        (["100 samples/s"] * 9, {}, (10.0, 10.0), (100.0, "printed")),
        (["100 samples/s"] * 9, {"batch_size": "4"}, (None, None), (100.0, "printed")),
        (["100 samples/s"] * 9, {"batch_size": "4"}, (10.0, 10.0), (40.0, "flags")),
        ([], {}, (10.0, 10.0), (None, None)),
        ([], {"batch_size": "4"}, (None, 2.0), (None, None)),
    ],
)
def test_samples_per_second_and_what_tells_them(
    lines: list[str],
    flags: dict[str, str],
    rates: tuple[float | None, float | None],
    expected: tuple[float | None, str | None],
) -> None:
    assert speed.samples(summary(*lines), WINDOW, rates, flags) == expected


def test_a_log_that_counts_samples_tells_them_itself() -> None:
    lines = [f"Train Epoch: 1 [{640 * i}/6000 ({i * 10}%)]\tLoss: 1.{i}" for i in range(10)]
    log = summary(*lines)
    assert log.step_unit == "samples"
    assert speed.samples(log, WINDOW, (None, 640.0), {"batch_size": "64"}) == (640.0, "counted")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("412.5 samples/s", 412.5),
        ("1,412 images/sec", 1412),
        ("2.5k img/s", 2500),
        ("throughput: 12 sequences per second", 12),
        ("{'train_samples_per_second': '285.8'}", 285.8),
        ("samples_per_sec=97.5 loss=1", 97.5),
        ("eval_samples_per_second: 1779", None),
        ("1e3 samples/s", 1000),
        ("0 samples/s", None),
        ("samples/s", None),
        ("12 samples/step", None),
        ("iter time (s): 0.100 samples/sec: 160.0", 160.0),
        ("step 10 loss 3.1 img/s 320", None),
        ("throughput 320 img/s 0.05 s/step", 320.0),
        ("lr: 0.02  img/s: 320.0  loss: 6.9 (6.8)", 320.0),
    ],
)
def test_how_samples_are_printed(line: str, expected: float | None) -> None:
    assert speed.printed_samples([line]) == expected


@given(st.lists(st.floats(0.1, 1e4), min_size=1, max_size=20))
def test_lines_after_equal_numbers_of_samples_tell_the_rate_of_all(seconds: list[float]) -> None:
    lines = [f"{100 / s:.12f} samples/s" for s in seconds]
    assert speed.printed_samples(lines) == pytest.approx(100 * len(seconds) / sum(seconds), rel=1e-6)


def test_only_the_window_counts() -> None:
    rates = [1, 1, 1, 50, 50, 50, 50, 50, 50, 2, 2]
    log = summary(*(f"{r} samples/s" for r in rates))
    assert speed.samples(log, WINDOW, (None, None), {}).per_s == pytest.approx(50)


def test_a_summary_at_the_end_counts_where_the_window_has_none() -> None:
    log = summary(*STEPS, "{'train_samples_per_second': '285.8'}")
    assert speed.samples(log, WINDOW, (None, None), {}).per_s == pytest.approx(285.8)


def test_what_the_warm_up_printed_alone_does_not() -> None:
    log = summary("batch size: 8", "50 samples/s", *STEPS)
    assert speed.samples(log, WINDOW, (None, None), {}).per_s is None


def test_step_times_need_enough_values() -> None:
    def times(number: int) -> LogSummary:
        return summary(
            *(f"step {i} loss 1.{i} step_time: 0.{i % 3 + 1}s" for i in range(number)), times=False
        )

    assert speed.step_times(times(4), None) == (None, None)
    assert speed.step_times(times(7), None) == (0.2, None)
    p50, p95 = speed.step_times(times(60), None)
    assert (p50, p95) == (pytest.approx(0.2), pytest.approx(0.3))


def test_own_figures_are_means_over_the_window() -> None:
    patterns = {"fps": r"fps (?P<value>\S+)", "odd": r"odd (?P<value>\S+)", "none": "none(?P<value>x)"}
    log = summary(*(f"fps {i} odd {'nan' if i == 5 else i}" for i in range(10)), patterns=patterns)
    assert speed.logged(log, WINDOW) == {"fps": pytest.approx(5.5)}


def test_a_log_that_says_nothing_has_no_figure() -> None:
    found = speed.figures(summary(*STEPS), WINDOW, (1.0, 1.0), {})
    assert {key: value for key, value in found.items() if value} == {}
