"""A server that the job needs: waited for, watched, ended after it, and never left behind."""

from __future__ import annotations

import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.places import SUPPORT
from tests.support.processes import WITNESS, Driver, left_after, spec_for, wait_until

from gpudebug.core.errors import LaunchError
from gpudebug.core.words import Outcome
from gpudebug.edges.launcher import Launched, LaunchSpec, ServerSpec, free_port, launch, taken
from gpudebug.edges.launcher.warden.serving import KILLED_S, ServerProcess


def spec_of(
    tmp_path: Path, *words: str, requests: int = 20, client: tuple[str, ...] = (), **changes: Any
) -> LaunchSpec:
    """The client `ask.py` beside the server `serve.py`, which is given `words`."""
    port = free_port()
    ready = changes.pop("ready", {})
    env = {"PATH": os.environ["PATH"], WITNESS: str(tmp_path / "run")}
    server = ServerSpec(
        argv=changes.pop("server", (sys.executable, str(SUPPORT / "serve.py"), f"--port={port}", *words)),
        cwd=str(tmp_path),
        env=env,
        log=str(tmp_path / "run/server.log"),
        ready={**ready, "port": port},
        timeout=changes.pop("patience", 20.0),
    )
    argv = client or (sys.executable, str(SUPPORT / "ask.py"), f"--port={port}", f"--requests={requests}")
    return spec_for(argv, tmp_path / "run", env=env, server=server, **changes)


def served(tmp_path: Path, *words: str, **changes: Any) -> Launched:
    return launch(spec_of(tmp_path, *words, **changes))


def text(tmp_path: Path, name: str) -> str:
    return (tmp_path / "run" / name).read_text()


@pytest.mark.parametrize(
    "ready", [{}, {"http": "/health"}, {"log": "startup complete"}], ids=["port", "http", "log"]
)
def test_the_job_starts_once_the_server_is_ready(tmp_path: Path, ready: dict[str, str]) -> None:
    found = served(tmp_path, "--load=0.4", ready=ready)
    assert (found.outcome, found.exit_status, found.reason, found.leaked) == (Outcome.COMPLETED, 0, None, 0)
    assert found.server is not None
    assert found.server["ready_s"] >= 0.4
    assert found.server["died"] is False
    assert "latency: " in text(tmp_path, "train.log")
    assert "startup complete" in text(tmp_path, "server.log")
    assert "startup complete" not in text(tmp_path, "train.log")
    assert left_after([tmp_path / "run"]) == {}


def test_what_an_earlier_server_printed_makes_none_ready(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, "--load=0.4", ready={"log": "startup complete"})
    assert spec.server is not None
    log = Path(spec.server.log)
    log.parent.mkdir(exist_ok=True)
    log.write_text("startup complete\n")
    found = launch(spec)
    assert found.server is not None
    assert found.server["ready_s"] >= 0.4


def test_a_server_that_never_gets_ready_is_ended_and_named(tmp_path: Path) -> None:
    found = served(tmp_path, "--fault=never", patience=0.5)
    assert found.outcome is Outcome.TIMED_OUT
    assert (found.reason or "").startswith(
        "the server was not ready after 0.5 s: nothing accepts a connection on port "
    )
    assert (found.duration_s, text(tmp_path, "train.log")) == (0.0, "")


@pytest.mark.parametrize(
    ("ready", "says"),
    [
        ({"http": "/health"}, "http://localhost:{port}/health does not answer"),
        ({"log": "loaded"}, "its output does not match 'loaded'"),
    ],
)
def test_what_did_not_come_is_said(tmp_path: Path, ready: dict[str, str], says: str) -> None:
    found = served(tmp_path, "--fault=never", patience=0.3, ready=ready)
    assert says.partition("{port}")[2] in (found.reason or "")


def test_a_server_that_ends_before_it_is_ready_ends_the_run(tmp_path: Path) -> None:
    found = served(tmp_path, "--fault=import")
    assert (found.outcome, found.exit_status) == (Outcome.CRASHED, 1)
    assert found.reason == "the server ended with status 1 before it was ready"
    assert "No module named 'the_model'" in text(tmp_path, "server.log")


def test_a_server_that_dies_in_the_run_fails_it(tmp_path: Path) -> None:
    found = served(tmp_path, "--fault=dies", requests=1000)
    assert (found.outcome, found.exit_status, found.signal) == (Outcome.CRASHED, 1, None)


def test_a_client_that_waits_for_a_dead_server_is_ended(tmp_path: Path) -> None:
    found = served(
        tmp_path,
        server=(sys.executable, "-c", _LISTENS_AND_DIES, str(tmp_path)),
        ready={"log": "up"},
        client=("sh", "-c", "touch began; sleep 600"),
        cwd=str(tmp_path),
    )
    assert (found.outcome, found.exit_status, found.signal) == (Outcome.CRASHED, None, 9)
    assert found.reason == "the server was ended by SIGKILL before the workload did"


_LISTENS_AND_DIES = """
import os, sys, time
print("up", flush=True)
while not os.path.exists(sys.argv[1] + "/began"):
    time.sleep(0.05)
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("fault", ["deaf", "children"])
def test_nothing_of_a_server_is_left(tmp_path: Path, fault: str) -> None:
    found = served(tmp_path, f"--fault={fault}", ladder=(0.2, 0.2))
    assert (found.outcome, found.exit_status) == (Outcome.COMPLETED, 0)
    assert found.leaked == (fault == "children")
    assert left_after([tmp_path / "run"]) == {}


@pytest.mark.parametrize("killed", ["gpudebug", "warden"])
def test_a_server_does_not_outlive_those_who_watch_it(tmp_path: Path, killed: str) -> None:
    driver = Driver(spec_of(tmp_path, client=("sh", "-c", "touch began; sleep 600"), cwd=str(tmp_path)))
    wait_until((tmp_path / "began").exists, 30)
    warden = driver.warden()
    assert warden is not None
    if killed == "gpudebug":
        driver.kill()
    else:
        warden.kill()
        assert driver.wait() == 0
        assert driver.launched()["outcome"] == "INTERRUPTED"
    assert left_after([tmp_path / "run"]) == {}


def test_how_a_server_ends_after_the_job_decides_nothing(tmp_path: Path) -> None:
    argv = ("sh", "-c", "trap 'exit 7' INT TERM; echo up; while :; do sleep 0.05; done")
    found = served(tmp_path, server=argv, ready={"log": "up"}, client=("true",))
    assert (found.outcome, found.exit_status) == (Outcome.COMPLETED, 0)
    assert found.server is not None
    assert (found.server["exit_status"], found.server["died"]) == (7, False)


def test_a_job_that_fails_is_what_failed(tmp_path: Path) -> None:
    found = served(tmp_path, client=("sh", "-c", "exit 3"))
    assert (found.outcome, found.exit_status, found.reason) == (Outcome.CRASHED, 3, None)


def test_a_time_limit_counts_from_the_jobs_launch(tmp_path: Path) -> None:
    found = served(tmp_path, "--load=0.8", client=("sleep", "60"), timeout=0.5, ladder=(0.5, 0.5))
    assert (found.outcome, found.reason) == (Outcome.TIMED_OUT, "not done after 0.5 s")
    assert left_after([tmp_path / "run"]) == {}


@pytest.mark.parametrize("words", [("/no/such/server",), ("no-such-server-anywhere",)])
def test_a_server_that_is_not_there_is_an_error_before_anything_runs(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    with pytest.raises(LaunchError, match="no"):
        served(tmp_path, server=words)
    assert not (tmp_path / "run/train.log").exists()


def test_a_server_that_floods_its_log_ends_the_run(tmp_path: Path) -> None:
    argv = ("sh", "-c", "echo up; while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done")
    found = served(
        tmp_path,
        server=argv,
        ready={"log": "up"},
        client=("sleep", "60"),
        max_output=200_000,
        ladder=(0.3, 0.3),
    )
    assert found.outcome is Outcome.OUTPUT_LIMIT


def test_a_server_that_floods_its_log_before_it_is_ready_ends_the_run(tmp_path: Path) -> None:
    argv = ("sh", "-c", "while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done")
    found = served(tmp_path, server=argv, client=("true",), max_output=200_000, patience=20.0)
    assert found.outcome is Outcome.OUTPUT_LIMIT
    assert found.reason == "the server printed more than max_output before it was ready"
    assert left_after([tmp_path / "run"]) == {}


def test_a_server_that_not_even_a_kill_ends_is_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda pid, number: sent.append(number))
    server = ServerProcess({"ladder": [2.0, 3.0]})
    server.pid = 4711
    now = 100.0
    while not server.outlasts(now):
        now += max(server.ladder(now), 0.001)
    assert [number for number in sent if number != signal.SIGCONT] == [
        signal.SIGINT,
        signal.SIGTERM,
        signal.SIGKILL,
    ]
    assert now == pytest.approx(100 + 2 + 3 + KILLED_S, abs=0.2)


def test_a_port_is_free_or_taken() -> None:
    with socket.socket() as here:
        here.bind(("127.0.0.1", 0))
        here.listen()
        assert taken(here.getsockname()[1])
    assert not taken(free_port())
