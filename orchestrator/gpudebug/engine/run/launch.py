"""From a prepared run to what the launcher is asked to start, under the sampler."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from gpudebug.core.words import device_kind
from gpudebug.edges import clusters, launcher, sampler
from gpudebug.edges.devices import replay
from gpudebug.engine.run import server as serving
from gpudebug.engine.run.files import Files
from gpudebug.engine.run.import_paths import injected
from gpudebug.engine.run.job import Bench, PreparedRun
from gpudebug.engine.run.live_line import Live


def launch_spec(
    bench: Bench,
    job: PreparedRun,
    files: Files,
    argv: tuple[str, ...],
    marker: str,
    run: str,
    run_dir: str,
    *,
    keep: str | None = None,
) -> launcher.LaunchSpec:
    """Return what is launched; `keep` tells its Python which files of the user not to overwrite."""
    device = dict(bench.device)
    can = device_kind(device["kind"])
    if can.is_recording:
        recording = replay.pick(str(device["folder"]), job.label, _ordinal(bench, job.label))
        speed = float(str(device.get("speed", 1.0)))
        argv = tuple(replay.player_command(recording, speed))
        device = {"kind": can.name, "path": str(recording), "speed": speed}
    if can.shares_cores and probed(job):
        device["probe"] = str(Path(str(files.records)) / launcher.PROBE)
    request = {
        "device": device,
        "csv": str(files.samples),
        "log": str(files.log),
        "interval": bench.interval,
        "host_interval": max(1.0, bench.interval),
    }
    if clusters.inside() is not None:
        request |= {"marker": marker}
    env = _env(job, own=bench.campaign is not None)
    cwd = str(job.cwd)
    if job.attached is not None:
        # The follower stands in for the job: it needs nothing of the job's surroundings.
        argv, env, cwd = job.attached.argv, dict(os.environ), str(bench.workspace.root)
        request |= {"root_pid": job.attached.pid, "attached": True}
    ours = {
        "GPUDEBUG_RUN": marker,
        "GPUDEBUG_RUN_DIR": str(files.job),
        launcher.RECORDS_DIR: str(files.records),
        **_nodes(),
        **({launcher.KEEP: keep} if keep is not None and probed(job) else {}),
    }
    port = server = None
    if job.server is not None and not bench.replays:
        port = serving.port_of(job.server)
        bench.report(Live(run, 0.0, None, None, None, None, None, serving.starting(job.server)))
        theirs = replace(job, env=job.server.env, env_names=job.server.env_names)
        its = {**_env(theirs, own=bench.campaign is not None), **ours}
        server = serving.spec_of(job.server, its, files.server_log, port, run=run, run_dir=run_dir)
    return launcher.LaunchSpec(
        argv=serving.with_port(argv, port),
        cwd=cwd,
        env=serving.variables_of_run({**env, **ours}, job.env_names, port, run=run, run_dir=run_dir),
        server=server,
        log=str(files.log),
        timeout=job.limits.timeout,
        max_output=job.limits.output,
        sampler=launcher.SamplerSpec(
            argv=sampler.command(),
            env=dict(os.environ),
            request=request,
            csv=str(files.samples),
            interval=bench.interval,
            required=bench.require_sampler,
        ),
        hold_fds=bench.hold_fds,
        marker=marker,
        records=str(files.records),
    )


def node_order(bench: Bench, marker: str) -> dict[str, object]:
    """Return what all samplers of other nodes are asked for."""
    return {"interval": bench.interval, "host_interval": max(1.0, bench.interval), "marker": marker}


def _nodes() -> dict[str, str]:
    """Return what tells processes of a job of several nodes on which of them the run was launched."""
    job = clusters.inside()
    return {launcher.NODE: f"{job.node}/{len(job.nodes)}"} if job is not None and len(job.nodes) > 1 else {}


def probed(job: PreparedRun) -> bool:
    """Whether the job's Python is made to report; it is unless `probe: false` is set, or it runs already."""
    if job.attached is not None:
        return False
    return job.code.trees.probe if job.code.trees else True


def _env(job: PreparedRun, *, own: bool) -> dict[str, str]:
    """Return the job's variables, and what makes its Python report.

    With `own` nothing that is meant for gpudebug comes from its caller: what is pinned says it all.
    """
    # One that gpudebug itself was started with would do it to every run.
    ours = (launcher.TORCH_PROFILE, launcher.LAYER)
    env = {
        name: value
        for name, value in job.env.items()
        if name not in ours and not (own and name.startswith("GPUDEBUG_") and name not in job.env_names)
    }
    if job.torch_profile is not None:
        env[launcher.TORCH_PROFILE] = str(job.torch_profile)
    if job.layer is not None:
        env[launcher.LAYER] = job.layer
    if job.code.trees is None:
        return launcher.inject(env)
    return injected(env, job.code.trees) if probed(job) else env


def _ordinal(bench: Bench, label: str) -> int:
    """Return how many runs of this label came before the newest."""
    return max(0, sum(1 for n in bench.workspace.run_names() if n.partition("-")[2] == label) - 1)
