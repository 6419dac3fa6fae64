"""macOS and Windows: what was recorded is read there, sections are timed, all else says *Linux only*."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support import monitors, nsys, section_reports
from tests.support.campaigns import environment
from tests.support.old_campaign import restore_kept

from gpudebug.cli.options import GROUPS

ROOT = Path(__file__).parents[2]
ARGUMENTS = {
    "init": ["--command", "python train.py"],
    "sample": ["--", "true"],
    "why": ["--", "true"],
    "compare": ["a", "b"],
    "loop": ["--agent", "true"],
    **{name: ["1"] for name in ("accept", "release", "reopen", "show")},
}
ALL = """\
import json, sys
from gpudebug.cli import run
for words in json.loads(sys.argv[1]):
    print(run(words), flush=True)
"""
PROFILED = """\
import time
import gpudebug as g
g.enable_profiling(report="sections.json", track_memory=True, trace=True)
@g.profile_function("inner")
def inner(): time.sleep(0.001)
for _ in range(12):
    with g.profile_section("outer"):
        inner()
g.record_timing("elsewhere", 0.5)
g.print_profiling_summary()
g.export_trace("trace.json")
"""


def run_all(platform: str, folder: Path, commands: list[list[str]]) -> subprocess.CompletedProcess[str]:
    program = folder / "all.py"
    program.write_text(ALL, "utf-8")
    return started(platform, folder, str(program), json.dumps(commands))


def started(platform: str, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.support.elsewhere", platform, *words],
        cwd=folder,
        env=environment({"PYTHONPATH": str(ROOT)}),
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_other_command_says_so_in_one_line(tmp_path: Path) -> None:
    others = {name for group in GROUPS.values() for name in group} - {"analyze", "catalogue", "sample"}
    # The status of `sample` is for the rest of a process.
    names = [*sorted(others), "sample"]
    for platform in ("win32", "darwin"):
        done = run_all(platform, tmp_path, [[name, *ARGUMENTS.get(name, ())] for name in names])
        lines = done.stderr.splitlines()
        assert len(lines) == len(names), done.stderr
        assert all(line.startswith("gpudebug: Linux only: ") for line in lines)
        statuses = dict(zip(names, done.stdout.split(), strict=True))
        assert {name: status for name, status in statuses.items() if status != "1"} == {"sample": "125"}


def test_what_was_recorded_is_read_as_on_linux(tmp_path: Path) -> None:
    folder = restore_kept(tmp_path / "campaign").folder
    (folder / "smi.csv").write_text(monitors.query(), "utf-8")
    (folder / "wandb.wandb").write_bytes(monitors.wandb_run())
    nsys.two_ranks(folder / "ranks.sqlite")
    (folder / "plain.log").write_text("step 1 loss 2.0\nstep 2 loss 1.5\nstep 3 loss 1.2\n", "utf-8")
    (folder / "rgb.json").write_text(json.dumps(section_reports.report(section_reports.section("a"))))
    written = ["--output", "o.txt", "--detailed", "d.json", "--charts", "p.png"]
    commands = [
        ["--help"],
        ["analyze", "--help"],
        *(["analyze", name] for name in ("plain.log", "smi.csv", "wandb.wandb", "ranks.sqlite", "rgb.json")),
        ["analyze", "runs/0001-baseline-workload", "--json"],
        ["analyze", str(ROOT / "tests/data/trace_cpu.json.gz")],
        ["analyze", "--input", "plain.log", *written],
        ["analyze", "plain.log", "--output", "README.md"],
        ["analyze", "plain.log", "--output", "README.md", "--force"],
        ["catalogue", "rtc"],
    ]
    shown = {}
    for platform in ("linux", "darwin", "win32"):
        (folder / "README.md").write_text("# Mine\n", "utf-8")
        done = run_all(platform, folder, commands)
        files = {name: (folder / name).read_bytes() for name in ("o.txt", "d.json", "README.md")}
        shown[platform] = (done.stdout, done.stderr, files)
        assert (folder / "p.png").read_bytes().startswith(b"\x89PNG")
    statuses = [line for line in shown["linux"][0].splitlines() if line in ("0", "1", "2", "3")]
    assert statuses == ["0"] * 10 + ["1", "0", "0"], shown["linux"][:2]
    assert shown["darwin"] == shown["linux"]
    assert shown["win32"] == shown["linux"]


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_sections_are_timed_and_their_report_read(tmp_path: Path, platform: str) -> None:
    program = tmp_path / "profiled.py"
    program.write_text(PROFILED, "utf-8")
    timed = started(platform, tmp_path, str(program))
    assert "\nouter " in timed.stdout, timed.stderr
    done = run_all(platform, tmp_path, [["analyze", "sections.json"], ["--version"]])
    assert done.returncode == 0 and done.stderr == ""
    assert "inner " in done.stdout and "\n0\ngpudebug " in done.stdout
