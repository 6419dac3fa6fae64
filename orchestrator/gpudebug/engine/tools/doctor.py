"""`gpudebug doctor`: what works here, and how to mend what does not."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from gpudebug.core.answers.setup import DoctorAnswer, DoctorCheck
from gpudebug.core.catalogue import frameworks
from gpudebug.core.cluster.jobs import BatchJob, Cluster
from gpudebug.core.cluster.node_reports import ClusterFact
from gpudebug.core.errors import GpudebugError
from gpudebug.core.words import counted, device_kind
from gpudebug.edges import devices, git, host, launcher, store
from gpudebug.edges.launcher.recovery import containment
from gpudebug.engine.agents.setup_files import checks
from gpudebug.engine.campaign.files import (
    find,
    progress_path,
    read_config,
    read_progress,
    training_environment,
)
from gpudebug.engine.campaign.runner import named_cluster, worker_job
from gpudebug.engine.run import adapters
from gpudebug.engine.run.known_flags import idle_locks

_LOW_DISK_MB = 1024.0


def doctor(directory: Path, *, ask: bool = False) -> DoctorAnswer:
    """Return every check with its finding; `ok` is False if one failed. Warnings do not fail.

    Nothing of the repository is run, and no Python but this one unless `ask`.
    """
    return _answer([*_machine(directory), *_campaign(directory, ask)])


def profiling(directory: Path, *, ask: bool = False) -> DoctorAnswer:
    """Return the profiling library tried out, in this Python and in the workload's if that is another.

    One that is in the repository is started only with `ask`.
    """
    return _answer(
        [c for name, python in _pythons(directory) for c in _tried_in(directory, name, python, ask)]
    )


def of_agent(directory: Path, name: str) -> DoctorAnswer:
    """Whether a coding agent is set up for the campaign at or above `directory`; UsageError for no agent."""
    return _answer(list(checks(find(directory).root, name)))


def _answer(checks: Sequence[DoctorCheck]) -> DoctorAnswer:
    return DoctorAnswer(ok=all(c.result != "failed" for c in checks), checks=tuple(checks))


def _pythons(directory: Path) -> Iterator[tuple[str, str]]:
    yield "", sys.executable
    root = store.find_root(directory)
    if root is None:
        return
    try:
        workload = read_config(store.Workspace(root)).workload
        argv = workload.argv()
        path = launcher.find_command(argv, str(root / workload.cwd), training_environment(workload))
    except GpudebugError:
        # `doctor` without --profiling says so, and how to mend it.
        return
    if Path(argv[0]).name.startswith("python") and path != sys.executable:
        yield "workload's ", path


def startable(directory: Path) -> tuple[str, ...]:
    """Return the Pythons to start unasked: this one, and the workload's unless it is in the repository."""
    return tuple(python for _, python in _pythons(directory) if _is_foreign(directory, python))


def _is_foreign(directory: Path, python: str) -> bool:
    root = store.find_root(directory)
    return root is None or python == sys.executable or not launcher.inside(python, (_repository(root),))


def _tried_in(directory: Path, name: str, python: str, ask: bool) -> Iterator[DoctorCheck]:
    if ask or _is_foreign(directory, python):
        yield from _profiling(name, python)
        return
    found = f"not started: {python} is in the repository"
    yield DoctorCheck(
        f"{name}library", "warning", found, "gpudebug doctor --profiling --ask, if you trust it"
    )


def _repository(root: Path) -> Path:
    """Return the top of the work tree, else the campaign's folder."""
    try:
        return git.identify(root).top
    except GpudebugError:
        return root


def _profiling(name: str, python: str) -> Iterator[DoctorCheck]:
    try:
        result = launcher.try_profiling(python)
    except GpudebugError as e:
        yield DoctorCheck(f"{name}library", "failed", e.message, e.next)
        return
    sections = {s["name"]: s for s in result["report"]["sections"]}
    yield DoctorCheck(f"{name}library", "ok", f"works in Python {result['version']} at {python}")
    yield _nested(f"{name}sections", result["report"]["tree"], sections)
    yield _memory(f"{name}memory", sections)
    found = len(result["at_exit"]["sections"])
    yield DoctorCheck(
        f"{name}report", "ok", f"written at exit and read back: {found} sections; its files are removed"
    )
    costs = {key: f"{result[key]:.0f} ns" for key in result if key.endswith("_ns")}
    yield DoctorCheck(
        f"{name}overhead",
        "ok",
        f"{costs['section_ns']} a section, {costs['bound_ns']} bound; while off {costs['section_off_ns']}, "
        f"{costs['bound_off_ns']} bound; two clocks {costs['pair_ns']}",
    )


def _nested(name: str, tree: list[dict[str, Any]], sections: dict[str, Any]) -> DoctorCheck:
    inner = [c["calls"] for p in tree if p["name"] == "outer" for c in p["children"] if c["name"] == "inner"]
    if len(inner) != 1 or sections["outer"]["calls"] != inner[0] or sections["failing"]["errors"] != 1:
        return DoctorCheck(name, "failed", f"recorded wrongly: {tree}", "report it, with this line")
    mean_ms = 1000 * sections["inner"]["mean_s"]
    return DoctorCheck(
        name, "ok", f"{inner[0]} calls inside another section, {mean_ms:.2f} ms each; errors counted"
    )


def _memory(name: str, sections: dict[str, Any]) -> DoctorCheck:
    seen, gpu = sections["memory"]["mem_peak_mb"], sections["memory"]["gpu_peak_mb"]
    if seen is None:
        return DoctorCheck(name, "warning", "cannot be read", "install psutil in the training's environment")
    shown = "unknown (no CUDA in use)" if gpu is None else f"{gpu:.0f} MB"
    return DoctorCheck(name, "ok", f"a section that took {seen:.0f} MB is seen; of a GPU {shown}")


def _tried(name: str, check: Callable[[], DoctorCheck]) -> DoctorCheck:
    try:
        return check()
    except GpudebugError as e:
        where = f"{e.file}:{e.line}: " if e.file and e.line else f"{e.file}: " if e.file else ""
        return DoctorCheck(name, "failed", where + e.message, e.next)


def _machine(directory: Path) -> Iterator[DoctorCheck]:
    yield DoctorCheck("python", "ok", f"{platform.python_version()} on {platform.system()}")
    yield _tried("git", lambda: DoctorCheck("git", "ok", f"work tree {git.identify(directory).top}"))
    yield _tried("device", lambda: _device("device", "auto"))
    yield _tried("containment", _containment)
    yield _disk(directory)
    yield _tried("locks", lambda: _locks(directory))


def _device(name: str, setting: str, root: Path | None = None) -> DoctorCheck:
    resolved = devices.resolve(setting, os.environ, root)
    names = ", ".join(f"{d['name']} ({d['uuid']})" for d in resolved.devices)
    lacks = [f"{column}: {why}" for d in resolved.devices for column, why in (d.get("missing") or {}).items()]
    text = "; ".join([names, *lacks, *resolved.notes])
    shared = device_kind(resolved.spec["kind"]).shares_cores
    warn = (shared and setting == "auto") or bool(lacks)
    advice = "choose a whole GPU with CUDA_VISIBLE_DEVICES if gpu_util is among them"
    if shared:
        advice = "on a machine with an NVIDIA GPU, install its driver"
    return DoctorCheck(name, "warning" if warn else "ok", text, advice if warn else None)


def _containment() -> DoctorCheck:
    found = containment()
    missing = [name for name, works in found.items() if not works]
    if "subreaper" in missing:
        return DoctorCheck("containment", "failed", "no child subreaper", "use Linux 3.4 or newer")
    text = ", ".join(name for name, works in found.items() if works)
    return DoctorCheck("containment", "ok", text + (f" (without {', '.join(missing)})" if missing else ""))


def _disk(directory: Path) -> DoctorCheck:
    free = host.free_disk_mb(directory)
    if free < _LOW_DISK_MB:
        return DoctorCheck(
            "disk", "warning", f"{free:.0f} MB free", "free some space: runs write logs and samples"
        )
    return DoctorCheck("disk", "ok", f"{free / 1024:.0f} GB free")


def _locks(directory: Path) -> DoctorCheck:
    root = store.find_root(directory) or directory
    store.check_locks(root)
    return DoctorCheck("locks", "ok", f"files can be written and locked in {root}")


def _campaign(directory: Path, ask: bool) -> Iterator[DoctorCheck]:
    root = store.find_root(directory)
    if root is None:
        yield DoctorCheck(
            "campaign", "warning", "no gpudebug.yaml here or above", "gpudebug init --command '…'"
        )
        return
    workspace = store.Workspace(root)
    try:
        config = read_config(workspace)
    except GpudebugError as e:
        where = f"{e.file}:{e.line}: " if e.line else ""
        yield DoctorCheck("config", "failed", where + e.message, e.next)
        return
    yield DoctorCheck("config", "ok", f"campaign {config.campaign}")
    yield _tried("progress", lambda: _progress(workspace, config))
    if config.device != "auto":
        yield _tried("campaign device", lambda: _device("campaign device", config.device, root))
    for part, workload in (("workload", config.workload), ("reference", config.reference)):
        if workload is not None:
            yield _tried(part, lambda part=part, w=workload: _command(workspace, part, w, ask))  # type: ignore[misc]
    for line in idle_locks(root, config):
        advice = "correct `locked:` in gpudebug.yaml, then gpudebug settings --accept"
        yield DoctorCheck("locked flags", "warning", line.removeprefix("locked: "), advice)


def _progress(workspace: store.Workspace, config: Any) -> DoctorCheck:
    document = read_progress(progress_path(workspace, config))
    return DoctorCheck(
        "progress",
        "ok",
        f"{counted(len(document.hypotheses), 'hypothesis', 'hypotheses')} in {document.file}",
    )


def _command(workspace: store.Workspace, part: str, workload: Any, ask: bool) -> DoctorCheck:
    argv = workload.argv()
    env = training_environment(workload)
    path = launcher.find_command(argv, str(workspace.root / workload.cwd), env)
    of = adapters.of(workspace.root, workload)
    shown = f"{path}; {named}" if (named := _framework(of, path, env, ask)) else path
    advice = frameworks.log_advice(argv, adapters.known(), program=of.program)
    if advice:
        return DoctorCheck(part, "warning", f"{shown}; logs too rarely to judge the loss", advice.text)
    return DoctorCheck(part, "ok", shown)


def _framework(of: adapters.Known, path: str, env: dict[str, str], ask: bool) -> str | None:
    """The command's framework and what it counts, with `ask` with the version that its interpreter has."""
    if of.framework is None:
        return None
    counts = f", counts {of.framework.unit}" if of.framework.unit else ""
    if not ask:
        return f"{of.framework.title}{counts} (its version was not asked: gpudebug doctor --ask)"
    interpreter = host.find_interpreter(path, env.get("PATH", ""))
    asked = launcher.ask(interpreter, env) if interpreter else None
    version = adapters.version_of(of.framework, dict(asked.packages) if asked else {})
    return (f"{of.framework.title} {version}" if version else of.framework.title) + counts


def of_cluster(directory: Path) -> DoctorAnswer:
    """Every check with its finding; two nodes are asked for a minute of their time if the first ones pass.

    ConfigError for a campaign that runs on this host itself.
    """
    workspace = find(directory)
    config = read_config(workspace)
    cluster = named_cluster(workspace, config)
    found = list(cluster.login_facts(worker_job(workspace, config.campaign)))
    if not any(fact.result == "failed" for fact in found):
        found += _of_nodes(workspace, cluster, worker_job(workspace, config.campaign))
    checks = tuple(DoctorCheck(f.name, f.result, f.text, f.next) for f in found)
    return DoctorAnswer(ok=all(c.result != "failed" for c in checks), checks=checks)


def _of_nodes(workspace: store.Workspace, cluster: Cluster, job: BatchJob) -> Iterator[ClusterFact]:
    files = store.Allocations(workspace.private)
    token = files.put_token()
    yield from cluster.node_facts(job, str(files.trial), token)
