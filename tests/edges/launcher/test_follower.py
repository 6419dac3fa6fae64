"""What a job finds when it starts, and what is said of it when it ends."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import signal
import stat
import sys
import threading
import time
from pathlib import Path
from typing import Any, cast

import psutil
import pytest
from tests.support.processes import (
    Driver,
    job_argv,
    left_after,
    nobody_left,
    sampler_for,
    spec_for,
    wait_until,
)

from gpudebug.core.errors import DeviceError, LaunchError
from gpudebug.core.words import Outcome
from gpudebug.edges.launcher import Launched, LaunchSpec, Tick, launch
from gpudebug.edges.launcher.follower import PATIENCE_S, _FollowerState
from gpudebug.edges.launcher.interrupts import Interrupts
from gpudebug.edges.launcher.link import WardenLink


def run(tmp_path: Path, *argv: str, **changes: Any) -> Launched:
    return launch(spec_for(argv, tmp_path / "run", **changes))


def log(tmp_path: Path) -> str:
    return (tmp_path / "run/train.log").read_text()


def python(statement: str) -> tuple[str, ...]:
    return (sys.executable, "-S", "-c", statement)


ENDINGS = [
    ("exit 0", Outcome.COMPLETED, 0, None),
    ("exit 3", Outcome.CRASHED, 3, None),
    ("exit 130", Outcome.CRASHED, 130, None),
    ("kill -9 $$", Outcome.CRASHED, None, 9),
    ("kill -SEGV $$", Outcome.CRASHED, None, 11),
    ("kill -PIPE $$", Outcome.CRASHED, None, 13),
]


@pytest.mark.parametrize(("command", "outcome", "status", "number"), ENDINGS)
def test_the_leaders_status_is_the_runs(
    tmp_path: Path, command: str, outcome: Outcome, status: int | None, number: int | None
) -> None:
    before = time.monotonic()
    launched = run(tmp_path, "sh", "-c", command)
    assert (launched.outcome, launched.exit_status, launched.signal) == (outcome, status, number)
    assert (launched.leaked, launched.ladder, launched.reason, launched.sampler) == (0, None, None, None)
    assert before <= launched.t0 <= launched.t0 + launched.duration_s <= time.monotonic()


SHOW = """
import json, os, signal, stat
print(json.dumps({
  "stdin": os.read(0, 10).decode(), "stdin_is": os.readlink("/proc/self/fd/0"),
  "fds": sorted(os.listdir("/proc/self/fd")), "env": dict(os.environ), "cwd": os.getcwd(),
  "session": os.getsid(0) == os.getpid(), "umask": os.umask(0),
  "signals": [l for l in open("/proc/self/status") if l[:3] == "Sig"],
  "mode": oct(stat.S_IMODE(os.fstat(1).st_mode)), "argv0": open("/proc/self/cmdline").read().split("\\0")[0],
}))
"""


def test_what_the_job_finds(tmp_path: Path) -> None:
    launched = run(tmp_path, *python(SHOW), env={"PATH": os.environ["PATH"], "A": "ä b"})
    assert launched.outcome is Outcome.COMPLETED, log(tmp_path)
    seen = json.loads(log(tmp_path))
    assert (seen["stdin"], seen["stdin_is"]) == ("", "/dev/null")
    assert len(seen["fds"]) == 4, "0, 1, 2 and the listing's own"
    assert seen["session"]
    assert seen["mode"] == "0o600"
    assert seen["cwd"] == str(tmp_path / "run")
    assert seen["argv0"] == sys.executable
    assert float(seen["env"].pop("GPUDEBUG_T0")) == launched.t0
    assert seen["env"].pop("LC_CTYPE", None) in {None, "C.UTF-8"}  # Python's own doing
    assert seen["env"] == {
        "PATH": os.environ["PATH"],
        "A": "ä b",
        "PYTHONUNBUFFERED": "1",
        "GPUDEBUG_RUN": str(tmp_path / "run"),
    }


def test_signals_are_as_by_default_whatever_gpudebug_ignores(tmp_path: Path) -> None:
    ignored = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGCHLD)
    before = {number: signal.getsignal(number) for number in ignored}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGUSR2])
    try:
        for number in ignored[:-1]:
            signal.signal(number, signal.SIG_IGN)
        run(tmp_path, "grep", "^Sig[BI]", "/proc/self/status")
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in before.items():
            signal.signal(number, handler)
    masks = dict(line.split(":\t") for line in log(tmp_path).splitlines())
    assert {name: int(value, 16) for name, value in masks.items()} == {"SigBlk": 0, "SigIgn": 0}


@pytest.mark.parametrize(("given", "found"), [({}, "1"), ({"PYTHONUNBUFFERED": ""}, "")])
def test_python_is_unbuffered_unless_set(tmp_path: Path, given: dict[str, str], found: str) -> None:
    run(tmp_path, "sh", "-c", 'echo "<$PYTHONUNBUFFERED>"', env={"PATH": os.environ["PATH"], **given})
    assert log(tmp_path) == f"<{found}>\n"


def test_bytes_that_are_no_text_arrive_unchanged(tmp_path: Path) -> None:
    odd = os.fsdecode(b"\xff\xfe caf\xe9")
    run(tmp_path, "printenv", "ODD", env={"PATH": os.environ["PATH"], "ODD": odd}, cwd=str(tmp_path))
    assert (tmp_path / "run/train.log").read_bytes() == b"\xff\xfe caf\xe9\n"


def test_an_environment_far_larger_than_a_pipe(tmp_path: Path) -> None:
    env = {"PATH": os.environ["PATH"], **{f"V{n}": "x" * 100_000 for n in range(10)}}
    run(tmp_path, "sh", "-c", "echo ${#V9}", env=env)
    assert log(tmp_path) == "100000\n"


def test_a_script_without_a_first_line_runs_in_a_shell(tmp_path: Path) -> None:
    script = tmp_path / "train"
    script.write_text('echo "ran $1"\n')
    script.chmod(0o755)
    assert run(tmp_path, str(script), "here").exit_status == 0
    assert log(tmp_path) == "ran here\n"


def test_output_is_appended_and_both_streams_arrive(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/train.log").write_text("before\n")
    run(tmp_path, "sh", "-c", "echo out; echo err >&2")
    assert log(tmp_path) == "before\nout\nerr\n"


def test_too_many_arguments_are_a_launch_error(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="too long") as caught:
        run(tmp_path, "echo", "x" * 3_000_000)
    assert caught.value.status == 126


def test_a_file_that_is_no_program(tmp_path: Path) -> None:
    """The kernel alone can tell; it is found out after the warden has started."""
    program = tmp_path / "broken"
    program.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(100))
    program.chmod(0o755)
    with nobody_left([tmp_path / "run"]):
        try:
            assert run(tmp_path, str(program)).exit_status in {126, 127}  # a shell was tried, as execvp does
        except LaunchError as error:
            assert error.status == 126
        assert left_after([tmp_path / "run"]) == {}


@pytest.mark.parametrize("kind", ["fifo", "folder", "missing"])
def test_a_log_that_cannot_be_written(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "log"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path = tmp_path / "absent/log"
    with pytest.raises(LaunchError, match="cannot write") as caught:
        run(tmp_path, "true", log=str(path))
    assert caught.value.status == 125


def test_a_missing_command_starts_no_sampler(tmp_path: Path) -> None:
    with pytest.raises(LaunchError) as caught:
        run(tmp_path, "no-such-program", sampler=sampler_for(tmp_path / "run"))
    assert caught.value.status == 127
    assert not (tmp_path / "run/samples.csv").exists()


def test_the_tick_sees_the_log_grow_and_its_answer_stops_the_job(tmp_path: Path) -> None:
    ticks: list[Tick] = []

    def observe(tick: Tick) -> str | None:
        ticks.append(tick)
        return "STALLED no new step for 1 s" if tick.log_bytes >= 6 else None

    spec = spec_for(("sh", "-c", "echo first; exec sleep 60"), tmp_path / "run")
    launched = launch(spec, observe, poll=0.05)
    assert (launched.outcome, launched.reason, launched.signal, launched.ladder) == (
        Outcome.STALLED,
        "no new step for 1 s",
        signal.SIGINT,
        "interrupt",
    )
    assert ticks[-1].log_bytes == 6
    assert all(a.elapsed < b.elapsed for a, b in itertools.pairwise(ticks))


def test_a_defect_of_the_observer_still_ends_the_tree(tmp_path: Path) -> None:
    def observe(tick: Tick) -> str | None:
        raise ZeroDivisionError

    folder = tmp_path / "run"
    with nobody_left([folder]):
        with pytest.raises(ZeroDivisionError):
            launch(spec_for(job_argv("loader_workers", "stay", folder), folder), observe, poll=0.1)
        assert left_after([folder]) == {}


def test_ctrl_c_before_the_launch_launches_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with nobody_left([folder]):
        driver = Driver(
            spec_for(job_argv("obedient", "stay", folder), folder, sampler=sampler_for(folder, "silent"))
        )
        wait_until(driver.sampler)
        os.kill(driver.pid, signal.SIGINT)
        assert driver.wait() == 0
        result = driver.launched()
        assert (result["outcome"], result["exit_status"], result["duration_s"]) == ("INTERRUPTED", None, 0)
        assert not (folder / "pids").exists()
        assert left_after([folder]) == {}


def test_off_the_main_thread(tmp_path: Path) -> None:
    found: list[Launched] = []
    thread = threading.Thread(target=lambda: found.append(run(tmp_path, "sh", "-c", "exit 4")))
    thread.start()
    thread.join()
    assert found[0].exit_status == 4


def test_locks_are_held_until_the_end_and_never_seen_by_the_job(tmp_path: Path) -> None:
    """gpudebug dies; the lock must stay with the warden until its tree is gone, and no longer."""
    folder = tmp_path / "run"
    folder.mkdir()
    path = folder / "lock"
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(fd, fcntl.LOCK_EX)
    argv = ("sh", "-c", "ls -l /proc/self/fd; touch ready; exec sleep 60")
    with nobody_left([folder]):
        driver = Driver(spec_for(argv, folder, hold_fds=(fd,), sampler=sampler_for(folder)))
        os.close(fd)
        wait_until((folder / "ready").exists)
        warden, sampler = driver.warden(), driver.sampler()
        assert warden is not None and sampler is not None
        assert str(path) in _open_files(warden)
        assert str(path) not in _open_files(sampler)
        assert str(path) not in log(tmp_path)
        assert not _free(path)
        driver.kill()
        assert left_after([folder]) == {}
        wait_until(lambda: _free(path), within=2.0)


def _open_files(process: psutil.Process) -> set[str]:
    return {os.readlink(f"/proc/{process.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{process.pid}/fd")}


def _free(path: Path) -> bool:
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def test_hundreds_of_megabytes_cost_us_nothing(tmp_path: Path) -> None:
    """One line of 300 MB and then many short ones: nobody but the file takes them in."""
    folder = tmp_path / "run"
    statement = (
        "import os\n"
        "for _ in range(300): os.write(1, b'x' * 1048576)\n"
        "os.write(1, b'y\\n' * 1000000)\n"
        "open('written', 'w').close()\n"
        "import time; time.sleep(0.3)\n"
    )
    largest: dict[str, float] = {}
    driver = Driver(spec_for(python(statement), folder))
    wait_until(driver.warden)
    start = psutil.Process(driver.pid).memory_info().rss
    while not (folder / "written").exists():
        warden = driver.warden()
        assert warden is not None
        largest["warden"] = max(largest.get("warden", 0), warden.memory_info().rss)
        largest["launcher"] = max(
            largest.get("launcher", 0), psutil.Process(driver.pid).memory_info().rss - start
        )
        time.sleep(0.02)
    assert driver.wait() == 0
    size = (folder / "train.log").stat().st_size
    (folder / "train.log").unlink()
    assert size == 300 * 1048576 + 2_000_000
    assert largest["warden"] < 40e6
    assert largest["launcher"] < 5e6


def test_a_flood_is_cut_off(tmp_path: Path) -> None:
    launched = run(tmp_path, "yes", max_output=5_000_000, ladder=(30.0, 30.0))
    size = (tmp_path / "run/train.log").stat().st_size
    (tmp_path / "run/train.log").unlink()
    assert (launched.outcome, launched.ladder) == (Outcome.OUTPUT_LIMIT, "kill")
    assert launched.duration_s < 10
    assert size > 5_000_000


def test_truncating_the_log_earns_no_new_allowance(tmp_path: Path) -> None:
    statement = (
        "import os, time\n"
        "while True:\n"
        "    os.write(1, b'x' * 100000); time.sleep(0.3); os.ftruncate(1, 0); time.sleep(0.3)\n"
    )
    launched = run(tmp_path, *python(statement), max_output=250_000, timeout=30.0)
    assert launched.outcome is Outcome.OUTPUT_LIMIT
    assert launched.reason == "more than 250000 bytes of output"


LOGS_SIGNALS = """
import os, signal, time
def tell(number, frame):
    os.write(1, f"{signal.Signals(number).name} {time.monotonic()}\\n".encode())
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCONT, signal.SIGHUP):
    signal.signal(number, tell)
os.write(1, b"up\\n")
while True: time.sleep(60)
"""


def test_the_ladder_in_its_order(tmp_path: Path) -> None:
    launched = run(tmp_path, *python(LOGS_SIGNALS), timeout=0.6, ladder=(0.5, 0.5))
    assert (launched.outcome, launched.ladder, launched.signal) == (Outcome.TIMED_OUT, "kill", signal.SIGKILL)
    lines = [line.split() for line in log(tmp_path).splitlines() if not line.startswith(("up", "SIGCONT"))]
    assert [name for name, _ in lines] == ["SIGINT", "SIGTERM"]
    # Each rung is counted from when the one before was sent; on a busy machine a job hears of it later.
    interrupt, terminate = (float(at) - launched.t0 for _, at in lines)
    assert interrupt >= 0.6
    assert terminate >= 1.1
    assert launched.duration_s >= 1.6


def test_a_job_that_ends_on_terminate(tmp_path: Path) -> None:
    launched = run(tmp_path, "sh", "-c", "trap '' INT; sleep 60 & wait", timeout=0.3)
    assert (launched.ladder, launched.signal) == ("terminate", signal.SIGTERM)


def test_a_job_that_kills_its_parent_is_ended_all_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    command = "setsid sleep 60 & trap '' TERM INT; kill -9 $PPID; sleep 60"
    with nobody_left([folder]):
        launched = run(tmp_path, "sh", "-c", command)
        assert (launched.outcome, launched.reason) == (Outcome.INTERRUPTED, "warden lost")
        assert left_after([folder]) == {}


def test_a_job_that_stops_its_parent_can_still_be_interrupted(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    argv = ("sh", "-c", "touch ready; kill -STOP $PPID; sleep 60")
    with nobody_left([folder]):
        driver = Driver(spec_for(argv, folder))
        wait_until((folder / "ready").exists)
        time.sleep(0.2)
        os.kill(driver.pid, signal.SIGINT)
        assert driver.wait() == 0
        assert driver.launched()["outcome"] == "INTERRUPTED"
        assert left_after([folder]) == {}


def test_a_sampler_that_refuses_is_a_device_error(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="no device") as caught:
        run(
            tmp_path,
            *job_argv("obedient", "leave", tmp_path / "run"),
            sampler=sampler_for(tmp_path / "run", "error"),
        )
    assert caught.value.next == "plug one in"
    assert not (tmp_path / "run/pids").exists()


def test_a_sampler_that_dies_early_says_its_last_words(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match=r"signal 6 before the launch.*terrible things"):
        run(tmp_path, "true", sampler=sampler_for(tmp_path / "run", "crash_early"))


def test_nothing_changes_in_the_calling_process(tmp_path: Path) -> None:
    handler = signal.getsignal(signal.SIGINT)
    fds = set(os.listdir("/proc/self/fd"))
    for _ in range(3):
        run(tmp_path, "true", sampler=sampler_for(tmp_path / "run"))
    assert signal.getsignal(signal.SIGINT) is handler
    assert set(os.listdir("/proc/self/fd")) == fds
    assert stat.S_IMODE((tmp_path / "run/train.log").stat().st_mode) == 0o600


def test_spec_has_the_documented_ladder() -> None:
    spec = LaunchSpec(argv=("true",), cwd="/", env={}, log="/l", marker="m")
    assert (spec.ladder, spec.timeout, spec.max_output, spec.hold_fds) == ((5.0, 5.0), None, None, ())


class Silent:
    """A warden that is suspended."""

    def command(self, text: str) -> None:
        pass


def test_a_run_that_was_suspended_as_it_was_to_end_took_no_hours(tmp_path: Path) -> None:
    spec, interrupts = spec_for(("true",), tmp_path / "run"), Interrupts()
    state = _FollowerState(spec, interrupts, cast(WardenLink, Silent()))
    state.started = {"t0": time.monotonic() - 5}
    state.final = {**FINAL, "t0": state.started["t0"], "duration_s": 7200.0}
    assert state.result().duration_s == 7200.0
    interrupts.count = 1
    state.heed()
    allowed = state.ladders(spec.ladder) + spec.give_up + PATIENCE_S
    assert state.result().duration_s == pytest.approx(5 + allowed, abs=1)


FINAL = {
    **dict.fromkeys(("exit_status", "signal", "reason", "sampler", "ladder")),
    "outcome": "INTERRUPTED",
    "leaked": 0,
    "counted": {},
}
