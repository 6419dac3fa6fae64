"""`gpudebug analyze` of section reports, as a user runs it: text, JSON, files, several, side by side."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import Done, gpudebug
from tests.support.commands import command
from tests.support.section_reports import node, report, section

SLOW = report(
    section("training_step", 100, 0.08, self_s=1.0, category="Training"),
    section("data_loading", 100, 0.05, mem_peak_mb=140.0),
    section("forward", 100, 0.02, gpu_peak_mb=900.0),
    tree=[node("training_step", 100, 8.0, node("data_loading", 100, 5.0), node("forward", 100, 2.0))],
    notes=["a note of the report"],
)
FAST = report(section("training_step", 100, 0.03), section("data_loading", 100, 0.005), enabled_s=4.0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, document in {"slow.json": SLOW, "fast.json": FAST}.items():
        (tmp_path / name).write_text(json.dumps(document))
    return tmp_path


def analyze(folder: Path, *words: str, status: int = 0) -> Done:
    return command(folder, "analyze", *words).expect(status)


TRACED = """
from gpudebug import enable_profiling, export_trace, profile
enable_profiling(trace=True)
for _ in range(3):
    with profile("step"):
        with profile("data"):
            pass
export_trace("trace.json")
"""


def test_a_trace_of_our_own_is_read_as_its_sections(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", TRACED], cwd=tmp_path, check=True)
    (tmp_path / "packed.json.gz").write_bytes(gzip.compress((tmp_path / "trace.json").read_bytes()))
    for name in ("trace.json", "packed.json.gz"):
        answer = json.loads(analyze(tmp_path, name, "--json").out)
        assert answer["kind"] == "sections", answer
        assert {s["name"]: s["calls"] for s in answer["sections"]} == {"step": 3, "data": 3}
        assert [n["name"] for n in answer["tree"][0]["children"]] == ["data"]


def test_the_documented_json(folder: Path) -> None:
    answer = gpudebug(folder, "analyze", "slow.json", "--json").expect(0).json
    assert answer["kind"] == "sections"
    assert answer["file"] == str(folder / "slow.json")
    assert [s["name"] for s in answer["sections"]] == ["training_step", "data_loading", "forward"]
    assert answer["sections"][1]["share"] == pytest.approx(0.625)
    assert answer["sections"][1]["score"] == pytest.approx(0.4 * 62.5 + 15 + 15)
    assert [(r["level"], r["section"]) for r in answer["recommendations"]] == [
        ("CRITICAL", "training_step"),
        ("CRITICAL", "data_loading"),
        ("MEMORY", "data_loading"),
        ("GPU MEMORY", "forward"),
    ]


def test_the_text_for_people(folder: Path) -> None:
    out = gpudebug(folder, "analyze", "slow.json").expect(0).out
    for said in (
        "sections of one process, 8 s profiled, 100 iterations, 10 iterations/s, 3 of warm-up left out",
        "PROFILING SUMMARY:",
        "TOP 10 BOTTLENECKS:\n------------------------------------------------------------\nOperation",
        "  CRITICAL    data_loading takes 62.5% of the time: give the loader more workers",
        "TREE (total, share of the section above, calls, mean):",
        "note: a note of the report",
    ):
        assert said in out


@pytest.mark.parametrize(
    "written",
    [
        json.dumps(SLOW, indent=2),
        json.dumps(SLOW, sort_keys=True),
        json.dumps(SLOW, indent=1, sort_keys=True),
        "\ufeff" + json.dumps(SLOW),
        "\n\n" + json.dumps(SLOW),
    ],
    ids=["indented", "sorted", "both", "a byte order mark", "blank lines"],
)
def test_a_report_is_known_however_it_is_written(folder: Path, written: str) -> None:
    (folder / "odd.txt").write_text(written, encoding="utf-8")
    assert analyze(folder, "odd.txt", "--json").json["kind"] == "sections"


def test_a_compressed_report(folder: Path) -> None:
    packed = gzip.compress(json.dumps(SLOW).encode(), mtime=0)
    (folder / "slow.json.gz").write_bytes(packed)
    plain, unpacked = (analyze(folder, name, "--json").json for name in ("slow.json", "slow.json.gz"))
    assert {**plain, "file": None} == {**unpacked, "file": None}
    (folder / "cut.json.gz").write_bytes(packed[:-20])
    assert "is cut off: its gzip has no end" in analyze(folder, "cut.json.gz", status=1).err
    (folder / "bad.json.gz").write_bytes(packed[:300] + b"\xff" * 50 + packed[350:])
    assert "is damaged: no gzip" in analyze(folder, "bad.json.gz", status=1).err


BROKEN: dict[str, tuple[Any, str]] = {
    "cut off": (json.dumps(SLOW)[:500], "is cut off: its JSON has no end"),
    "cut off early": ('{"format": "gpudebug-sec', "is cut off: its JSON has no end"),
    "of another version": ({**SLOW, "version": 2}, "of version 2, this gpudebug reads 1"),
    "negative": (report(section("load", total_s=-2.0)), "section 'load': total_s is negative: -2"),
    "not a number": (report(section("load", max_s=float("nan"))), "section 'load': max_s is nan"),
    "a missing key": (report({"name": "load", "calls": 3}), "section 'load': total_s is missing"),
}


@pytest.mark.parametrize(("document", "says"), BROKEN.values(), ids=BROKEN)
def test_a_broken_report_is_one_clear_line(folder: Path, document: Any, says: str) -> None:
    (folder / "bad.json").write_text(document if isinstance(document, str) else json.dumps(document))
    done = analyze(folder, "bad.json", status=1)
    assert done.out == ""
    (line,) = done.err.splitlines()
    assert says in line
    assert "bad.json" in line
    assert "; next: " in line


def test_several_reports_are_told_each_and_together(folder: Path) -> None:
    answer = analyze(folder, "slow.json", "fast.json", "--json").json
    assert [a["sections"][0]["calls"] for a in answer["files"]] == [100, 100]
    merged = {s["name"]: s for s in answer["merged"]["sections"]}
    assert merged["data_loading"]["calls"] == 200
    assert merged["data_loading"]["mean_s"] == pytest.approx(0.0275)
    assert (answer["merged"]["kind"], answer["merged"]["processes"]) == ("sections", 2)
    out = analyze(folder, "slow.json", "fast.json").out
    assert [line.split(":")[0].split("/")[-1] for line in out.splitlines()[:4]] == [
        "slow.json",
        "fast.json",
        "",
        "2 reports together",
    ]
    assert out.count("TOP 10 BOTTLENECKS") == 1


def test_a_log_among_them_is_told_too(folder: Path) -> None:
    (folder / "train.log").write_text("".join(f"step {i} loss {2 - i / 50}\n" for i in range(1, 40)))
    words = ("train.log", "slow.json", "fast.json")
    answer = analyze(folder, *words, "--json").json
    assert [a["kind"] for a in answer["files"]] == ["training_log", "sections", "sections"]
    assert answer["merged"]["processes"] == 2
    out = analyze(folder, *words[:2]).out
    assert "training log" in out.splitlines()[0]
    assert "TOP 10" in out and "together" not in out


def test_two_reports_side_by_side(folder: Path) -> None:
    found = analyze(folder, "slow.json", "--compare", "fast.json", "--json").json["comparison"]
    assert (found["verdict"], found["figure"]) == ("faster", "throughput")
    assert found["ratio"] == pytest.approx(2.5)
    assert found["a"]["label"] == str(folder / "slow.json")
    rows = {r["name"]: r for r in found["sections"]}
    assert (rows["data_loading"]["ratio"], rows["forward"]["b"]) == (pytest.approx(10), None)
    assert len(found["checklist"]) == 8
    out = analyze(folder, "slow.json", "--compare", "fast.json").out
    assert "Verdict: faster: B is 2.50x as fast as A by throughput" in out
    assert "  [!] Were the same sections timed in both?\n      no: only in A: 'forward'" in out
    (folder / "again.json").write_bytes((folder / "slow.json").read_bytes())
    both = analyze(folder, "slow.json", "again.json", "--compare", "fast.json", "--json").json
    assert both["merged"]["comparison"]["a"]["reports"] == 2


def test_all_that_is_known_is_written(folder: Path) -> None:
    names = ("--output", "a.txt", "--detailed", "a.json", "--charts", "a.png")
    done = analyze(folder, "slow.json", *names)
    assert [Path(line.removeprefix("wrote ")).name for line in done.out.splitlines()[-3:]] == [
        "a.txt",
        "a.png",
        "a.json",
    ]
    written = done.out.split("\nwrote ")[0]
    assert (folder / "a.txt").read_text() == f"{written}\nWritten by gpudebug analyze\n"
    detailed = json.loads((folder / "a.json").read_text())
    assert detailed.pop("written_by") == "gpudebug analyze"
    assert detailed == analyze(folder, "slow.json", "--json").json
    assert (folder / "a.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(p.name for p in folder.iterdir()) == ["a.json", "a.png", "a.txt", "fast.json", "slow.json"]
