"""`gpudebug doctor --gpu`: kernels of known duty on each GPU, and what the sampler reads of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from gpudebug.core.answers.setup import DoctorCheck, GpuDoctorAnswer
from gpudebug.core.errors import BusyError, InterruptedRun
from gpudebug.core.hardware.gpu_checks import unknown
from gpudebug.core.hardware.plan import schedule
from gpudebug.core.hardware.recording import Gpu, Machine
from gpudebug.core.hardware.table import checks_of
from gpudebug.core.words import Outcome
from gpudebug.edges import cudaload, devices, store, temporary
from gpudebug.engine.run.live_line import Report
from gpudebug.engine.run.measure import measure
from gpudebug.engine.run.prepare import devices_held, lone_bench
from gpudebug.engine.run.sample import lone_job
from gpudebug.engine.tools.gpu_bundle import FILES, RunTexts, place_in, refuse_existing, write_bundle

# A driver that compiles the kernels for the first time, and copies: beside the phases themselves.
_BESIDE_S = 60.0


@dataclass(frozen=True)
class GpuPlan:
    """How long each phase takes and how often it is sampled, in s; `trials` is what is run after them."""

    phase_s: float = 5.0
    interval_s: float = 0.1
    trials: Callable[[Machine, Report], Iterator[DoctorCheck]] | None = None


def gpu_doctor(directory: Path, report: Report, plan: GpuPlan) -> GpuDoctorAnswer:
    """Check every GPU that a program started here would use, and write one bundle: see `place_in`.

    NoGpuError if there is no GPU, BusyError if another computes on one, StoreError if the bundle's name is
    taken: then nothing was written. Each run holds the GPUs' locks.
    """
    machine = _machine(os.environ)
    bundle = place_in(directory)
    refuse_existing(bundle)
    store.check_output(bundle, make_folder=True)
    machine, recorded = _recorded(directory, machine, report, plan)
    checks = (*checks_of(machine, recorded.parsed()), *_trials(machine, report, plan))
    write_bundle(bundle, machine, recorded, checks)
    return GpuDoctorAnswer(
        ok=all(check.result != "failed" for check in checks), checks=checks, bundle=str(bundle)
    )


def _machine(env: Mapping[str, str]) -> Machine:
    """Return the GPUs as NVML and as CUDA see them."""
    resolved = devices.resolve("auto", env)
    if resolved.spec["kind"] != "nvml":
        why = resolved.notes[0].partition(":")[0]
        raise cudaload.NoGpuError(
            f"doctor --gpu needs a GPU: {why}", next="run it on a machine with an NVIDIA GPU"
        )
    for device in resolved.devices:
        if pids := device.get("processes"):
            raise BusyError(
                f"GPU {device['index']} is in use by process {', '.join(map(str, pids))}",
                next="wait for it to end, or leave that GPU out by CUDA_VISIBLE_DEVICES",
            )
    gpus = tuple(
        Gpu(
            d["index"],
            d["uuid"],
            d["name"],
            d["driver"],
            d["uuid"].startswith("MIG-"),
            d.get("power_limit_w"),
        )
        for d in resolved.devices
    )
    seen = cudaload.seen(env)
    return Machine(gpus, seen.version, seen.uuids)


def _recorded(directory: Path, machine: Machine, report: Report, plan: GpuPlan) -> tuple[Machine, RunTexts]:
    """One run of the loading process under the sampler, held by the locks that campaigns take."""
    phases = schedule([gpu.uuid for gpu in machine.usable], plan.phase_s)
    if not machine.usable:
        why = "CUDA sees none of the GPUs that are sampled"
        return machine._replace(outcome="NOT_STARTED", reason=why), RunTexts()
    with temporary.workplace("gpudebug-gpu-") as made:
        timeout = plan.phase_s * len(phases) + _BESIDE_S
        job = replace(lone_job(made.path, cudaload.load_command(phases)), timeout=timeout)
        bench = lone_bench(made.path, "nvml", job.env, made.path, plan.interval_s, report)
        with devices_held([bench], directory, "gpudebug doctor --gpu") as (bench,):
            measured = measure(bench, job)
        record, run = measured.record, measured.folder.path
        if record.outcome is Outcome.INTERRUPTED:
            raise InterruptedRun("interrupted: no bundle was written", next="gpudebug doctor --gpu")
        recorded = RunTexts(*(_text(run / name) for name in FILES))
    return machine._replace(outcome=str(record.outcome), reason=record.reason), recorded


def _text(path: Path) -> str:
    return store.read_file(path).decode("utf-8", "replace") if path.exists() else ""


def _trials(machine: Machine, report: Report, plan: GpuPlan) -> Iterator[DoctorCheck]:
    if plan.trials is None:
        return
    if machine.outcome != "COMPLETED":
        yield unknown("campaign", "not tried: the load did not end well")
        return
    yield from plan.trials(machine, report)
