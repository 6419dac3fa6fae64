"""The files that `gpudebug analyze` writes: whole or not at all, and only over what may be replaced."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from tests.support.campaigns import gpudebug
from tests.support.commands import command
from tests.support.pictures import without_matplotlib
from tests.support.section_reports import report, section

TRACE = json.dumps(
    {"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 9}]}
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "r.json").write_text(json.dumps(report(section("load"))))
    (tmp_path / "train.log").write_text("".join(f"step {i} loss {2 - i / 50}\n" for i in range(1, 40)))
    (tmp_path / "samples.csv").write_text(
        "elapsed,gpu_util,mem_util,mem_used_mb,mem_total_mb\n"
        + "".join(f"{i / 2},{40 + i % 3},10,1000,16000\n" for i in range(1, 60))
    )
    (tmp_path / "trace.json").write_text(TRACE)
    (tmp_path / "taken").mkdir()
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "circle").symlink_to("circle")
    return tmp_path


REFUSED = {
    "a folder": (("--output", "taken"), 1, "is a folder"),
    "a FIFO": (("--detailed", "fifo"), 1, "not a regular file"),
    "a device": (("--output", "/dev/null"), 1, "not a regular file"),
    "links in a circle": (("--output", "circle"), 1, "links"),
    "no such folder": (("--output", "no/such/f.txt"), 1, "its folder is missing"),
    "below a file": (("--output", "train.log/f.txt"), 1, "train.log/f.txt"),
    "nobody may write": (("--output", "/proc/f.txt"), 1, "cannot write"),
    "an input": (("--output", "r.json"), 2, "is read already"),
    "an input by another name": (("--detailed", "taken/../r.json"), 2, "is read already"),
    "the other of a comparison": (("--compare", "train.log", "--output", "train.log"), 2, "is read already"),
    "one file for two": (("--output", "f", "--detailed", "f"), 2, "is written already"),
    "no PNG": (("--charts", "f.svg"), 2, "the picture is a PNG"),
}


@pytest.mark.parametrize(("words", "status", "says"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_written_is_said_before(
    folder: Path, words: tuple[str, ...], status: int, says: str
) -> None:
    before = {p.name: p.lstat().st_mtime_ns for p in folder.iterdir()}
    done = command(folder, "analyze", "r.json", *words).expect(status)
    assert done.out == ""
    (line,) = done.err.splitlines()
    assert says in line
    assert "; next: " in line
    assert {p.name: p.lstat().st_mtime_ns for p in folder.iterdir()} == before


def test_a_regular_file_is_replaced_and_keeps_its_mode(folder: Path) -> None:
    old = folder / "old.txt"
    old.write_text("older")
    old.chmod(0o640)
    (folder / "link.txt").symlink_to("old.txt")
    refused = command(folder, "analyze", "r.json", "--output", "link.txt").expect(1)
    assert "not a file that gpudebug wrote" in refused.err and "--force" in refused.err
    assert old.read_text() == "older"
    command(folder, "analyze", "r.json", "--output", "link.txt", "--force").expect(0)
    assert (folder / "link.txt").is_symlink()
    assert "TOP 10 BOTTLENECKS" in old.read_text()
    assert stat.S_IMODE(old.stat().st_mode) == 0o640


def test_what_fails_leaves_the_older_file(folder: Path) -> None:
    (folder / "old.txt").write_text("older")
    (folder / "bad.json").write_text('{"format": "gpudebug-sections"')
    command(folder, "analyze", "bad.json", "--output", "old.txt", "--force").expect(1)
    assert (folder / "old.txt").read_text() == "older"


def test_without_matplotlib_charts_say_how_to_get_it(folder: Path, tmp_path: Path) -> None:
    env = without_matplotlib(tmp_path / "hooks")
    done = gpudebug(folder, "analyze", "r.json", "--charts", "f.png", env=env).expect(1)
    assert done.err == (
        "gpudebug: charts need matplotlib, which is not installed; next: pip install 'gpudebug[charts]'\n"
    )
    gpudebug(folder, "analyze", "r.json", "--output", "f.txt", env=env).expect(0)
    assert not (folder / "f.png").exists()


POINTS = {"train.log": 39, "samples.csv": 59, "trace.json": 0}


@pytest.mark.parametrize("name", POINTS)
def test_other_kinds_are_written_too(folder: Path, name: str) -> None:
    pytest.importorskip("matplotlib")
    words = ("--output", "f.txt", "--charts", "f.png", "--detailed", "f.json")
    answer = command(folder, "analyze", name, *words, "--json").expect(0).json
    assert [Path(p).name for p in answer.pop("written")] == ["f.txt", "f.png", "f.json"]
    written = (folder / "f.txt").read_text()
    assert written == command(folder, "analyze", name).expect(0).out + "\nWritten by gpudebug analyze\n"
    detailed = json.loads((folder / "f.json").read_text())
    assert {key: detailed[key] for key in answer} == answer
    series = detailed.get("series", {}).get("loss") or detailed.get("timeline", [{"points": []}])[0]["points"]
    assert len(series) == POINTS[name]
    assert (folder / "f.png").read_bytes().startswith(b"\x89PNG")


SEPARATE = {
    "a log side by side": (("r.json", "--compare", "train.log"), "train.log is none"),
    "beside a log": (("train.log", "--compare", "r.json"), "train.log is none"),
    "one of several": (("r.json", "samples.csv", "--compare", "r.json"), "samples.csv is none"),
    "a picture of two kinds": (("r.json", "train.log", "--charts", "f.png"), "draws one file"),
    "a picture of two logs": (("samples.csv", "train.log", "--charts", "f.png"), "draws one file"),
    "a file twice": (("r.json", "train.log", "./r.json"), "r.json is given twice"),
}


@pytest.mark.parametrize(("words", "says"), SEPARATE.values(), ids=SEPARATE)
def test_what_an_option_is_not_for_is_said(folder: Path, words: tuple[str, ...], says: str) -> None:
    done = command(folder, "analyze", *words).expect(2)
    (line,) = done.err.splitlines()
    assert says in line
    assert "; next: " in line


def test_nothing_in_a_written_file_steers_a_terminal_or_holds_a_secret(folder: Path) -> None:
    secret = "hf_" + "abcdefghijklmnopqrstuvwxyz0123456789"[:34]
    sections = (section("red \x1b[31m"), section(f"token {secret}"))
    (folder / "odd.json").write_text(json.dumps(report(*sections)))
    command(folder, "analyze", "odd.json", "--output", "f.txt", "--detailed", "f.json").expect(0)
    text, document = (folder / "f.txt").read_text(), (folder / "f.json").read_text()
    assert "\x1b" not in text
    assert secret not in text + document
    assert json.loads(document)["sections"][0]["calls"] == 100
