"""`gpudebug doctor`: what works here, and how to mend what does not."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpudebug.core import frameworks
from gpudebug.core.errors import GpudebugError
from gpudebug.edges import devices, host, launcher, snapshot, store
from gpudebug.edges.launcher.abilities import containment
from gpudebug.engine.written import progress_path, read_config, read_progress, training_environment

_LOW_DISK_MB = 1024.0


@dataclass(frozen=True)
class _Check:
    name: str
    result: str
    found: str
    next: str | None = None


def doctor(directory: Path) -> dict[str, Any]:
    """Every check with its finding; `ok` is False where one failed. Warnings do not fail."""
    checks = [*_machine(directory), *_campaign(directory)]
    return {
        "ok": all(c.result != "failed" for c in checks),
        "checks": [vars(c) for c in checks],
    }


def _tried(name: str, check: Callable[[], _Check]) -> _Check:
    try:
        return check()
    except GpudebugError as e:
        where = f"{e.file}:{e.line}: " if e.file and e.line else f"{e.file}: " if e.file else ""
        return _Check(name, "failed", where + e.message, e.next)


def _machine(directory: Path) -> Iterator[_Check]:
    yield _Check("python", "ok", f"{platform.python_version()} on {platform.system()}")
    yield _tried("git", lambda: _Check("git", "ok", f"work tree {snapshot.identify(directory).top}"))
    yield _tried("device", lambda: _device("device", "auto"))
    yield _tried("containment", _containment)
    yield _disk(directory)
    yield _tried("locks", lambda: _locks(directory))


def _device(name: str, setting: str, root: Path | None = None) -> _Check:
    resolved = devices.resolve(setting, os.environ, root)
    names = ", ".join(f"{d['name']} ({d['uuid']})" for d in resolved.devices)
    lacks = [f"{column}: {why}" for d in resolved.devices for column, why in (d.get("missing") or {}).items()]
    said = "; ".join([names, *lacks, *resolved.notes])
    warn = (resolved.spec["kind"] == "cpu" and setting == "auto") or bool(lacks)
    advice = "choose a whole GPU with CUDA_VISIBLE_DEVICES where gpu_util is among them"
    if resolved.spec["kind"] == "cpu":
        advice = "on a machine with an NVIDIA GPU, install its driver"
    return _Check(name, "warning" if warn else "ok", said, advice if warn else None)


def _containment() -> _Check:
    found = containment()
    missing = [name for name, works in found.items() if not works]
    if "subreaper" in missing:
        return _Check("containment", "failed", "no child subreaper", "use Linux 3.4 or newer")
    said = ", ".join(name for name, works in found.items() if works)
    return _Check("containment", "ok", said + (f" (without {', '.join(missing)})" if missing else ""))


def _disk(directory: Path) -> _Check:
    free = host.free_disk_mb(directory)
    if free < _LOW_DISK_MB:
        return _Check(
            "disk", "warning", f"{free:.0f} MB free", "free some space: runs write logs and samples"
        )
    return _Check("disk", "ok", f"{free / 1024:.0f} GB free")


def _locks(directory: Path) -> _Check:
    root = store.find_root(directory) or directory
    store.check_locks(root)
    return _Check("locks", "ok", f"files can be written and locked in {root}")


def _campaign(directory: Path) -> Iterator[_Check]:
    root = store.find_root(directory)
    if root is None:
        yield _Check("campaign", "warning", "no gpudebug.yaml here or above", "gpudebug init --command '…'")
        return
    workspace = store.Workspace(root)
    try:
        config = read_config(workspace)
    except GpudebugError as e:
        where = f"{e.file}:{e.line}: " if e.line else ""
        yield _Check("config", "failed", where + e.message, e.next)
        return
    yield _Check("config", "ok", f"campaign {config.campaign}")
    yield _tried("progress", lambda: _progress(workspace, config))
    if config.device != "auto":
        yield _tried("campaign device", lambda: _device("campaign device", config.device, root))
    for part, workload in (("workload", config.workload), ("reference", config.reference)):
        if workload is not None:
            yield _tried(part, lambda part=part, w=workload: _command(workspace, part, w))  # type: ignore[misc]


def _progress(workspace: store.Workspace, config: Any) -> _Check:
    document = read_progress(progress_path(workspace, config))
    return _Check("progress", "ok", f"{len(document.hypotheses)} hypotheses in {document.file}")


def _command(workspace: store.Workspace, part: str, workload: Any) -> _Check:
    argv = workload.argv()
    path = launcher.find_command(argv, str(workspace.root / workload.cwd), training_environment(workload))
    flag = frameworks.log_interval_advice(argv)
    if flag:
        return _Check(
            part,
            "warning",
            f"{path}; logs too rarely to judge the loss",
            f"add {flag[0]}={flag[1]} to the command in gpudebug.yaml, for baseline and trials alike",
        )
    return _Check(part, "ok", path)
