"""How a run ends whose files are not what was counted."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from gpudebug.core.records import Counted
from gpudebug.core.words import Outcome
from gpudebug.edges.launcher import Launched
from gpudebug.engine.run.counts import change_of, compare, ending, take_over, unread
from gpudebug.engine.run.files import Files


def count(data: bytes) -> dict[str, Any]:
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def launched(**changes: Any) -> Launched:
    facts: dict[str, Any] = {"outcome": Outcome.COMPLETED, "reason": None, "sampler": None, **changes}
    return Launched(exit_status=0, signal=None, t0=0.0, duration_s=1.0, leaked=0, **facts)


@pytest.mark.parametrize(
    ("content", "whole", "how"),
    [
        (b"abcd", True, None),
        (b"abcde", False, None),
        (b"abcde", True, "it has 5 bytes, 4 had been written to it"),
        (b"abc", False, "it has 3 bytes, 4 had been written to it"),
        (b"abXd", False, "the 4 bytes that had been written to it were changed"),
        (None, False, "it was removed, or another thing was put in its place"),
    ],
)
def test_how_a_file_differs(tmp_path: Path, content: bytes | None, whole: bool, how: str | None) -> None:
    if content is not None:
        (tmp_path / "f").write_bytes(content)
    assert change_of(tmp_path / "f", Counted(**count(b"abcd")), whole=whole) == how


@pytest.mark.parametrize("finished", [True, False])
def test_a_row_behind_the_last_count_is_a_killed_samplers_or_somebodys(
    tmp_path: Path, finished: bool
) -> None:
    files = Files(tmp_path / "samples.csv", tmp_path / "train.log", tmp_path / "sampler.json")
    files.samples.write_bytes(b"abcd and a row")
    found = compare(files, launched(sampler={"counted": count(b"abcd"), "finished": finished}))
    assert ("samples.csv" in found.altered) is finished
    assert files.samples.read_bytes() == (b"abcd and a row" if finished else b"abcd")


def test_without_counts_nothing_is_known(tmp_path: Path) -> None:
    files = Files(Path(os.devnull), Path(os.devnull), tmp_path / "sampler.json")
    assert compare(files, launched()).written == {}
    assert compare(files, launched(sampler={"counted": None})).altered == {}


def test_an_altered_run_is_lost_unless_a_person_or_the_device_ended_it() -> None:
    how = {"samples.csv": "x"}
    said = "samples.csv was altered during the run: x"
    assert ending(launched(), {}) == launched()
    for outcome in (Outcome.COMPLETED, Outcome.CRASHED, Outcome.ENDED_BY_PLAN, Outcome.TIMED_OUT):
        ended = ending(launched(outcome=outcome), how)
        assert (ended.outcome, ended.reason) == (Outcome.SAMPLER_LOST, said)
    stopped = ending(launched(outcome=Outcome.INTERRUPTED, reason="interrupted from the keyboard"), how)
    assert stopped.outcome is Outcome.INTERRUPTED
    assert stopped.reason == f"interrupted from the keyboard; {said}"


HEADER = b"elapsed,gpu_util\n"


@pytest.mark.parametrize(
    ("outcome", "content", "finished", "lost"),
    [
        (Outcome.COMPLETED, HEADER, False, True),
        (Outcome.ENDED_BY_PLAN, HEADER, False, True),
        (Outcome.ENDED_BY_PLAN, None, False, True),
        (Outcome.COMPLETED, HEADER + b"0.0,\n", False, True),
        (Outcome.COMPLETED, HEADER + b"0.0,\n0.2,5\n", False, False),
        (Outcome.COMPLETED, HEADER + b"0.0,\n", True, False),
        (Outcome.CRASHED, HEADER, False, False),
        (Outcome.INTERRUPTED, HEADER, False, False),
    ],
)
def test_a_run_whose_sampler_was_gone_before_its_first_reading_is_lost(
    tmp_path: Path, outcome: Outcome, content: bytes | None, finished: bool, lost: bool
) -> None:
    samples = tmp_path / "samples.csv"
    if content is not None:
        samples.write_bytes(content)
    why = "the sampler ended with signal 9"
    run = launched(outcome=outcome, sampler={"finished": finished, "why": why})
    ended = unread(run, samples)
    assert (ended.outcome is Outcome.SAMPLER_LOST) is lost
    assert ended.reason == (f"{why} before it had read the device" if lost else None)
    assert unread(launched(outcome=outcome), samples).outcome is outcome, "nothing was sampled"


def line(node: str, pid: int) -> bytes:
    return f'{{"kind":"start","pid":{pid},"node":"{node}"}}\n'.encode()


@pytest.mark.parametrize("first", [True, False])
def test_what_other_nodes_wrote_is_added_to_the_record_behind_what_was_counted(
    tmp_path: Path, first: bool
) -> None:
    records = tmp_path / "records"
    records.mkdir()
    if first:
        (records / "probe.jsonl").write_bytes(line("n0", 7))
    (records / "probe.n1.jsonl").write_bytes(line("n1", 7))
    (records / "probe.n2.jsonl").symlink_to("/etc/hostname")
    take_over(tmp_path, {})
    text = (tmp_path / "probe.jsonl").read_bytes()
    assert text.startswith(line("n0", 7)) is first
    assert text.count(b"\n") == 1 + first
    assert b'"node":"n1"' in text


def test_a_record_that_was_altered_is_not_added_to(tmp_path: Path) -> None:
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "probe.n1.jsonl").write_bytes(line("n1", 7))
    take_over(tmp_path, {"probe.jsonl": "it was removed"})
    assert not (tmp_path / "probe.jsonl").exists()
