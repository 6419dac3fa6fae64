"""A screen that leaves the terminal as it found it, however it ends."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.campaigns import GPUDEBUG, Campaign, gpudebug, make_replay_campaign, record, wait_for
from tests.support.commands import command
from tests.support.terminals import Terminal, Tmux

from gpudebug.core.samples.row import HEADER, DeviceReading, csv_row
from gpudebug.terminal import screen

PROGRAM = """
import sys
from rich.text import Text
from gpudebug.terminal import output, screen

class Seen:
    over = False

def look():
    if sys.argv[1:] == ["fails"] and looks:
        raise RuntimeError("look")
    looks.append(1)
    return Seen()

def frame(seen, width, height, unicode):
    return Text(f"frame {width}x{height} {unicode}")

looks = []
sys.exit(output.run(lambda: screen.watch(look, frame, lambda s: "a line") or 0,
                  json=lambda: False, debug=lambda: False))
"""


def start(*words: str, **more: object) -> Terminal:
    return Terminal([sys.executable, "-c", PROGRAM, *words], **more)  # type: ignore[arg-type]


def test_q_ends_it_and_other_keys_do_nothing() -> None:
    with start(env={"LC_ALL": "C.UTF-8"}) as terminal:
        terminal.wait_for("frame 80x24 True")
        assert terminal.modes != terminal.before
        terminal.type("hello\x1b[A\n")
        terminal.resize(100, 30)
        os.killpg(terminal.process.pid, signal.SIGWINCH)
        terminal.wait_for("frame 100x30")
        terminal.type("q")
        assert terminal.end() == 0
        assert terminal.left and terminal.modes == terminal.before
        assert b"hello" not in terminal.said


ENDINGS = {
    "Ctrl-C": ("\x03", None, 130),
    "SIGTERM": (None, signal.SIGTERM, -signal.SIGTERM),
    "SIGHUP": (None, signal.SIGHUP, -signal.SIGHUP),
    "stopped and continued": ("q", signal.SIGCONT, 0),
}


@pytest.mark.parametrize(("key", "number", "status"), ENDINGS.values(), ids=ENDINGS)
def test_however_it_ends_the_terminal_is_as_before(
    key: str | None, number: signal.Signals | None, status: int
) -> None:
    with start() as terminal:
        terminal.wait_for("frame 80x24")
        if number is not None:
            terminal.process.send_signal(number)
        if key is not None:
            terminal.type(key)
        assert terminal.end() == status
        assert terminal.left and terminal.modes == terminal.before


def test_a_defect_is_told_on_the_restored_terminal() -> None:
    with start("fails") as terminal:
        assert terminal.end() == 3
        assert terminal.left and terminal.modes == terminal.before
        after = terminal.said.rpartition(b"\x1b[?1049l")[2]
        assert b"a defect in gpudebug: RuntimeError" in after


def test_without_keys_it_still_hides_what_is_typed() -> None:
    with open(os.devnull) as nothing, start(stdin=nothing.fileno(), env={"LC_ALL": "C"}) as terminal:
        terminal.wait_for("frame 80x24 False")
        terminal.type("q\x03")
        assert terminal.end() == 130
        assert terminal.left and terminal.modes == terminal.before


def test_a_terminal_that_cannot_draw_gets_lines() -> None:
    with start(env={"TERM": "dumb"}) as terminal:
        terminal.wait_for("a line\r\n")
        terminal.type("\x03")
        assert terminal.end() == 130
        assert b"\x1b" not in terminal.said


class Seen:
    def __init__(self, text: str, over: bool = False) -> None:
        self.text = text
        self.over = over


def test_in_a_pipe_a_line_every_ten_seconds_and_one_where_the_run_changes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr("time.sleep", sleep)
    monkeypatch.setattr("time.monotonic", lambda: now)
    seen = iter([*(Seen(f"0001-h1 {n}") for n in range(22)), Seen("0002-h1 0"), Seen("over", over=True)])
    screen.watch(lambda: next(seen), lambda *_: "", lambda s: s.text)
    assert capsys.readouterr().out.split("\n") == [
        "0001-h1 0",
        "0001-h1 10",
        "0001-h1 20",
        "0002-h1 0",
        "over",
        "",
    ]


def test_there_is_no_json_of_a_screen(tmp_path: Path) -> None:
    for words in (("status", "--watch", "--json"), ("--json", "status", "--watch")):
        done = command(tmp_path, *words)
        assert done.status == 2
        assert done.json["error"]["next"] == "gpudebug status --json"


def test_help_says_what_a_pipe_gets(tmp_path: Path) -> None:
    said = " ".join(command(tmp_path, "status", "--help").out.split())
    assert "a line every 10 s until no run is under way" in said


def make_watched(folder: Path, seconds: float = 60.0) -> Campaign:
    """A campaign whose baseline is a recording of two GPUs and lasts `seconds`."""
    run = record(folder / "recordings", "0001-baseline-workload", seconds=seconds, rate=5, lines=300)
    uuids = ("GPU-a", "GPU-b")
    log = (run / "train.log").read_bytes()
    ticks = round(seconds / 0.2)
    rows = [
        csv_row(
            DeviceReading(
                elapsed=tick * 0.2,
                gpu_util=(17 * tick + 31 * n) % 101,
                mem_used_mb=30000 + 100 * n,
                mem_total_mb=81559,
                gpu_index=n,
                gpu_uuid=uuid,
                power_w=210.5,
                sm_clock_mhz=1410,
                mem_clock_mhz=1593,
                temperature_c=61,
                new_samples=1,
                cpu_util=250.0,
                rss_mb=4000.0,
                log_bytes=len(log) * tick // ticks,
            )
        )
        for tick in range(1, ticks + 1)
        for n, uuid in enumerate(uuids)
    ]
    (run / "samples.csv").write_text(HEADER + "".join(rows))
    devices = [
        {"index": n, "uuid": uuid, "name": "NVIDIA A100", "kind": "replay"} for n, uuid in enumerate(uuids)
    ]
    facts = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**facts, "devices": devices}))
    return make_replay_campaign(folder / "repo", folder / "recordings", speed=1)


def test_a_pipe_is_told_that_nothing_is_under_way(tmp_path: Path) -> None:
    done = gpudebug(make_watched(tmp_path, 1.0).folder, "status", "--watch").expect(0)
    assert done.out.startswith("Nothing is under way.  Next: record_baseline: ") and done.out.count("\n") == 1


def test_a_full_disk_is_an_expected_error(tmp_path: Path) -> None:
    (tmp_path / "gpudebug.yaml").write_text("campaign: c\nworkload: {command: python train.py}\n")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*GPUDEBUG, "status", "--watch"], cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 1
    assert done.stderr.startswith(
        b"gpudebug: cannot write to standard output: No space left on device; next: "
    )


def needs_tmux() -> None:
    if shutil.which("tmux") is None:
        assert "CI" not in os.environ, "tmux is needed to test the screen"
        pytest.skip("tmux is not installed")


def stty(tmux: Tmux, path: Path) -> str:
    tmux.shell(f"stty -a > {path}; echo written")
    wait_for(lambda: any(ln == "written" for ln in tmux.lines) and path.exists())
    tmux.shell("clear")
    wait_for(lambda: "written" not in tmux.screen)
    text = path.read_text()
    path.unlink()
    # The size is the window's.
    return text.partition(";")[2].partition("columns")[2].partition(";")[2]


@pytest.mark.slow
def test_a_detached_run_is_watched_in_a_real_terminal(tmp_path: Path) -> None:
    needs_tmux()
    campaign = make_watched(tmp_path)
    campaign.json("next", "--detach")
    try:
        with Tmux(tmp_path, 80, 24) as tmux:
            before = stty(tmux, tmp_path / "before")
            watch(tmux, campaign, "; echo ended $?")
            wait_for(lambda: "GPU 1" in tmux.screen and "left" in tmux.screen and "steps/s" in tmux.screen)
            keep(tmux, "80x24")
            assert tmux.alternate and not tmux.cursor
            lines = tmux.lines
            assert len(lines) == 24 and any("GPU 0" in ln and "GPU 1" in ln for ln in lines)
            for fact in ("test", "0001-baseline-workload", "so far", "210 W", "1410/1593 MHz", "61 °C"):
                assert fact in tmux.screen, fact
            assert "loss" in tmux.screen and "train.log" in tmux.screen and "data wait" in tmux.screen

            for columns, height in ((200, 50), (40, 24), (80, 24)):
                tmux.resize(columns, height)
                wait_for(lambda columns=columns, height=height: fills(tmux, columns, height))
                keep(tmux, f"{columns}x{height}")
                assert "GPU 0" in tmux.screen and "q quits" in tmux.lines[-1]

            tmux.type("hello")
            tmux.press("C-z")
            wait_for(lambda: not tmux.alternate and "Stopped" in tmux.screen)
            assert tmux.cursor and "hello" not in tmux.screen
            assert stty(tmux, tmp_path / "stopped") == before
            tmux.shell("fg; echo ended $?")
            wait_for(lambda: tmux.alternate and "GPU 0" in tmux.screen)
            assert not tmux.cursor
            tmux.press("q")
            ended(tmux, 0)
            assert stty(tmux, tmp_path / "after") == before and tmux.cursor

            watch(tmux, campaign, "; echo ended $?")
            wait_for(lambda: "GPU 0" in tmux.screen)
            tmux.press("C-c")
            ended(tmux, 130)
            watch(tmux, campaign, " & echo $! > pid; fg; echo ended $?")
            wait_for(lambda: "GPU 0" in tmux.screen)
            os.kill(int((campaign.folder / "pid").read_text()), signal.SIGTERM)
            ended(tmux, 143)
            assert stty(tmux, tmp_path / "after") == before and tmux.cursor
    finally:
        stop(campaign)
    assert campaign.json("status")["running"] is False


def watch(tmux: Tmux, campaign: Campaign, then: str) -> None:
    words = shlex.join([*GPUDEBUG, "status", "--watch"])
    tmux.shell(f"cd {shlex.quote(str(campaign.folder))}; clear; {words}{then}")


def ended(tmux: Tmux, status: int) -> None:
    wait_for(lambda: not tmux.alternate and f"ended {status}" in tmux.lines)
    tmux.shell("clear")
    wait_for(lambda: "ended" not in tmux.screen)


def fills(tmux: Tmux, columns: int, height: int) -> bool:
    """Whether the screen was drawn for this size: its rule goes all across, and its foot is the last line."""
    lines = tmux.lines
    return len(lines) == height and "q quits" in lines[-1] and max(map(len, lines)) == columns


def keep(tmux: Tmux, name: str) -> None:
    """For whoever wants to look at it."""
    if folder := os.environ.get("KEEP_SCREENS"):
        Path(folder, f"{name}.txt").write_text(tmux.screen)


def stop(campaign: Campaign) -> None:
    from gpudebug.engine.cycle.detached import stop

    stop(campaign.folder)
