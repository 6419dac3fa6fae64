"""Every reader of what others wrote: any bytes give an answer or an expected error, in time."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.errors import GpudebugError
from gpudebug.core.inside import probe, torch_profile
from gpudebug.core.inside.imported_files import read_loaded
from gpudebug.core.inside.sections import read_report
from gpudebug.core.samples.table import LONGEST_LINE, MOST_LONG_LINES, read_samples
from gpudebug.core.text.json_lines import parse
from gpudebug.core.trace.summary import summarise
from gpudebug.core.trainlog import printed_settings
from gpudebug.core.trainlog.reader import LogReader

HEADER = "elapsed,gpu_util,mem_used_mb,gpu_index,gpu_uuid,new_samples\n"
PIECES = [
    *(
        "{",
        "}",
        "[",
        "]",
        '"',
        "'",
        ":",
        ",",
        "\n",
        " ",
        "\\",
        "\x00",
        "\x1b[2J",
        "\r",
        "=",
        "(",
        ")",
        "-",
        "|",
    ),
    *(
        "loss",
        "step ",
        "1",
        "0.5",
        "nan",
        "1e999",
        "9" * 400,
        "\ud800",
        "é",
        "\u202e",
        "Namespace(a=",
        "key: ",
        "&a ",
        "*a",
    ),
    *(
        '"traceEvents": [',
        '{"ph": "X", "ts": 1, "dur": 2, "name": "a", "args": {',
        '"kind": "beat", "pid": 1',
        "true",
    ),
    *(
        '{"kind": "start", "pid": 1, "t": 1, "t0": 0, "version": 1}\n',
        '"sections": [',
        '"format": "gpudebug-sections"',
    ),
    *(
        HEADER,
        "1,50,100,0,CPU,1\n",
        "- a\n",
        "  ",
        "a: b\n",
        "Traceback (most recent call last):\n",
        'File "a.py", line 1\n',
    ),
]
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=6), max_size=40).map("".join)


def _samples(text: str) -> None:
    read_samples(io.StringIO(text, newline="\n"), "samples.csv")


def _log(text: str) -> None:
    reader = LogReader({"loss": r"loss[=:]\s*(?P<value>\S+)"})
    reader.feed(_bytes(text))
    reader.summary(1)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


READERS: dict[str, Callable[[str], Any]] = {
    "samples": _samples,
    "samples with a head": lambda text: _samples(HEADER + text),
    "log": _log,
    "printed": printed_settings.printed_settings,
    "saved json": lambda text: printed_settings.read_saved("args.json", text),
    "saved yaml": lambda text: printed_settings.read_saved("hparams.yaml", text),
    "probe": probe.read_probe,
    "loaded": read_loaded,
    "profile": torch_profile.read_profiles,
    "sections": lambda text: read_report(_bytes(text), "sections.json"),
    "sections with a head": lambda text: read_report(
        b'{"format": "gpudebug-sections", "version": 1, ' + _bytes(text), "sections.json"
    ),
    "trace": lambda text: summarise(iter([_bytes(text)])),
    "trace with a head": lambda text: summarise(iter([b'{"traceEvents": [' + _bytes(text)])),
}


@contextmanager
def bounded(text: str) -> Iterator[None]:
    """An expected error is an answer; any other, and one that takes long, names the text."""
    start = time.process_time()
    try:
        with suppress(GpudebugError):
            yield
    except Exception as e:
        raise AssertionError(text) from e
    assert time.process_time() - start < 5, text


@pytest.mark.parametrize("name", READERS)
@given(text=TEXTS)
def test_any_text_gives_an_answer_or_an_expected_error(name: str, text: str) -> None:
    with bounded(repr(text)):
        READERS[name](text)


@pytest.mark.parametrize("name", READERS)
def test_a_long_text_of_one_piece_is_quick(name: str) -> None:
    for piece in (*PIECES, "a: [", "- ", '{"a":', '{"kind":'):
        with bounded(repr(piece)):
            READERS[name](piece * ((1 << 17) // len(piece)))


@pytest.mark.parametrize("depth", [101, 400, 5_000, 200_000])
def test_nesting_of_any_depth_is_a_value_or_a_value_error(depth: int) -> None:
    text = "[" * depth + "]" * depth
    with pytest.raises(ValueError, match="nested"):
        parse(text)
    assert parse("[" * 100 + "]" * 100) is not None
    with pytest.raises(ValueError):
        parse("1" * 10_000)
    assert read_loaded('{"tree": "/x", "files": ' + text + "}") is None


def test_lines_without_an_end_stop_the_reading_of_samples() -> None:
    row = "1,50,100,0,CPU,1\n"
    for text in (
        HEADER + row + "\0" * (LONGEST_LINE * 40),
        (HEADER + row) + ("x" * LONGEST_LINE + "\n") * 20,
    ):
        found = read_samples(io.StringIO(text, newline="\n"), "samples.csv")
        assert len(found.rows) == 1
        assert found.unreadable <= MOST_LONG_LINES * 2
        assert found.refused == "samples.csv has lines of more than 64 KB"


def test_a_few_long_lines_are_unreadable_rows() -> None:
    row = "1,50,100,0,CPU,1\n"
    found = read_samples(io.StringIO(HEADER + row + "x" * 200_000 + "\n" + row, newline="\n"), "samples.csv")
    assert (len(found.rows), found.refused) == (2, None)


def test_yaml_aliases_and_tags_tell_nothing() -> None:
    assert printed_settings.read_saved("hparams.yaml", "a: &a 1\nb: *a\n") == {}
    assert printed_settings.read_saved("hparams.yaml", "a: !!python/tuple [1]\n") == {}
    assert printed_settings.read_saved("hparams.yaml", "a: 1\nb: {c: x}\n") == {"a": "1", "b.c": "x"}


def test_what_json_holds_under_facts_stays_small() -> None:
    start = {"kind": "start", "pid": 1, "t": 1.0, "t0": 0.0, "version": 1}
    facts = {"kind": "facts", "pid": 1, "facts": {"a": [[[[[["x"]]]]]], "b": "y" * 9000}}
    found = probe.read_probe(f"{json.dumps(start)}\n{json.dumps(facts)}\n")
    assert found is not None
    assert len(json.dumps(found.processes[0].facts)) < 300
