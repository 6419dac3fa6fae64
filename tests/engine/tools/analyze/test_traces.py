"""`gpudebug analyze` of traces together, and of exports of Nsight Systems."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support import nsys, traces
from tests.support.campaigns import gpudebug

from gpudebug.engine.tools.analyze.traces import nsys as analyze_nsys
from gpudebug.engine.tools.analyze.traces import together


def write(path: Path, rank: int | None, late: float) -> None:
    header = {**traces.HEADER, "distributedInfo": {"rank": rank, "world_size": 2}}
    path.write_bytes(traces.text(traces.of_rank(late), header=header))


def test_several_ranks_are_compared(tmp_path: Path) -> None:
    write(tmp_path / "a.json", 0, 0)
    write(tmp_path / "b.json", 1, 400)
    answer = gpudebug(tmp_path, "analyze", "a.json", "b.json", "--json").expect(0).json
    assert [one["rank"] for one in answer["files"]] == [0, 1]
    together = answer["ranks"]
    assert (together["late"], together["collectives"], together["reason"]) == (1, 20, None)
    assert together["skew_p50_s"] == pytest.approx(400e-6)
    assert together["ranks"][0]["waited_s"] == pytest.approx(20 * 400e-6)
    text = gpudebug(tmp_path, "analyze", "a.json", "b.json").expect(0).out
    assert "Rank 1 makes the others wait: it waits least and arrives last, 8 ms in all" in text


def test_names_of_files_tell_ranks_that_traces_do_not(tmp_path: Path) -> None:
    write(tmp_path / "trace.rank0.json", None, 0)
    write(tmp_path / "trace.rank1.json", None, 400)
    answer = gpudebug(tmp_path, "analyze", "trace.rank0.json", "trace.rank1.json", "--json").expect(0).json
    assert answer["ranks"]["late"] == 1


def test_traces_before_and_after_are_no_ranks(tmp_path: Path) -> None:
    write(tmp_path / "before.json", None, 0)
    write(tmp_path / "after.json", None, 400)
    answer = gpudebug(tmp_path, "analyze", "before.json", "after.json", "--json").expect(0).json
    assert "ranks" not in answer


def test_an_export_of_nsys(tmp_path: Path) -> None:
    nsys.two_ranks(tmp_path / "report.sqlite", late=0)
    answer = gpudebug(tmp_path, "analyze", "report.sqlite", "--json").expect(0).json
    assert [one["process"] for one in answer["files"]] == [100, 101]
    assert {one["source"] for one in answer["files"]} == {"Nsight Systems 2026.1.1, schema 3.24.14"}
    assert answer["ranks"]["late"] == 0
    text = gpudebug(tmp_path, "analyze", "report.sqlite").expect(0).out
    assert "by Nsight Systems 2026.1.1, schema 3.24.14, 20 steps" in text


def test_one_process_of_an_export(tmp_path: Path) -> None:
    nsys.two_ranks(tmp_path / "report.sqlite")
    answer = gpudebug(tmp_path, "analyze", "report.sqlite", "--run", "2", "--json").expect(0).json
    assert answer["process"] == 101
    assert "has no run 3" in gpudebug(tmp_path, "analyze", "report.sqlite", "--run", "3").expect(1).err
    done = gpudebug(tmp_path, "analyze", "report.sqlite", "--charts", "f.png").expect(2)
    assert "report.sqlite holds 2 runs" in done.err


def test_of_many_processes_the_first_are_shown_and_the_rest_counted(tmp_path: Path) -> None:
    export = nsys.Export(tmp_path / "report.sqlite")
    for pid in range(100, 150):
        for n in range(3):
            export.kernel("gemm", 100 * n, 100 * n + 5, 10, pid=pid)
    path = export.close()
    found = analyze_nsys(path)
    assert [one.answer.process for one in found] == list(range(100, 132))
    assert found[-1].answer.notes[-1] == (
        "18 more processes used a GPU: --run 33 to --run 50 reads one; no ranks are compared"
    )
    assert together(found) is None
    (last,) = analyze_nsys(path, 50)
    assert (last.answer.process, last.left_out) == (149, 0)


def test_half_an_export_is_refused(tmp_path: Path) -> None:
    whole = nsys.two_ranks(tmp_path / "report.sqlite").read_bytes()
    (tmp_path / "half.sqlite").write_bytes(whole[: len(whole) // 2])
    (line,) = gpudebug(tmp_path, "analyze", "half.sqlite").expect(1).err.splitlines()
    assert "half.sqlite: is a half-written SQLite file" in line
