"""An agent's process: its brief, its output, its end, and nothing left of it."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest
from tests.support.processes import fork, wait_until

from gpudebug.core.errors import LaunchError
from gpudebug.core.words import Outcome
from gpudebug.edges.launcher.agent import AgentEnded, AgentSpec, end_agent, run_agent
from gpudebug.edges.launcher.recovery import marked

IGNORING = "import signal; [signal.signal(n, signal.SIG_IGN) for n in (signal.SIGINT, signal.SIGTERM)];"


def spec_of(folder: Path, statement: str, **changes: object) -> AgentSpec:
    brief = folder / "brief.md"
    brief.write_text("# What to do\n")
    facts: dict[str, object] = {
        "argv": (sys.executable, "-c", statement),
        "cwd": str(folder),
        "env": dict(os.environ),
        "stdin": str(brief),
        "marker": str(folder),
        "timeout": 60.0,
        "ladder": (0.3, 0.3),
        **changes,
    }
    return AgentSpec(**facts)  # type: ignore[arg-type]


def run(folder: Path, statement: str, **changes: object) -> tuple[AgentEnded, str]:
    said: list[bytes] = []
    ended = run_agent(spec_of(folder, statement, **changes), said.append)
    assert not marked(str(folder))
    return ended, b"".join(said).decode()


def test_the_brief_is_its_standard_input_and_ends(tmp_path: Path) -> None:
    statement = (
        "import os,sys; print(sys.stdin.read(), end='', flush=True);"
        "print(sys.stdin.read() == '', file=sys.stderr);"
        "print(os.getcwd(), os.environ['GPUDEBUG_RUN'], os.getsid(0) == os.getpid(), file=sys.stderr);"
        "print(any(os.isatty(fd) for fd in (0, 1, 2)))"
    )
    ended, said = run(tmp_path, statement)
    assert said == f"# What to do\nTrue\n{tmp_path} {tmp_path} True\nFalse\n"
    assert (ended.outcome, ended.exit_status, ended.signal, ended.leaked) == (Outcome.COMPLETED, 0, None, 0)


def test_output_beyond_any_pipe_arrives_whole(tmp_path: Path) -> None:
    _, said = run(tmp_path, "print('x' * 3_000_000)")
    assert len(said) == 3_000_001


@pytest.mark.parametrize(
    ("statement", "status", "number"),
    [("raise SystemExit(3)", 3, None), ("import os; os.kill(os.getpid(), 9)", None, 9)],
)
def test_it_may_fail(tmp_path: Path, statement: str, status: int | None, number: int | None) -> None:
    ended, _ = run(tmp_path, statement)
    assert (ended.outcome, ended.exit_status, ended.signal) == (Outcome.CRASHED, status, number)


@pytest.mark.parametrize("statement", ["", IGNORING], ids=["heeds an interrupt", "heeds nothing"])
def test_its_time_is_limited(tmp_path: Path, statement: str) -> None:
    ended, _ = run(tmp_path, f"{statement}import time; time.sleep(60)", timeout=0.5)
    assert ended.outcome is Outcome.TIMED_OUT
    assert ended.signal in (signal.SIGINT, signal.SIGKILL)
    assert 0.5 <= ended.duration_s < 30


CHILD = (
    "import subprocess,sys; argv = [sys.executable, '-c', {child!r}];"
    "print(subprocess.Popen(argv, start_new_session=True{how}).pid, flush=True)"
)


def test_what_it_leaves_behind_is_ended(tmp_path: Path) -> None:
    child = f"{IGNORING} import time; time.sleep(60)"
    ended, _ = run(tmp_path, CHILD.format(child=child, how=""))
    assert (ended.outcome, ended.leaked) == (Outcome.COMPLETED, 1)


def test_a_run_without_its_marker_goes_on(tmp_path: Path) -> None:
    """As `next --detach` leaves one."""
    child = f"import time, pathlib; time.sleep(1); pathlib.Path({str(tmp_path / 'done')!r}).touch()"
    how = ", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={'PATH': ''}"
    ended, said = run(tmp_path, CHILD.format(child=child, how=how))
    assert ended.leaked == 0
    assert Path(f"/proc/{int(said)}").exists()
    wait_until((tmp_path / "done").exists)


def test_what_write_raises_passes_through_and_nothing_is_left(tmp_path: Path) -> None:
    def full(_: bytes) -> None:
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        run_agent(spec_of(tmp_path, "print('x', flush=True); import time; time.sleep(60)"), full)
    assert not marked(str(tmp_path))


@pytest.mark.parametrize(
    ("argv", "status"), [(("no-such-agent",), 127), (("./brief.md",), 126), (("./broken",), 126)]
)
def test_one_that_cannot_be_started_says_so(tmp_path: Path, argv: tuple[str, ...], status: int) -> None:
    (tmp_path / "broken").write_bytes(b"\x7fELF and nothing else")
    (tmp_path / "broken").chmod(0o755)
    with pytest.raises(LaunchError) as caught:
        run_agent(spec_of(tmp_path, "", argv=argv), lambda _: None)
    assert caught.value.status == status
    assert caught.value.next


def loop_in(folder: Path, statement: str) -> int:
    """A process that runs an agent and writes down how it ended; its pid."""

    def body() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        ended = run_agent(spec_of(folder, statement), lambda _: None)
        (folder / "ended").write_text(f"{ended.outcome} {ended.signal}")

    return fork(body)


READY = "import pathlib,time; pathlib.Path('ready').touch(); time.sleep(60)"


@pytest.mark.parametrize(
    ("statement", "presses", "said"),
    [(READY, 1, f"INTERRUPTED {int(signal.SIGINT)}"), (IGNORING + READY, 2, "INTERRUPTED 9")],
)
def test_ctrl_c_ends_it(tmp_path: Path, statement: str, presses: int, said: str) -> None:
    pid = loop_in(tmp_path, statement)
    wait_until((tmp_path / "ready").exists)
    for _ in range(presses):
        os.kill(pid, signal.SIGINT)
        time.sleep(0.1)
    assert os.waitpid(pid, 0)[1] == 0
    assert (tmp_path / "ended").read_text() == said
    assert not marked(str(tmp_path))


def test_it_ends_with_a_caller_that_was_killed(tmp_path: Path) -> None:
    pid = loop_in(tmp_path, READY)
    wait_until((tmp_path / "ready").exists)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    wait_until(lambda: not marked(str(tmp_path)))
    assert end_agent(str(tmp_path)) == []


def test_what_does_not_heed_it_is_ended_by_the_next_caller(tmp_path: Path) -> None:
    pid = loop_in(tmp_path, IGNORING + READY)
    wait_until((tmp_path / "ready").exists)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert len(end_agent(str(tmp_path))) == 1
    assert not marked(str(tmp_path))
