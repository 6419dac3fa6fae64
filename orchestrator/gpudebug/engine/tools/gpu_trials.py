"""What `doctor --gpu` runs after the loads: the probe in a PyTorch program, and one small campaign."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path

from gpudebug import demo
from gpudebug.core.answers.next import NextAnswer
from gpudebug.core.answers.setup import DoctorCheck
from gpudebug.core.errors import BusyError, GpudebugError, InterruptedRun
from gpudebug.core.hardware.gpu_checks import unknown
from gpudebug.core.hardware.recording import Machine, is_raised
from gpudebug.core.hardware.table import NAME, probe_check
from gpudebug.core.records import ProbeEvidence
from gpudebug.edges import cudaload, git, launcher, store, temporary
from gpudebug.engine.campaign.files import progress_head, read_config
from gpudebug.engine.cycle.next import next_cycle
from gpudebug.engine.hypotheses.propose import propose
from gpudebug.engine.run.live_line import Report
from gpudebug.engine.run.sample import sample

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
        set_=["--wait=0.001"],
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
                device="nvml",
                timeout=_TORCH_S,
            )
        except GpudebugError as e:
            return _stopped(NAME, e)
    if answer.outcome == "INTERRUPTED":
        raise InterruptedRun("interrupted: no bundle was written", next="gpudebug doctor --gpu")
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
