"""The server that a workload needs, from its settings to what the warden starts, and what its log shows."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from gpudebug.core.campaign.accepted_changes import no_server
from gpudebug.core.change.intervention import Applied, Intervention
from gpudebug.core.change.permits import Allowed
from gpudebug.core.config import ServerSettings, expand_text
from gpudebug.core.config.runners import PORT, PORT_VARIABLE
from gpudebug.core.errors import LaunchError, StoreError
from gpudebug.core.records import Failure, RunRecord
from gpudebug.core.records.parts import ServerRun
from gpudebug.core.redaction.redact import Redactor
from gpudebug.edges import launcher, store
from gpudebug.engine.campaign.files import training_environment
from gpudebug.engine.run.import_paths import Trees, placed
from gpudebug.engine.run.job import PreparedRun, PreparedServer

ENDED = "the server "
"""How the reason of a run begins that its server ended."""
LAST_LINES = 5
_TAIL = 1 << 14
_SHOWN = 120


def prepared(server: ServerSettings | None, root: Path, trees: Trees | None = None) -> PreparedServer | None:
    """The server of a workload whose campaign, or working tree, is at `root`; None if it needs none."""
    if server is None:
        return None
    cwd, env = root / server.cwd, training_environment(server)
    command = (
        Applied(server.argv(), env) if trees is None else placed(server.argv(), env, server.env, cwd, trees)
    )
    return PreparedServer(
        argv=command.argv,
        cwd=cwd,
        env=command.env,
        env_names=tuple(sorted(server.env)),
        ready=server.ready,
        port=server.port,
        timeout=server.timeout,
        shell=server.shell,
    )


def with_change(
    server: PreparedServer | None, change: Intervention | None, allowed: Allowed
) -> PreparedServer | None:
    """The server with what a hypothesis changes of it. InterventionError if there is none, or no effect."""
    if change is None:
        return server
    if server is None:
        raise no_server(change)
    made = change.apply(server.argv, dict(server.env), allowed)
    names = {name for name, value in made.env.items() if value != server.env.get(name)}
    return replace(server, argv=made.argv, env=made.env, env_names=tuple(sorted({*server.env_names, *names})))


def redactor_of(job: PreparedRun) -> Redactor:
    """Return what knows the secrets of a job's surroundings, and of its server's."""
    if job.server is None:
        return Redactor(job.env, job.argv)
    theirs = job.server.env
    # Both may have a variable of one name, with a secret each.
    other = {f"SERVER_{name}": value for name, value in theirs.items() if job.env.get(name, value) != value}
    return Redactor({**theirs, **job.env, **other}, (*job.argv, *job.server.argv))


def port_of(server: PreparedServer) -> int:
    """Return the port that it gets. Raises LaunchError if another program has it already."""
    asked = server.ready.get("port") if server.port is None else server.port
    if asked is None:
        return launcher.free_port()
    if launcher.taken(int(asked)):
        raise LaunchError(
            f"port {asked} is in use: what listens there would be measured instead of the server",
            status=125,
            next="end that program, or leave server.port out and write {port} in both commands",
        )
    return int(asked)


def with_port(words: Sequence[str], port: int | None) -> tuple[str, ...]:
    """Return the words with `{port}` replaced; as they are without a server."""
    return tuple(words) if port is None else tuple(word.replace(PORT, str(port)) for word in words)


def variables_of_run(
    env: Mapping[str, str], names: Sequence[str], port: int | None, *, run: str, run_dir: str
) -> dict[str, str]:
    """Return `env` with `{run}`, `{run_dir}` and `{port}` replaced in the variables that gpudebug.yaml sets,
    and with one that holds the port of a server."""
    own = {name: expand_text(env[name], run=run, run_dir=run_dir) for name in names if name in env}
    if port is None:
        return {**env, **own}
    return {**env, **{k: v.replace(PORT, str(port)) for k, v in own.items()}, PORT_VARIABLE: str(port)}


def spec_of(
    server: PreparedServer, env: Mapping[str, str], log: Path, port: int, *, run: str, run_dir: str
) -> launcher.ServerSpec:
    """Return what the warden starts; `env` has what gpudebug adds to the server's variables."""
    words = [expand_text(word, run=run, run_dir=run_dir) for word in server.argv]
    return launcher.ServerSpec(
        argv=with_port(words, port),
        cwd=str(server.cwd),
        env=variables_of_run(env, server.env_names, port, run=run, run_dir=run_dir),
        log=str(log),
        ready={"port": port, **server.ready},
        timeout=server.timeout,
    )


def recorded(
    server: PreparedServer | None, redactor: Redactor, ended: Mapping[str, object] | None = None
) -> ServerRun | None:
    """Return what run.json says of the server."""
    if server is None:
        return None
    argv = redactor.redact_argv(server.argv)
    return ServerRun.model_validate(
        {
            "command": argv[-1] if server.shell else shlex.join(argv),
            "argv": tuple(argv),
            "cwd": str(server.cwd),
            "environment": server.env_names,
            **(ended or {}),
        }
    )


def starting(server: PreparedServer) -> str:
    """Return a line for the watcher: until the server is ready nothing else is seen of the run."""
    words = Redactor(server.env, server.argv).redact(shlex.join(server.argv))
    return f"waiting for the server, {server.timeout:g} s at most: {words[:_SHOWN]}"


def of_server(record: RunRecord) -> bool:
    """Tell whether it was the end of the server, or that it was never ready, that ended the run."""
    return record.server is not None and (record.reason or "").startswith(ENDED)


def failure_of(log: Path, reason: str, found: Failure | None, redactor: Redactor) -> Failure:
    """Why the server's end was the run's: what its log shows as `found`, with the last of its lines."""
    lines = found.lines if found is not None else tuple(map(redactor.quoted, _last_lines(log)))
    last = f"{reason}: {lines[-1]}" if lines else reason
    return Failure(kind=found.kind if found is not None else "config", lines=(*lines, last))


def _last_lines(log: Path) -> list[str]:
    try:
        text = store.read_tail(log, _TAIL).decode("utf-8", "replace")
    except StoreError:
        return []
    return [line.strip() for line in text.splitlines() if line.strip()][-LAST_LINES:]
