"""A sampler of stacks without PyTorch, and what it saw."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.campaigns import environment
from tests.support.probed import PROBE, Told, lines_of

from gpudebug.core.inside.stacks import read_stacks, stacks_evidence
from gpudebug.core.inside.stacks.shares import share
from gpudebug.core.records import Stacks

# A sampler of this thread, driven by hand: on every Python, without PyTorch.
ALONE = f"""
import sys, os, threading, time, types, gc
sys.path.append({str(PROBE)!r})
from _thread import get_ident, get_native_id
from gpudebug_probe.frames import Frames, stack_from
from gpudebug_probe.record import RecordFile
from gpudebug_probe.sampler import StackSampler
torch = types.SimpleNamespace(__file__="/nowhere/torch/__init__.py")
lost = []
frames = Frames(torch)
record = RecordFile(os.environ["GPUDEBUG_RECORDS_DIR"])
sampler = StackSampler("training", record, frames, lambda: lost.append(1))
def watch():
    sampler.target = get_ident(), time.pthread_getcpuclockid(get_ident()), get_native_id()
def burn(seconds):
    end, n = time.thread_time() + seconds, 0
    while time.thread_time() < end:
        n += sum(range(200))
def doze(seconds):
    time.sleep(seconds)
"""


def alone(folder: Path, code: str, python: str = sys.executable, first: str = "") -> Told:
    """Run `code` behind what makes a sampler; `first` before anything else."""
    run = folder / "run"
    run.mkdir(exist_ok=True)
    (folder / "train.py").write_text(first + ALONE + code)
    done = subprocess.run(
        [python, "train.py"],
        cwd=folder,
        env=environment({"GPUDEBUG_RECORDS_DIR": str(run), "GPUDEBUG_T0": "0.5"}),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return Told(done.returncode, done.stdout, done.stderr, lines_of(run))


def of(told: Told, kind: str = "training") -> Stacks:
    """What was seen of a kind of thread, as evidence has it."""
    text = "".join(json.dumps(line) + "\n" for line in told.lines)
    evidence = stacks_evidence(read_stacks(text), None)
    assert evidence is not None
    found: Stacks | None = getattr(evidence, kind)
    assert found is not None, told
    return found


def part(stacks: Stacks, code: str = "", stack: str = "", **more: Any) -> float:
    return share(stacks, code=code or None, stack=stack or None, **more)[0]
