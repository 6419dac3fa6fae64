"""The reader as a whole: any bytes, any chunks, any length."""

# ruff: noqa: E501 - printed lines are as long as they are

from __future__ import annotations

import itertools
import sys
from dataclasses import replace
from math import nan
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpudebug.core.errors import ConfigError
from gpudebug.core.trainlog.reader import LogReader, LogSummary
from gpudebug.core.words import Trend

LINES = st.sampled_from(
    [
        b"step 10/200 | loss 1.25 | lr 1e-3\n", b"\r 45%|\xe2\x96\x88\xe2\x96\x88| 27/60 [00:01<00:01, 22.8it/s, loss=0.5]",
        b"\x1b[1m 21/125\x1b[0m 9ms/step - loss: 1.4\x08\x08\x08\r", b"{'loss': '0', 'grad_norm': 'nan'}\n",
        b"epoch     train_loss  valid_loss\n", b"0         0.651398    0.337335\n", b"| loss | 7.57 |\n", b"\xff\xfe\n",
        b"Traceback (most recent call last):\n  File x\nValueError: y\n", b"Epoch 2/3\n", b"loss: nan\n", b"\r\n",
        "µs é 損失: 0.5\n".encode(), b"step=1K loss=1,234.5\n", b"x" * 300, b"2026-11-20 22:10:01 step 7 loss 2\n",
    ]
)  # fmt: skip
LOGS = st.lists(LINES, max_size=25).map(b"".join)


def fed(chunks: list[bytes], time: float | None = None) -> LogReader:
    reader = LogReader()
    for chunk in chunks:
        reader.feed(chunk, time)
    return reader


def shown(summary: LogSummary) -> str:
    """Comparable although nan differs from itself."""
    return repr(summary)


@given(LOGS, st.lists(st.integers(0, 3000), max_size=20), st.sampled_from([None, 1.5]))
def test_the_chunks_make_no_difference(data: bytes, places: list[int], time: float | None) -> None:
    edges = [0, *sorted(min(place, len(data)) for place in places), len(data)]
    chunks = [data[a:b] for a, b in itertools.pairwise(edges)]
    assert shown(fed(chunks, time).summary(1)) == shown(fed([data], time).summary(1))


@given(LOGS, LOGS)
def test_a_summary_midway_changes_nothing(before: bytes, after: bytes) -> None:
    reader = fed([before])
    reader.summary(1)
    reader.feed(after)
    assert shown(reader.summary(1)) == shown(fed([before, after]).summary(1))


@given(
    st.one_of(
        st.binary(max_size=3000), st.text(max_size=1500).map(lambda text: text.encode("utf-8", "replace"))
    )
)
def test_any_bytes_are_read(data: bytes) -> None:
    summary = fed([data]).summary(1)
    assert summary.failure is not None
    assert summary.points >= len(summary.loss)


NUMBERS = st.sampled_from(
    ["nan", "inf", "-inf", "-1", "1e308", "1e400", "9" * 400, "0", "1,234,567", "0.5", "1K", "?"]
)


@given(st.lists(st.tuples(st.sampled_from(
    ["step {}", "step {0}/{0}", "epoch {}", "epoch {0}/{0}", "epochs: {}", "max_steps: {}", "loss {}", "time: {}s",
     "data_s: {}", "updt_s: {}", "it/s: {}", "10%| | {0}/{0} [00:00<00:00, {0}it/s]", "grad_norm {}", "[{0}/{0}] loss {0}"]
), NUMBERS), max_size=20))  # fmt: skip
def test_no_number_breaks_it(parts: list[tuple[str, str]]) -> None:
    text = "\n".join(form.format(number) for form, number in parts)
    summary = fed([text.encode(), b"\n"]).summary(0)
    assert summary.steps is None or summary.steps >= 0


def sizes(value: Any, seen: set[int]) -> int:
    """Bytes that an object holds, roughly."""
    if id(value) in seen or isinstance(value, type):
        return 0
    seen.add(id(value))
    total = sys.getsizeof(value)
    if isinstance(value, dict):
        return total + sum(sizes(k, seen) + sizes(v, seen) for k, v in value.items())
    if isinstance(value, (list, tuple, set)) or type(value).__name__ == "deque":
        return total + sum(sizes(item, seen) for item in value)
    names = [
        *getattr(value, "__dict__", {}),
        *(n for c in type(value).__mro__ for n in getattr(c, "__slots__", ())),
    ]
    return total + sum(sizes(getattr(value, name), seen) for name in names if hasattr(value, name))


@pytest.mark.parametrize(
    "make",
    [
        lambda i: b"x" * 100_000,
        lambda i: b"step %d loss %d.5\n" % (i, i) * 100,
        lambda i: b"".join(b"step %d name_%d_loss %d.5 key%s=1\n" % (j, j, i, bytes([97 + j % 26]) * (i % 90)) for j in range(100)),
        lambda i: b"Traceback (most recent call last):\n" + b"  File y\n" * 200 + b"ValueError: %d\n" % i,
        lambda i: b"[r%d]: Traceback (most recent call last):\n[r%d]:   File\n" % (i, i) * 50,
    ],
    ids=["one endless line", "many steps", "many names and forms", "many tracebacks", "many ranks"],
)  # fmt: skip
def test_memory_is_bounded(make: Any) -> None:
    reader = LogReader()
    for i in range(400):
        reader.feed(make(i), float(i))
        if i % 100 == 99:
            assert sizes(reader, set()) < 8_000_000


def test_live_properties_follow_the_log() -> None:
    reader = LogReader()
    assert (reader.step, reader.total_steps, reader.loss) == (None, None, None)
    reader.feed(b"step 1/100 loss 2.5\nstep 2/100 lo", 3.0)
    assert (reader.step, reader.total_steps, reader.loss) == (1, 100, 2.5)
    reader.feed(b"ss 2.25\nnothing new\n", 9.0)
    assert (reader.step, reader.loss) == (2, 2.25)
    reader.feed(b"still nothing\nstep 2/100 loss 2.25\n", 60.0)
    assert reader.summary().step_times == ((1, 3.0), (2, 9.0))


def test_reward_and_rate_are_those_printed_last() -> None:
    reader = LogReader()
    assert (reader.reward, reader.rate) == (None, None)
    reader.feed(b"step=512 SPS=2400 mean_reward=-20.0 policy_loss=1.0\n")
    reader.feed(b"step=1024 SPS=2410 mean_reward=-19.5 eval_mean_reward=3.0 policy_loss=0.5\n")
    assert (reader.reward, reader.rate) == (-19.5, (2410.0, "environment steps"))
    reader.feed(b"step=1536 SPS=2390 mean_reward=nan policy_loss=0.4\n")
    assert (reader.reward, reader.rate) == (None, (2390.0, "environment steps"))


def test_a_line_without_its_end_counts_in_the_summary() -> None:
    reader = fed([b"step 1 loss 2.0\nstep 2 loss 1.0"])
    assert reader.step == 1
    assert (reader.summary().steps, reader.summary().last) == (2, 1.0)
    reader.feed(b"5\n")
    assert reader.summary().last == 1.05


def test_an_empty_log_knows_nothing() -> None:
    empty = LogReader().summary(0)
    assert replace(empty) == LogSummary()


def test_buffered_lines_have_no_steps_of_their_own() -> None:
    bars = b"".join(b"\r 1%%|# | %d/50 [00:01<00:01, 5it/s]" % n for n in range(51))
    dicts = b"".join(b"{'loss': '%d.5'}\n" % n for n in range(10, 0, -1))
    summary = fed([bars, b"\n", dicts]).summary(0)
    assert summary.steps == 50
    assert [point.step for point in summary.loss] == [None] * 10


def test_a_long_run_keeps_its_first_and_last() -> None:
    reader = LogReader()
    for i in range(5000):
        reader.feed(b"step %d loss %.9f\n" % (i, 10 / (i + 1)), i / 10)
    summary = reader.summary(0)
    assert len(summary.loss) <= 1025 and len(summary.step_times) <= 1025
    assert (summary.points, summary.loss[0].step, summary.loss[-1].step) == (5000, 0, 4999)
    assert summary.steps_per_s == pytest.approx(10, rel=0.01)
    assert (summary.first, summary.last) == (10.0, 0.002)


def test_a_hidden_nan() -> None:
    reader = fed([b"{'loss': 3.5, 'grad_norm': 1.0}\n{'loss': 0.0, 'grad_norm': nan}\n"])
    assert str(reader.summary(0).trend) == "NAN"
    fine = fed([b"{'loss': 3.5, 'grad_norm': inf}\n{'loss': 2.0, 'grad_norm': nan}\n"])
    assert str(fine.summary(0).trend) == "CONVERGING"


def test_a_named_nan_series_is_kept() -> None:
    reader = LogReader({"loss": r"L=(?P<value>\S+)"})
    reader.feed(b"L=1.0\nL=nan\n")
    assert shown(LogSummary(last=nan))
    assert str(reader.summary().trend) == "NAN"


settings.register_profile("trainlog", deadline=None)
settings.load_profile("trainlog")


def test_a_setting_that_a_program_prints_is_no_step_that_it_reached() -> None:
    """As LeRobot begins: a stall is counted from the first step on, and start-up is none."""
    reader = LogReader()
    for line in (" 'steps': 100000,\n", "cfg.steps=100000 (100K)\n", "dataset.num_frames=5000 (5K)\n"):
        reader.feed(line.encode(), 1.0)
        assert reader.step is None
    for number, step in ((2.0, 10), (3.0, 20)):
        reader.feed(f"step:{step} smpl:80 ep:1 loss:0.5\n".encode(), number)
        assert reader.step == step
        assert reader.summary().step_times[-1] == (step, number)


def test_a_first_step_counts_beside_its_loss_in_a_bar_or_once_it_goes_on() -> None:
    for first, then in (
        ("step 3 loss 0.5\n", 3),
        ("step 3/300\n", 3),
        ("train:  1%| | 3/300 [00:01<00:99, 3.00it/s]\n", 3),
        ("step 3\n", None),
    ):
        reader = LogReader()
        reader.feed(first.encode(), 1.0)
        assert reader.step == then
    reader.feed(b"step 4\n", 2.0)
    assert reader.step == 4


@pytest.mark.parametrize(
    ("pattern", "says"), [("(", "not a regular expression"), (r"loss:([\d.]+)", "`value`")]
)
def test_a_broken_pattern_is_one_clear_line(pattern: str, says: str) -> None:
    with pytest.raises(ConfigError) as raised:
        LogReader({"loss": pattern})
    assert says in raised.value.message and "log.loss" in raised.value.message
    assert raised.value.next


def test_named_patterns_beat_the_built_in_reading() -> None:
    reader = LogReader({"loss": r"l1_loss:(?P<value>[\d.e+-]+)", "step": r"tick (?P<value>\d+)"})
    for tick in range(1, 6):
        reader.feed(f"tick {tick} step {100 - tick} loss: 9 l1_loss:{5 - tick}.5e-1 \n".encode(), float(tick))
    summary = reader.summary()
    assert (summary.first, summary.last, summary.points, summary.steps) == (0.45, 0.05, 5, 5)
    assert [(p.step, p.time) for p in summary.loss] == [(n, float(n)) for n in range(1, 6)]
    assert reader.step == 5 and reader.loss == 0.05


def test_a_pattern_that_never_matches_gives_nothing() -> None:
    reader = LogReader({"loss": r"never:(?P<value>\d+)"})
    reader.feed(b"step 1 loss 2.0\nstep 2 loss 1.0\n")
    summary = reader.summary()
    assert (summary.points, summary.first, str(summary.trend), summary.steps) == (0, None, "UNKNOWN", 2)


def test_other_names_are_series_of_their_own() -> None:
    reader = LogReader({"latency": r"latency=(?P<value>[\d.]+)ms"})
    reader.feed(b"step 1 latency=1.5ms\nstep 2 latency=2.5ms\nstep 3 latency=ms\n", 3.0)
    extra = reader.summary().extra["latency"]
    assert [(p.step, p.value, p.time) for p in extra] == [(1, 1.5, 3.0), (2, 2.5, 3.0)]


def test_nothing_is_known_at_first() -> None:
    summary = LogSummary()
    assert summary.trend is Trend.UNKNOWN
    assert (summary.points, summary.loss, summary.step_times, summary.extra) == (0, (), (), {})
    unknown = (
        "framework",
        "first",
        "last",
        "steps",
        "steps_per_s",
        "data_s",
        "update_s",
        "failure",
        "rate_source",
    )
    assert all(getattr(summary, name) is None for name in unknown)


def test_it_is_frozen() -> None:
    with pytest.raises(AttributeError):
        LogSummary().steps = 3  # type: ignore[misc]
