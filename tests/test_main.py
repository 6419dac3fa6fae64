"""Plain `status` and `analyze` take the short way, everything else the long one; both answer alike."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gpudebug.__main__ import AskedCommand, plain_command

SHORT = {
    ("status",): AskedCommand("status"),
    ("status", "--json"): AskedCommand("status", json=True),
    ("--json", "status"): AskedCommand("status", json=True),
    ("-C", "/", "status"): AskedCommand("status", "/"),
    ("status", "-C", "/", "--json"): AskedCommand("status", "/", json=True),
    ("-C", "/tmp", "status", "-C", "/"): AskedCommand("status", "/"),
    ("analyze", "train.log"): AskedCommand("analyze", files=("train.log",)),
    ("--json", "analyze", "a.csv", "status"): AskedCommand("analyze", json=True, files=("a.csv", "status")),
}
LONG = (
    (),
    ("next",),
    ("status", "status"),
    ("status", "--watch"),
    ("status", "--help"),
    ("status", "-C"),
    ("status", "-C", "/no/such/folder"),
    ("status", "-C/"),
    ("--debug", "status"),
    ("status", "1"),
    ("analyze",),
    ("analyze", ""),
    ("analyze", "-"),
    ("analyze", "--", "a.log"),
    ("analyze", "a.log", "--run", "1"),
    ("analyze", "a.log", "-C", "/"),
    ("-C", "/", "analyze", "a.log"),
    ("a.log", "analyze"),
)


@pytest.mark.parametrize(("words", "asked"), SHORT.items())
def test_the_short_way(words: tuple[str, ...], asked: AskedCommand) -> None:
    assert plain_command(list(words)) == asked


@pytest.mark.parametrize("words", LONG)
def test_the_long_way(words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert plain_command(list(words)) is None


@pytest.mark.parametrize("name", ["train.log", "none.log", "empty.log", "gpu.csv"])
@pytest.mark.parametrize("json", [(), ("--json",)])
def test_both_ways_answer_alike(name: str, json: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("".join(f"step {n} loss {3 / (n + 1):.4f}\n" for n in range(50)))
    (tmp_path / "empty.log").write_text("")
    rows = [f"2026/01/01 00:00:{n:02}.000, 0, {50 + n} %\n" for n in range(30)]
    (tmp_path / "gpu.csv").write_text("timestamp, index, utilization.gpu [%]\n" + "".join(rows))
    short, long = (
        subprocess.run(
            [sys.executable, "-m", "gpudebug", "analyze", *words, *json],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        for words in ((name,), ("--input", name))
    )
    assert (short.returncode, short.stdout, short.stderr) == (long.returncode, long.stdout, long.stderr)
