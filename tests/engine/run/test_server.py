"""The server of a workload: its port, its variables, its change, and what its log shows of a failure."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from gpudebug.core.change.intervention import parse
from gpudebug.core.change.permits import Allowed
from gpudebug.core.config import ServerSettings
from gpudebug.core.errors import InterventionError, LaunchError
from gpudebug.core.records import Failure
from gpudebug.core.redaction.redact import Redactor
from gpudebug.engine.run import server
from gpudebug.engine.run.job import PreparedRun, PreparedServer


@pytest.fixture
def prepared(tmp_path: Path) -> PreparedServer:
    settings = ServerSettings(command="serve --port={port} --steps=4", env={"BIND": "0.0.0.0:{port}"})
    found = server.prepared(settings, tmp_path)
    assert found is not None
    return found


def test_the_port_reaches_the_command_and_the_variables(prepared: PreparedServer, tmp_path: Path) -> None:
    spec = server.spec_of(prepared, prepared.env, tmp_path / "server.log", 4711, run="0001-x", run_dir="/r")
    assert spec.argv == ("serve", "--port=4711", "--steps=4")
    assert (spec.env["BIND"], spec.env["GPUDEBUG_SERVER_PORT"]) == ("0.0.0.0:4711", "4711")
    assert spec.ready == {"port": 4711}
    assert server.with_port(("ask", "{port}", "{run}"), 4711) == ("ask", "4711", "{run}")


def test_without_a_server_no_brace_is_touched() -> None:
    assert server.with_port(("ask", "{port}"), None) == ("ask", "{port}")
    env = {"A": "{port} {run_dir}/x", "B": "{run}"}
    found = server.variables_of_run(env, ("A",), None, run="0001-x", run_dir="/r")
    assert found == {"A": "{port} /r/x", "B": "{run}"}
    assert server.prepared(None, Path("/")) is None


def test_two_runs_at_once_have_ports_of_their_own(prepared: PreparedServer) -> None:
    assert server.port_of(prepared) > 0
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(LaunchError, match=f"port {port} is in use"):
            server.port_of(replace(prepared, port=port))


def test_a_hypothesis_changes_its_command(prepared: PreparedServer) -> None:
    changed = server.with_change(prepared, parse("--set --steps=2"), Allowed())
    assert changed is not None
    assert changed.argv == ("serve", "--port={port}", "--steps=2")
    assert server.with_change(prepared, None, Allowed()) is prepared
    with pytest.raises(InterventionError, match="there is no server to change"):
        server.with_change(None, parse("--set --steps=2"), Allowed())


def test_the_record_holds_no_secret(prepared: PreparedServer) -> None:
    told = replace(prepared, argv=("serve", "--api-key=hunter2hunter2"), env={"API_KEY": "hunter2hunter2"})
    found = server.recorded(told, Redactor(told.env, told.argv), {"ready_s": 1.5, "died": False})
    assert found is not None
    assert "hunter2" not in found.model_dump_json()
    assert found.ready_s == 1.5


def test_the_secrets_of_both_are_known_where_their_variables_have_one_name(
    prepared: PreparedServer, tmp_path: Path
) -> None:
    theirs = replace(prepared, env={"API_KEY": "of-the-server-1"})
    job = PreparedRun("x", "x", ("ask",), tmp_path, {"API_KEY": "of-the-client-2"}, server=theirs)
    text = server.redactor_of(job).redact("with of-the-server-1, then of-the-client-2")
    assert text == "with [redacted], then [redacted]"


def test_a_failure_ends_with_the_reason_and_the_last_line(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("".join(f"line {i}\n" for i in range(9)))
    found = server.failure_of(log, "the server was not ready after 5 s", None, Redactor())
    assert found.kind == "config"
    assert found.lines[-1] == "the server was not ready after 5 s: line 8"
    known = Failure(kind="oom_gpu", lines=("CUDA out of memory",))
    assert server.failure_of(log, "the server died", known, Redactor()).kind == "oom_gpu"
    absent = server.failure_of(tmp_path / "none", "the server died", None, Redactor())
    assert absent.lines == ("the server died",)
