"""What kind of file it is, from its first bytes."""

from __future__ import annotations

import gzip
import json
import time

import pytest

from gpudebug.engine.tools.analyze.kinds import HEAD, FileKind, kind_of

KINDS = {
    "a section report": ('{"format": "gpudebug-sections", "version": 1', FileKind.SECTIONS),
    "one that is indented": ('{\n  "capped": 0,\n  "format" : "gpudebug-sections"', FileKind.SECTIONS),
    "one with its keys in order": ('{"capped": 0, "format": "gpudebug-sections"', FileKind.SECTIONS),
    "one that ends too early": ('{"format": "gpudebug-s', FileKind.SECTIONS),
    "a trace": ('{"traceEvents": [', FileKind.TRACE),
    "one of Kineto": ('{\n  "schemaVersion": 1,\n  "deviceProperties": [', FileKind.TRACE),
    "a list of events": ('[{"ph": "X"', FileKind.TRACE),
    "samples": ("elapsed,gpu_util,mem_util,mem_used_mb,mem_total_mb\n0.5,40", FileKind.SAMPLES),
    "a log": ("step 1 loss 2.0\n", FileKind.LOG),
    "a log of JSON lines": ('{"loss": 2.0, "step": 1}\n{"loss": 1.9, "step": 2}\n', FileKind.LOG),
    "one that names a format": ('{"format": "json", "loss": 2.0}\n', FileKind.LOG),
    "one that quotes a report": ('wrote {"format": "gpudebug-sections"}\n', FileKind.LOG),
    "one of numbers": ("[0] train-logloss:0.6\n", FileKind.LOG),
}


@pytest.mark.parametrize(("text", "kind"), KINDS.values(), ids=KINDS)
def test_the_content_tells(text: str, kind: FileKind) -> None:
    assert kind_of(text.encode()) == (kind, False)
    assert kind_of(gzip.compress(text.encode())) == (kind, True)


def test_nothing_is_a_log() -> None:
    assert kind_of(b"") == (FileKind.LOG, False)


def test_a_part_of_a_compressed_file_is_enough() -> None:
    whole = gzip.compress(b'{"traceEvents": [' + bytes(range(256)) * 4000)
    assert kind_of(whole[:HEAD]) == (FileKind.TRACE, True)
    assert kind_of(whole[:400]) == (FileKind.TRACE, True)
    assert kind_of(whole[:600] + b"damage" * 100) == (FileKind.TRACE, True)


@pytest.mark.parametrize("head", [b"\x1f\x8b" + b"rubbish" * 10, gzip.compress(b""), gzip.compress(b"x")[:9]])
def test_what_is_compressed_and_tells_nothing_is_for_the_reader_of_traces(head: bytes) -> None:
    assert kind_of(head) == (FileKind.TRACE, True)


def test_a_bomb_is_unpacked_no_further_than_needed() -> None:
    bomb = gzip.compress(bytes(50 << 20))
    assert kind_of(bomb[:HEAD]) == (FileKind.LOG, True)


@pytest.mark.parametrize("piece", ["[", "(", '{"a":[', "a [(,", "- [", ",["])
def test_brackets_that_nothing_closes_are_quick(piece: str) -> None:
    start = time.process_time()
    kind_of((piece * HEAD)[:HEAD].encode())
    assert time.process_time() - start < 5


def test_a_report_by_operations_is_a_section_report() -> None:
    saved = {"timestamp": 1755.5, "summary": {"total_operations": 1, "operations": {"a": {"call_count": 0}}}}
    for stamp in (1755.5, "2025-11-01T10:00:00", None, float("nan")):
        saved["timestamp"] = stamp
        for text in (json.dumps(saved), json.dumps(saved, indent=2)):
            assert kind_of(text.encode()) == (FileKind.SECTIONS, False)
    for document in (saved["summary"], {"summary": saved["summary"]}, {"summary": {"operations": {}}}):
        assert kind_of(json.dumps(document).encode()) == (FileKind.SECTIONS, False)


def test_log_lines_with_a_time_are_a_log() -> None:
    lines = (
        '{"timestamp": 1755.5, "loss": 2.5}\n',
        '{"timestamp": "2025-11-01", "step": 1, "summary": "x"}\n',
    )
    assert all(kind_of(line.encode()) == (FileKind.LOG, False) for line in lines)
