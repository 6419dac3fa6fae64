"""`gpudebug doctor --gpu`: kernels of known duty and trials on each GPU, and a bundle of what was found."""

from __future__ import annotations

import getpass
import io
import json
import os
import platform
import shlex
import sys
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from importlib import resources
from pathlib import Path

from gpudebug import __version__, demo
from gpudebug.core.answers.next import NextAnswer
from gpudebug.core.answers.setup import DoctorCheck, GpuDoctorAnswer
from gpudebug.core.change.intervention import parse
from gpudebug.core.errors import BusyError, GpudebugError, InterruptedRun, StoreError
from gpudebug.core.hardware.gpu_checks import unknown
from gpudebug.core.hardware.plan import schedule
from gpudebug.core.hardware.recording import (
    Gpu,
    GpuRecording,
    Machine,
    is_raised,
    parse_recording,
    pseudonyms,
    records_alone,
    renamed,
    scrubbed,
    scrubbed_value,
    without_paths,
    written_machine,
)
from gpudebug.core.hardware.table import NAME, checks_of, probe_check
from gpudebug.core.records import ProbeEvidence
from gpudebug.core.redaction.hosts import host_names
from gpudebug.core.words import GPU, Outcome, device_kind
from gpudebug.edges import cudaload, devices, git, launcher, store, temporary
from gpudebug.edges.store.root import RUNS, find_root
from gpudebug.engine.campaign.files import progress_head, read_config
from gpudebug.engine.cycle.next import next_cycle
from gpudebug.engine.hypotheses.propose import propose
from gpudebug.engine.run.job import RunLimits
from gpudebug.engine.run.live_line import Report
from gpudebug.engine.run.measure import measure
from gpudebug.engine.run.prepare import devices_held, lone_bench
from gpudebug.engine.run.sample import lone_job, sample

BUNDLE = "gpudebug-gpu.tar.gz"
RUN = "0001-sample"
FILES = ("samples.csv", "train.log", "sampler.json")
"""The files of a run that its checks are derived from, in the order of `RunTexts`."""
_TOP = "gpudebug-gpu"
_MACHINE, _CHECKS = "machine.json", "checks.json"
_KEPT = (
    "format",
    "source",
    "interval",
    "ticks",
    "missed",
    "missing",
    "restarts",
    "lost",
    "complete",
    "energy_j",
)


@dataclass(frozen=True)
class RunTexts:
    """The files of one run as text: samples.csv, the loading process's output, sampler.json."""

    samples: str = ""
    log: str = ""
    notes: str = "{}"

    def parsed(self) -> GpuRecording:
        return parse_recording(self.samples, self.log.encode(), self.notes)


def place_in(directory: Path) -> Path:
    """Where the bundle of a folder lies: in runs/ of a campaign, whose base an untracked file would be in."""
    root = find_root(directory)
    return (root / RUNS if root is not None else directory) / BUNDLE


def refuse_existing(path: Path) -> None:
    """StoreError if there is a file of that name already."""
    if os.path.lexists(path):
        raise StoreError(
            "is there already; it is unchanged",
            file=str(path),
            next="move it away, then gpudebug doctor --gpu",
        )


def write_bundle(
    path: Path,
    machine: Machine,
    recorded: RunTexts,
    checks: Sequence[DoctorCheck],
    before: str | None = None,
) -> str:
    """Write everything into one archive, in a folder that is made, and return the file's digest.

    `before` is the digest of the bundle that it replaces. StoreError if there is another file.
    """
    uuids, names = pseudonyms(machine), _names()
    notes = {k: v for k, v in json.loads(recorded.notes or "{}").items() if k in _KEPT}
    notes = {k: scrubbed_value(v, names) for k, v in notes.items()}
    machine = machine._replace(reason=scrubbed(machine.reason, names) if machine.reason else None)
    checks = [
        replace(c, found=scrubbed(c.found, names), next=scrubbed(c.next, names) if c.next else None)
        for c in checks
    ]
    versions = {"gpudebug": __version__, "python": platform.python_version(), "system": platform.system()}
    files = {
        _MACHINE: written_machine(machine, versions),
        _CHECKS: json.dumps([asdict(check) for check in checks], indent=1) + "\n",
        f"{RUN}/samples.csv": recorded.samples,
        f"{RUN}/train.log": records_alone(recorded.log, names),
        f"{RUN}/sampler.json": without_paths(json.dumps(notes, indent=1)) + "\n",
        f"{RUN}/run.json": json.dumps(_run(machine), indent=1) + "\n",
    }
    data = _packed({name: renamed(text, uuids).encode() for name, text in files.items()})
    store.make_folder(path.parent)
    if before is None:
        store.put_file(path, data, check=lambda: refuse_existing(path))
    else:
        store.replace_file(path, data, root=path.parent, expected=before)
    return store.file_digest(path)


def _names() -> tuple[str, ...]:
    """Return what this host, its domain, this user and the job's other hosts are called."""
    user = ""
    with suppress(OSError, KeyError, ImportError):
        user = getpass.getuser()
    return host_names(os.environ, (platform.node(), user))


def _run(machine: Machine) -> dict[str, object]:
    """run.json as a replay reads it."""
    devices = [
        {"index": g.index, "uuid": g.uuid, "name": g.name, "kind": GPU.name, "driver": g.driver}
        for g in machine.gpus
    ]
    return {"devices": devices, "exit_status": 0 if machine.outcome == "COMPLETED" else 1}


def _packed(files: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, data in files.items():
            # No owner, and no time: neither is anybody's business.
            member = tarfile.TarInfo(f"{_TOP}/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return packed.getvalue()


RUN_S = 8.0
_STEPS = 200
_TORCH_S = 120.0
_CAMPAIGN = "campaign"
# More actions than a baseline and a trial need: one that never ends is no answer either.
_MOST_CYCLES = 4
_CONFIG = """\
campaign: first-contact
goal: Keep the GPU busy.
workload:
  command: {python} train.py --wait=0.016 --seconds={seconds:g}
  env: {{CUDA_VISIBLE_DEVICES: {uuid}}}
  timeout: 2m
protocol: {{max_runs: 2}}
device: nvml
"""
_TRAIN = """\
import argparse
import sys

sys.path.append({folder!r})
from gpudebug.edges.cudaload import program

parser = argparse.ArgumentParser()
parser.add_argument("--wait", type=float)
parser.add_argument("--seconds", type=float)
options = parser.parse_args()
sys.exit(program.train(options.wait, options.seconds))
"""


def trials(pythons: Sequence[str], machine: Machine, report: Report) -> Iterator[DoctorCheck]:
    """The probe's check in the first of `pythons` that has PyTorch, and the campaign's on the first GPU."""
    yield _probe(pythons, report)
    yield _campaign(machine, report, RUN_S)


def _campaign(machine: Machine, report: Report, run_s: float) -> DoctorCheck:
    """Return a baseline that waits most of the time, and the hypothesis that it should not, which is true."""
    gpu = machine.usable[0]
    if gpu.mig:
        return unknown(_CAMPAIGN, "a part of a GPU reports no utilisation to judge by")
    with temporary.workplace("gpudebug-campaign-") as made:
        try:
            answer = _validated(made.path, gpu.uuid, report, run_s)
        except GpudebugError as e:
            return _stopped(_CAMPAIGN, e)
    found = f"{answer.action}: {answer.verdict or 'no verdict'}: {answer.why}"
    if answer.verdict == "VALIDATED":
        return DoctorCheck(_CAMPAIGN, "ok", found)
    return DoctorCheck(_CAMPAIGN, "failed", found, "attach the bundle to a report")


def _stopped(name: str, error: GpudebugError) -> DoctorCheck:
    """A trial that could not run: unknown if another has taken the GPU meanwhile. An interruption goes on."""
    if isinstance(error, InterruptedRun):
        raise error
    if isinstance(error, BusyError):
        return unknown(name, error.message, error.next or "wait for it to end, then run this again")
    return DoctorCheck(name, "failed", error.message, error.next)


def _validated(folder: Path, uuid: str, report: Report, run_s: float) -> NextAnswer:
    """Return the answer with the verdict, or the last of as many as a campaign of one hypothesis can need."""
    texts = {
        "gpudebug.yaml": _CONFIG.format(python=shlex.quote(sys.executable), seconds=run_s, uuid=uuid),
        "train.py": _TRAIN.format(folder=str(Path(cudaload.__file__).resolve().parents[3])),
        ".gitignore": "runs/\n",
    }
    for name, text in texts.items():
        store.put_file(folder / name, text.encode())
    workspace = store.Workspace(folder)
    config = read_config(workspace)
    store.replace_file(folder / config.progress, progress_head(config).encode(), root=folder, expected=None)
    git.create(folder, "Start the campaign of doctor --gpu")
    propose(
        folder,
        title="The GPU waits between steps",
        description="Each step waits four times as long as it works.",
        method="Wait less.",
        change=parse("--set --wait=0.001"),
    )
    answer = next_cycle(folder, report)
    for _ in range(_MOST_CYCLES):
        if answer.verdict is not None:
            break
        answer = next_cycle(folder, report)
    return answer


def _probe(pythons: Sequence[str], report: Report) -> DoctorCheck:
    """Return the probe in a PyTorch program."""
    python = next(
        (p for p in pythons if (asked := launcher.ask(p, os.environ)) and "torch" in asked.packages), None
    )
    if python is None:
        return unknown(
            NAME,
            f"no PyTorch in {' or '.join(pythons)}, so copies, events and waits were not counted",
            "install gpudebug beside the training's PyTorch, or run this in a campaign whose Python has it",
        )
    program = resources.files(demo).joinpath("cuda_train.py").read_text("utf-8")
    with temporary.workplace("gpudebug-probe-") as made:
        store.put_file(made.path / "train.py", program.encode())
        try:
            answer = sample(
                made.path,
                (python, "train.py", str(_STEPS)),
                report,
                output=Path("probe.csv"),
                device=GPU.name,
                timeout=_TORCH_S,
            )
        except GpudebugError as e:
            return _stopped(NAME, e)
    if answer.outcome == "INTERRUPTED":
        raise InterruptedRun("interrupted")
    if answer.outcome != "COMPLETED":
        last = answer.failure.lines[-1:] if answer.failure else ()
        # Any other line of a log is the program's own words, which say nothing of a GPU.
        said = next(filter(is_raised, last), answer.failure.class_) if answer.failure else answer.why
        return unknown(
            NAME,
            f"PyTorch did not train on the GPU: {answer.outcome}, {said}",
            "see whether `torch.cuda.is_available()` is true in that Python",
        )
    probe = ProbeEvidence.model_validate(answer.probe) if answer.probe is not None else None
    return probe_check(probe, answer.probe_reason)


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

    It is written after the load, and again after each trial: what ends those keeps what was found before.
    NoGpuError if there is no GPU, BusyError if another computes on one, StoreError if the bundle's name is
    taken: then nothing was written. Each run holds the GPUs' locks.
    """
    machine = _machine(os.environ)
    bundle = place_in(directory)
    refuse_existing(bundle)
    store.check_output(bundle, make_folder=True)
    machine, recorded = _recorded(directory, machine, report, plan)
    checks = tuple(checks_of(machine, recorded.parsed()))
    written = write_bundle(bundle, machine, recorded, checks)
    try:
        for check in _trials(machine, report, plan):
            checks = (*checks, check)
            written = write_bundle(bundle, machine, recorded, checks, written)
    except InterruptedRun:
        raise InterruptedRun(
            f"interrupted after {len(checks)} checks, which are in the bundle",
            file=str(bundle),
            next="move it away to run them all: gpudebug doctor --gpu",
        ) from None
    return GpuDoctorAnswer(
        ok=all(check.result != "failed" for check in checks), checks=checks, bundle=str(bundle)
    )


def _machine(env: Mapping[str, str]) -> Machine:
    """Return the GPUs as NVML and as CUDA see them."""
    resolved = devices.resolve("auto", env)
    if not device_kind(resolved.spec["kind"]).is_gpu:
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
        job = replace(lone_job(made.path, cudaload.load_command(phases)), limits=RunLimits(timeout))
        bench = lone_bench(made.path, GPU.name, job.env, made.path, plan.interval_s, report)
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
