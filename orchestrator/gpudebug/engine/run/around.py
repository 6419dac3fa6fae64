"""What a job would run in now, as its own interpreter says it."""

from __future__ import annotations

from dataclasses import replace

from gpudebug.core.catalogue import frameworks
from gpudebug.edges import host, launcher
from gpudebug.engine.run import adapters
from gpudebug.engine.run.environment import Surroundings, here
from gpudebug.engine.run.job import Bench, PreparedRun
from gpudebug.engine.run.nodes import with_nodes
from gpudebug.engine.run.origins import elsewhere


def surroundings_of(bench: Bench, job: PreparedRun) -> Surroundings:
    """Return what `job` would run in now. Raises LaunchError if its command cannot be found."""
    found = _around(bench, job)
    return replace(found, node=with_nodes(found.node, bench.others, None))


def _around(bench: Bench, job: PreparedRun) -> Surroundings:
    """Return the interpreter of a job that runs already is not asked: it may be another container's."""
    if job.attached is not None:
        return here(None, bench.devices, job.env, _watched(job))
    executable = launcher.find_command(job.argv, str(job.cwd), job.env)
    path = host.find_interpreter(executable, job.env.get("PATH", ""))
    python = None
    if path is not None:
        asked = None if job.role == "sample" else _ask(bench, job, path)
        python = host.Interpreter(path, asked.version, dict(asked.packages)) if asked else None
        python = python or host.Interpreter(path, "", {})
    return here(python, bench.devices, job.env, _watched(job))


def _watched(job: PreparedRun) -> tuple[str, ...]:
    """Return the variables whose values are recorded: the job's, and those that its framework reads."""
    framework = frameworks.recognise(job.argv, adapters.known())
    return (*job.watched, *(framework.variables if framework else ()))


def _ask(bench: Bench, job: PreparedRun, path: str) -> launcher.Asked | None:
    """Return what the job's Python says of itself, in the environment before anything was changed in it."""
    apart = job.code.trees.repository if job.code.trees else (bench.workspace.root,)
    names = tuple(job.code.trees.packages) if job.code.trees else ()
    return launcher.ask(path, job.env if job.code.base_env is None else job.code.base_env, apart, names)


def foreign_imports(bench: Bench, job: PreparedRun) -> dict[str, str] | None:
    """The packages of the checkout that `job` would import from elsewhere; None if that is not known."""
    if job.attached is not None:
        return None
    executable = launcher.find_command(job.argv, str(job.cwd), job.env)
    path = host.find_interpreter(executable, job.env.get("PATH", ""))
    packages = job.code.trees.packages if job.code.trees else {}
    if path is None or not packages:
        return None if path is None else {}
    return elsewhere(packages, _ask(bench, job, path), executable, job.argv, job.cwd, job.env)
