"""Lines that tell of speed in other words than steps are kept, whatever else they say."""

from __future__ import annotations

import pytest

from gpudebug.core.trainlog import LogReader
from gpudebug.core.trainlog.series import LIMIT
from gpudebug.core.trainlog.speech import LONGEST_LINE, Speech, topics


@pytest.mark.parametrize(
    ("line", "about"),
    [
        ("step 7 loss 0.5 412.3 samples/s", ("samples",)),
        ("{'train_samples_per_second': '285.8', 'loss': 1}", ("samples",)),
        ("Speed: 118.2 img/sec", ("samples",)),
        ("throughput 12 sequences per second", ("samples",)),
        ("effective batch size: 16 x 2 = 32", ("batch",)),
        ("batch_size=8", ("batch",)),
        ("Inference latency: 12.3 ms", ("latency",)),
        ("forward pass time: 3 ms", ("latency",)),
        ("batch size 8: 412 samples/s, latency 19 ms", ("samples", "batch", "latency")),
        ("step 7 loss 0.5 12.3 it/s", ()),
        ("downloading samples", ()),
    ],
)
def test_what_a_line_speaks_of(line: str, about: tuple[str, ...]) -> None:
    assert topics(line.encode()) == about


def test_lines_are_kept_by_topic_with_their_times() -> None:
    reader = LogReader()
    reader.feed(b"batch_size: 8\n", 0.5)
    reader.feed(b"step 1 loss 2.0 100 samples/s\n", 1.0)
    reader.feed(b"step 2 loss 1.5 120 samples/s", 2.0)
    assert reader.summary().speech == {
        "batch": (("batch_size: 8", 0.5),),
        "samples": (("step 1 loss 2.0 100 samples/s", 1.0), ("step 2 loss 1.5 120 samples/s", 2.0)),
    }


def test_lines_of_one_shape_are_all_kept() -> None:
    reader = LogReader()
    reader.feed(b"".join(b"%d samples/s\n" % value for value in range(10, 20)))
    kept = [text for text, _ in reader.summary().speech["samples"]]
    assert kept == [f"{value} samples/s" for value in range(10, 20)]


def test_quoted_source_is_no_speech() -> None:
    reader = LogReader()
    reader.feed(
        b"Traceback (most recent call last):\n"
        b'  File "train.py", line 3, in <module>\n'
        b'    print("latency: 12 ms, 100 samples/s")\n'
        b"ValueError: broken\n"
    )
    assert reader.summary().speech == {}


def test_memory_is_bounded_in_lines_and_in_their_length() -> None:
    speech = Speech()
    for count in range(10 * LIMIT):
        speech.keep(("samples",), b"%d samples/s" % count + b" " * 10 * LONGEST_LINE, float(count))
    lines = speech.items()["samples"]
    assert len(lines) <= LIMIT + 1
    assert max(len(text) for text, _ in lines) == LONGEST_LINE
    assert lines[0][1] == 0.0
    assert lines[-1][1] == float(10 * LIMIT - 1)
