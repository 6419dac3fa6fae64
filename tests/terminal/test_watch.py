"""The picture of a running trial: what must be seen, at every size, of every state, with nothing hostile."""

from __future__ import annotations

import math
import unicodedata
from dataclasses import replace
from typing import Any

import pytest

from gpudebug.core.answers.status import NextAction, RunProgress
from gpudebug.core.samples.live import DeviceNow, HostNow
from gpudebug.engine.live.underway import RunningCommand
from gpudebug.engine.status.watch import Sight, WatchedDevice, WatchState
from gpudebug.terminal.watch import frame, line

SIZES = [(80, 24), (200, 50), (40, 24), (40, 10), (20, 5), (120, 12), (1, 1), (3, 80), (500, 3)]


def device(index: int = 0, **changes: Any) -> WatchedDevice:
    facts: dict[str, Any] = {
        "index": index,
        "uuid": f"GPU-{index}",
        "gpu_util": 63.2,
        "mem_used_mb": 34900.0,
        "mem_total_mb": 81920.0,
        "power_w": 212.3,
        "sm_clock_mhz": 1410.0,
        "mem_clock_mhz": 1593.0,
        "temperature_c": 61.0,
        "trace": tuple(50 + 40 * math.sin(n / 9) for n in range(120)),
        **changes,
    }
    return WatchedDevice(DeviceNow(**facts), "NVIDIA A100-SXM4-80GB", "nvml", None, 400.0)


RUNNING = Sight(
    "rtc",
    "02:14:07",
    WatchState.RUNNING,
    RunningCommand(4711, "gpudebug next --detach", "abc", "2026-11-21T02:10:00"),
    RunProgress(
        run="0007-h3",
        role="h3",
        hypothesis=3,
        step=1240,
        steps=5000,
        left_s=760.0,
        elapsed_s=250.0,
        gpu_util=61.2,
        loss=0.1234,
        runs_done=2,
    ),
    title="Too few loader workers",
    baseline={"gpu util": "27.4% (95% CI 26.1 to 28.6, 4 runs)", "throughput": "3.2 steps/s"},
    step_unit="step",
    steps_per_s=6.13,
    quiet_s=0.4,
    loss_trend="CONVERGING",
    losses=tuple(2 / (1 + n / 10) for n in range(60)),
    data_wait_share=0.34,
    devices=(device(),),
    host=HostNow(312.0, 4200.0, 12.3, 0.1),
    log=tuple(f"step {n}/5000 loss 0.5" for n in range(1141, 1241)),
    log_bytes=13 << 20,
    log_age_s=0.4,
    samples_age_s=0.2,
)
NEXT = NextAction(action="test", hypothesis=4, role=None, why="hypothesis 4 is untested")
IDLE = replace(RUNNING, state=WatchState.IDLE, holder=None, outcome="COMPLETED", next=NEXT)
EMPTY = Sight("rtc", "02:14:07", next=replace(NEXT, action="record_baseline", why="there is none"))
STATES = {
    "running": RUNNING,
    "two": replace(RUNNING, devices=(device(), device(1, throttle="sw_power_cap"))),
    "eight": replace(RUNNING, devices=tuple(map(device, range(8)))),
    "cpu": replace(
        RUNNING, devices=(WatchedDevice(DeviceNow(0, "CPU", 42.0, 512.0, trace=(1.0,)), "AMD", "cpu", 8.0),)
    ),
    "unknown": replace(
        RUNNING,
        progress=RunProgress(run="0001-baseline-workload", role="baseline-workload"),
        title=None,
        losses=(),
        loss_trend=None,
        steps_per_s=None,
        data_wait_share=None,
        quiet_s=None,
        host=HostNow(),
        devices=(WatchedDevice(DeviceNow(0, "GPU-0")),),
        log=(),
        log_bytes=0,
    ),
    "no devices": replace(RUNNING, devices=(), log_bytes=None, log=()),
    "starting": Sight("rtc", "02:14:07", WatchState.STARTING, RUNNING.holder),
    "between": replace(RUNNING, state=WatchState.BETWEEN, outcome="COMPLETED", next=NEXT),
    "idle": IDLE,
    "crashed": replace(IDLE, outcome="CRASHED", reason="oom_gpu"),
    "unfinished": replace(IDLE, state=WatchState.UNFINISHED, outcome=None),
    "empty": EMPTY,
    "problem": replace(EMPTY, next=None, problems=("runs/0001-h1/run.json: not readable as JSON",)),
}


def text(sight: Sight, width: int = 80, height: int = 24, unicode: bool = True) -> str:
    return frame(sight, width, height, unicode).plain


def flat(sight: Sight, width: int = 80, height: int = 24) -> str:
    return " ".join(text(sight, width, height).split())


@pytest.mark.parametrize("unicode", [True, False])
@pytest.mark.parametrize("sight", STATES.values(), ids=STATES)
def test_it_fits_every_terminal(sight: Sight, unicode: bool) -> None:
    for width, height in SIZES:
        lines = text(sight, width, height, unicode).split("\n")
        assert len(lines) <= height, (width, height)
        assert max(map(len, lines)) <= width, (width, height)
        assert unicode or all(ln.isascii() for ln in lines)


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_running_trial_tells_all_that_matters(width: int) -> None:
    seen = flat(RUNNING, width, 40)
    for fact in (
        *("rtc", "02:14:07", "0007-h3", "hypothesis 3: Too few loader workers", "2 runs done"),
        *("step 1240/5000", "24%", "4 min 10 s elapsed", "12 min 40 s left"),
        *("% last 30 s (baseline 27.4%)", "61.2% so far", "6.13 steps/s (baseline 3.2 steps/s)"),
        *("loss 0.123 CONVERGING", "data wait 34%", "host 3.1 cores, 4.1 GiB"),
        "disk 12.3 read, 0.1 written MB/s",
        *("GPU 0 NVIDIA A100", "util 63.2%", "34.1/80.0 GiB", "43%", "212/400 W", "61 °C", "1410/1593 MHz"),
        *("train.log, 13.0 MB", "step 1240/5000 loss 0.5", "q quits", "last 2 min"),
    ):
        assert fact in seen, fact


def test_devices_stand_side_by_side_where_there_is_room() -> None:
    two = STATES["two"]
    assert any("GPU 0" in ln and "GPU 1" in ln for ln in text(two, 80).split("\n"))
    narrow = text(two, 50, 60).split("\n")
    assert [ln.count("NVIDIA") for ln in narrow if "NVIDIA" in ln] == [1, 1]
    assert "throttled: sw_power_cap" in text(two)
    (low,) = (ln for ln in text(two, 80, 12).split("\n") if ln.startswith("GPU 1"))
    assert "throttled" in low
    eight = text(STATES["eight"], 200, 50).split("\n")
    assert [ln.count("NVIDIA") for ln in eight if "NVIDIA" in ln] == [5, 3]


def test_many_devices_have_a_line_each_and_the_log_has_some() -> None:
    lines = text(STATES["eight"]).split("\n")
    assert [ln[:5] for ln in lines if ln.startswith("GPU")] == [f"GPU {n}" for n in range(8)]
    assert all("63.2%" in ln and "34.1/80.0 GiB" in ln for ln in lines if ln.startswith("GPU"))
    assert sum(ln.startswith("step 1") and "loss" in ln for ln in lines) >= 3
    assert "and 6 more devices" in text(STATES["eight"], 80, 9)


def test_of_too_many_devices_the_idlest_are_shown() -> None:
    devices = tuple(device(n, gpu_util=3.7 if n == 6 else 99.0) for n in range(8))
    low = text(replace(RUNNING, devices=devices), 80, 9)
    assert "GPU 6" in low
    assert "and 6 more devices" in low


def test_a_mean_that_hides_a_device_is_shown_with_its_ends() -> None:
    devices = tuple(
        device(n, gpu_util=3.7 if n == 0 else 99.0, trace=(3.7 if n == 0 else 99.0,) * 60) for n in range(8)
    )
    unlike = replace(RUNNING, devices=devices)
    assert "(least 3.7% GPU 0, most 99.0% GPU 1)" in flat(unlike)
    assert "util 87.1% (least 3.7% GPU 0, most 99.0% GPU 1)" in line(unlike)
    assert "least" not in flat(STATES["eight"])


def test_a_throttled_device_is_named_and_one_at_its_power_limit_is_not() -> None:
    devices = (device(0, throttle="sw_power_cap"), device(1, throttle="sw_power_cap+hw_thermal"))
    seen = flat(replace(RUNNING, devices=devices))
    assert "GPU 1 is throttled: hw_thermal" in seen
    assert "GPU 0 is throttled" not in seen


def test_what_is_unknown_is_said_and_never_zero() -> None:
    seen = flat(STATES["unknown"])
    for fact in (
        "no step yet",
        "util unknown last 30 s",
        "rate unknown",
        "loss unknown",
        "data wait unknown",
    ):
        assert fact in seen
    for fact in ("util unknown", "memory unknown", "power unknown", "clocks unknown", "nothing printed yet"):
        assert fact in seen
    assert "baseline workload" in seen and "0%" not in seen and "0.0" not in seen
    assert "no device has been read yet" in flat(STATES["no devices"])


def test_the_cpu_is_never_taken_for_a_gpu() -> None:
    seen = flat(STATES["cpu"])
    assert (
        "CPU stand-in, 8 cores" in seen and "a CPU reports no power or clocks" in seen and "GPU 0" not in seen
    )


def test_what_somebody_must_not_miss() -> None:
    assert "no step for" not in flat(RUNNING)
    assert "no step for 2 min 10 s" in flat(replace(RUNNING, quiet_s=130.0))
    assert "no step for" not in flat(replace(RUNNING, quiet_s=130.0, steps_per_s=0.01))
    assert "no reading of the device for 12.0 s: these figures are old" in flat(
        replace(RUNNING, samples_age_s=12.0)
    )
    busy = replace(RUNNING, devices=(device(foreign_procs=2),))
    assert "GPU 0: 2 other processes on it" in flat(busy)
    lost = replace(RUNNING, progress=replace(RUNNING.progress, loss=float("nan")), loss_trend="NAN")
    assert "loss nan NAN" in flat(lost)


def test_where_no_run_goes_on_it_says_what_next_would_do() -> None:
    assert "Nothing is under way. Next: test: hypothesis 4 is untested" in flat(IDLE)
    assert "Last run: 0007-h3 COMPLETED" in flat(IDLE) and "left" not in flat(IDLE)
    assert "CRASHED (oom_gpu)" in flat(STATES["crashed"])
    assert "Run 0007-h3 is unfinished: nothing works on it any more." in flat(STATES["unfinished"])
    assert "no outcome" in flat(STATES["unfinished"])
    assert "ended COMPLETED, between runs" in flat(STATES["between"])
    assert "Next: test: hypothesis 4 is untested" in flat(STATES["between"])
    assert "`gpudebug next --detach`, PID 4711, session abc: no run has begun yet" in flat(STATES["starting"])
    assert "Next: record_baseline: there is none" in flat(EMPTY) and "Last run" not in flat(EMPTY)
    assert "run.json: not readable as JSON" in flat(STATES["problem"])


def test_nothing_hostile_reaches_the_terminal() -> None:
    bad = "\x1b[2J\x1b]0;t\x07[bold]x[/]\u202ey\r\n\x9b1mz"
    holder = RunningCommand(1, bad, bad, bad)
    progress = replace(RUNNING.progress, run="0001-h1")
    sight = Sight(bad, "02:14:07", WatchState.RUNNING, holder, progress, bad, {"gpu util": bad}, bad, bad)
    gpu = replace(device(throttle=bad), name=bad)
    sight = replace(sight, devices=(gpu,), log=(bad,), log_bytes=1, problems=(bad,), loss_trend=bad)
    for state in WatchState:
        seen = text(replace(sight, state=state, next=replace(NEXT, action=bad, why=bad)), 100, 40)
        assert "[bold]x[/]y" in seen
        assert all(c == "\n" or unicodedata.category(c)[0] != "C" for c in seen)
        assert "\x1b" not in line(replace(sight, state=state)) and "\n" not in line(sight)


def test_wide_letters_are_counted_by_what_they_take() -> None:
    from rich.cells import cell_len

    wide = replace(RUNNING, title="模型训练" * 20, campaign="模型" * 30, log=("数据" * 80,))
    assert all(cell_len(ln) <= 80 for ln in text(wide).split("\n"))


def test_a_line_for_a_pipe() -> None:
    assert line(RUNNING) == (
        "0007-h3  4 min 10 s  step 1240/5000  loss 0.123  util 63.2%  6.13 steps/s  data wait 34%  "
        "12 min 40 s left"
    )
    ended = (
        "Nothing is under way.  Last run: 0007-h3: CRASHED (oom_gpu).  Next: test: hypothesis 4 is untested"
    )
    assert line(STATES["crashed"]) == ended
    assert line(STATES["starting"]).endswith("no run has begun yet")
    assert line(STATES["unknown"]) == "0001-baseline-workload  no step yet  util unknown"
    assert line(STATES["problem"]).endswith("not readable as JSON")
    assert line(STATES["between"]).endswith("COMPLETED")
