"""The command line as such: options before and behind, JSON, usage, defects, pipes, hostile folders."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from tests.support.campaigns import (
    GPUDEBUG,
    Campaign,
    environment,
    gpudebug,
    killed_at_the_end,
    make_campaign,
    make_replay_campaign,
    record,
    wait_for,
)
from tests.support.terminals import run_in_terminal

from gpudebug.cli.options import GROUPS, app

COMMANDS = [name for names in GROUPS.values() for name in names]
ENTRY = "### Hypothesis 1: The loader waits\n- **Intervention**: --set --lr=0.2\n- **Status**: UNTESTED\n"


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    return make_campaign(tmp_path / "repo", progress=ENTRY)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example_that_names_the_command(tmp_path: Path, command: str) -> None:
    done = gpudebug(tmp_path, command, "--help").expect(0)
    assert re.search(rf"Example: gpudebug .*{command}", done.out)
    assert done.err == ""


def test_alone_it_shows_its_help(tmp_path: Path) -> None:
    done = gpudebug(tmp_path).expect(2)
    assert all(command in done.out for command in COMMANDS)


def test_help_lists_every_command_in_a_group_on_one_line(tmp_path: Path) -> None:
    done = gpudebug(tmp_path, "--help", env={"COLUMNS": "80"}).expect(0)
    rows = re.findall(r"^  ([a-z]+) {2,}(\S.*)$", done.out.partition("Start:")[2], re.MULTILINE)
    assert [name for name, _ in rows] == COMMANDS
    assert {summary for _, summary in rows if len(summary) > 60 or summary.endswith("...")} == set()
    assert sorted(typer.main.get_command(app).commands) == sorted(COMMANDS)  # type: ignore[attr-defined]


def test_the_installed_script_is_the_module(tmp_path: Path) -> None:
    script = Path(sys.executable).with_name("gpudebug")
    if not script.exists():
        pytest.skip("gpudebug is not installed as a script beside this Python")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == gpudebug(tmp_path, "--version").expect(0).out
    assert re.fullmatch(r"gpudebug \d+\.\d+\.\d+\S*( \(commit [0-9a-f]{12}\))?\n", done.stdout)


@pytest.mark.parametrize(
    "words",
    [
        ("-C", "repo", "--json", "show", "1"),
        ("-C", "repo", "--json", "show", "h1"),
        ("show", "-C", "repo", "--json", "1"),
        ("--json", "show", "1", "-C", "repo"),
        ("-C", "elsewhere", "show", "1", "--json", "-C", "repo"),
    ],
)
def test_options_stand_before_or_behind_the_command(campaign: Campaign, words: tuple[str, ...]) -> None:
    (campaign.folder.parent / "elsewhere").mkdir()
    assert gpudebug(campaign.folder.parent, *words).expect(0).json["number"] == 1


@pytest.mark.parametrize(
    "words",
    [("-C", "repo", "status", "--json"), ("status", "--json", "-C", "repo"), ("status", "-Crepo", "--json")],
)
def test_status_answers_alike_by_every_way(campaign: Campaign, words: tuple[str, ...]) -> None:
    assert gpudebug(campaign.folder.parent, *words).expect(0).json == campaign.json("status")


def test_a_folder_below_the_config_belongs_to_the_campaign(campaign: Campaign) -> None:
    below = campaign.folder / "a" / "b"
    below.mkdir(parents=True)
    assert gpudebug(below, "status", "--json").expect(0).json == campaign.json("status")


USAGE = {
    "an unknown command": ("teleport",),
    "an unknown option": ("status", "--jsn"),
    "no number": ("show",),
    "a word for a number": ("show", "one"),
    "a number that is not there": ("show", "9"),
    "no such role": ("baseline", "control"),
    "a log without samples": ("baseline", "--log", "train.log"),
    "no files": ("analyze",),
    "too much": ("next", "please"),
    "a missing folder": ("-C", "nowhere", "status"),
    "no command to debug": ("init",),
}


@pytest.mark.parametrize("words", USAGE.values(), ids=USAGE)
def test_usage_errors_are_status_2(campaign: Campaign, words: tuple[str, ...]) -> None:
    done = campaign.run(*words).expect(2)
    assert done.out == ""
    (line,) = done.err.splitlines()
    assert line.startswith("gpudebug: ")
    assert "; next: " in line
    machine = campaign.run(*words, "--json").expect(2)
    assert machine.err == ""
    assert machine.json["error"]["code"] == "usage"
    assert machine.json["error"]["next"]


def test_the_answers_of_status_and_show_have_the_documented_keys(campaign: Campaign) -> None:
    status = campaign.json("status")
    assert set(status) >= {"campaign", "device", "baselines", "hypotheses", "next", "budget"}
    assert set(status["baselines"]) == {"workload", "reference"}
    assert set(status["hypotheses"][0]) >= {
        *("number", "title", "status", "verified", "delta_pp", "delta_ci", "throughput_ratio", "runs")
    }
    assert set(status["next"]) >= {"action", "hypothesis", "why"}
    assert status["next"]["action"] == "record_baseline"
    show = campaign.json("show", "1")
    assert set(show) >= {"number", "title", "status", "gates", "evidence", "files"}
    assert show["delta_pp"] is None


@pytest.fixture
def broken_package(tmp_path: Path) -> dict[str, str]:
    """An environment in which gpudebug has a defect: the function behind `status` raises a KeyError."""
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "sitecustomize.py").write_text(
        "import importlib.abc, sys\n"
        "class Finder(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'gpudebug.engine.campaign.load':\n"
        "            raise KeyError('the planted defect')\n"
        "sys.meta_path.insert(0, Finder())\n"
    )
    return {"PYTHONPATH": str(hooks), "TMPDIR": str(tmp_path)}


@pytest.mark.parametrize("words", [("status",), ("show", "1"), ("next",)], ids=lambda w: w[0])
def test_a_defect_of_ours_names_a_log_file(
    campaign: Campaign, broken_package: dict[str, str], words: tuple[str, ...]
) -> None:
    done = campaign.run(*words, env=broken_package).expect(3)
    assert done.out == ""
    (line,) = done.err.splitlines()
    assert "Traceback" not in line
    log = Path(re.search(r"gpudebug: (\S+\.log): ", line)[1])  # type: ignore[index]
    assert "the planted defect" in log.read_text()
    machine = campaign.run(*words, "--json", env=broken_package).expect(3)
    assert machine.err == ""
    assert machine.json["error"]["code"] == "defect"
    assert Path(machine.json["error"]["file"]).exists()


def test_debug_shows_the_traceback(campaign: Campaign, broken_package: dict[str, str]) -> None:
    done = campaign.run("--debug", "show", "1", env=broken_package).expect(3)
    assert "Traceback" in done.err
    assert "the planted defect" in done.err


@pytest.fixture
def replayed(tmp_path: Path) -> Campaign:
    recordings = tmp_path / "recordings"
    record(recordings, "0001-baseline-workload")
    record(recordings, "0003-h1", util=60, rate=30)
    return make_replay_campaign(tmp_path / "repo", recordings, 33, progress=ENTRY)


@pytest.mark.slow
def test_a_terminal_has_colours_and_a_line_that_lives(replayed: Campaign) -> None:
    status, said = run_in_terminal(replayed.folder, "next")
    assert status == 0
    assert re.search(r"0001-baseline-workload .* step \d+/400 .*loss [\d.]+ .*util \d+", said)
    assert said.count("0001-baseline-workload") > 1
    assert "\x1b[2K" in said
    assert "recorded" in said.rpartition("\x1b")[2]
    status, said = run_in_terminal(replayed.folder, "next")
    assert (status, "\x1b[32mVALIDATED\x1b[0m" in said) == (0, True)
    assert "\x1b[32mVALIDATED" in run_in_terminal(replayed.folder, "status")[1]
    assert "\x1b[3" not in run_in_terminal(replayed.folder, "status", NO_COLOR="1")[1]
    assert "\x1b" not in run_in_terminal(replayed.folder, "status", TERM="dumb")[1]
    assert "\x1b" not in replayed.run("status", env={"TERM": "xterm"}).out


def test_in_a_pipe_the_run_says_where_it_is_on_standard_error(replayed: Campaign) -> None:
    done = replayed.pin().run("next", "--json").expect(0)
    lines = done.err.splitlines()
    # Before a run starts, what is about to be spent.
    assert lines[0].startswith("gpudebug: baseline workload: 2 runs of the unchanged workload")
    first, second = (line for line in lines if not line.startswith("gpudebug: "))
    assert re.match(r"0001-baseline-workload  \d+\.\d s  ", first)
    assert re.match(r"0002-baseline-workload  \d+\.\d s  ", second)
    assert done.json["action"] == "recorded_baseline"


def test_a_reader_that_leaves_is_no_error(campaign: Campaign) -> None:
    read, write = os.pipe()
    os.close(read)
    for words in (("status",), ("show", "1"), ("status", "--json"), ("show", "9", "--json")):
        process = campaign.start(*words, stdout=write)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 128 + signal.SIGPIPE
        assert err == b""
    os.close(write)


def test_a_full_standard_output_is_said(campaign: Campaign) -> None:
    with open("/dev/full", "wb") as full:
        process = campaign.start("status", stdout=full)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert b"cannot write to standard output: No space left" in err


@pytest.mark.parametrize(
    "locale", [{"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}, {"LC_ALL": "POSIX"}]
)
def test_any_locale_will_do(campaign: Campaign, locale: dict[str, str]) -> None:
    campaign.add("\n### Hypothesis 2: Größe – 模型 🤖\n- **Status**: UNTESTED\n")
    assert campaign.json("status", env=locale)["hypotheses"][1]["title"] == "Größe – 模型 🤖"
    assert "UNTESTED" in campaign.run("status", env=locale).expect(0).out


def test_a_hostile_folder_holds_a_campaign(hostile: Path) -> None:
    recordings = hostile / "recordings"
    record(recordings, "0001-baseline-workload")
    record(recordings, "0003-h1", util=60, rate=30)
    if "\n" in hostile.name:
        campaign = make_campaign(hostile / "re po", progress=ENTRY)
    else:
        campaign = make_replay_campaign(hostile / "re po", recordings, progress=ENTRY)
        assert campaign.json("next")["action"] == "recorded_baseline"
    gpudebug("/", "-C", str(campaign.folder), "status").expect(0)
    campaign.config.write_text("broken: [\n")
    assert len(campaign.run("next").expect(1).err.splitlines()) == 1


def test_a_folder_that_is_no_text_holds_a_campaign(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe"))
    campaign = make_campaign(folder, progress=ENTRY)
    assert campaign.json("status")["hypotheses"][0]["status"] == "UNTESTED"
    assert campaign.run("status").expect(0)
    campaign.config.write_text("broken: [\n")
    assert campaign.run("status").expect(1).err.startswith("gpudebug: ")


@pytest.mark.parametrize("words", ["status", "show 1", "next"])
def test_a_folder_that_is_removed_around_it(tmp_path: Path, words: str) -> None:
    program = " ".join(GPUDEBUG)
    script = f"mkdir gone && cd gone && rmdir ../gone && exec {program} {words}"
    done = subprocess.run(
        ["sh", "-c", script], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot work here" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed(campaign: Campaign, closed: str) -> None:
    program = " ".join(GPUDEBUG)
    for words, status in (("status", 0), ("show 1 --json", 0), ("show 9", 2), ("doctor --json", 0)):
        done = subprocess.run(
            ["sh", "-c", f"exec {program} {words} {closed}"],
            cwd=campaign.folder,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == status, done
        assert "Traceback" not in done.stdout + done.stderr
        assert done.stdout == "" or ">&-" not in closed.replace("2>&-", "")


@pytest.fixture
def interruptible(tmp_path: Path) -> Iterator[Campaign]:
    recordings = tmp_path / "recordings"
    record(recordings, "0001-baseline-workload")
    record(recordings, "0003-h1", seconds=2000.0)
    campaign = make_replay_campaign(tmp_path / "repo", recordings, progress=ENTRY)
    campaign.json("next")
    yield campaign
    shutil.rmtree(tmp_path / "repo")


@pytest.mark.parametrize("words", [("next",), ("next", "--json")], ids=["text", "json"])
def test_ctrl_c_ends_the_run_and_frees_the_hypothesis(
    interruptible: Campaign, words: tuple[str, ...]
) -> None:
    process = interruptible.start(*words)
    with killed_at_the_end(process):
        wait_for((interruptible.folder / "runs" / "0003-h1" / "samples.csv").exists)
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Traceback" not in err
    if "--json" in words:
        assert json.loads(out)["error"]["code"] == "interrupted"
    else:
        assert out == b""
        assert b"0003-h1 was interrupted; next: gpudebug next" in err
    run = json.loads((interruptible.folder / "runs" / "0003-h1" / "run.json").read_text())
    assert run["outcome"] == "INTERRUPTED"
    assert (interruptible.folder / "runs" / "0003-h1" / "manifest.json").exists()
    assert interruptible.statuses() == ["UNTESTED"]
    assert interruptible.json("status")["next"]["action"] == "test"
