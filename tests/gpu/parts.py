"""The parts of the first contact with a GPU: each says what it saw, and what it cannot do is one line."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from tests.gpu.figures import EXPECTED, look_line, noise, shown, trace_line
from tests.gpu.packing import keep
from tests.support.sampling import SamplerProcess

from gpudebug.core.errors import GpudebugError
from gpudebug.core.words import device_kind
from gpudebug.edges import devices

ROOT = Path(__file__).resolve().parents[2]
TRAIN, STANDIN = (Path(__file__).with_name(name) for name in ("train.py", "standin_train.py"))
DOCTOR_BUNDLE = "gpudebug-gpu.tar.gz"
FORMS = {
    "query.csv": ["--query-gpu=timestamp,utilization.gpu,power.draw,memory.used", "--format=csv", "-l", "1"],
    "dmon.txt": ["dmon", "-s", "pucvmet", "-d", "1", "-o", "DT"],
    "pmon.txt": ["pmon", "-s", "um", "-d", "1", "-o", "DT"],
}
_SMI = ("nvidia-smi", "--query-gpu=timestamp,utilization.gpu", "--format=csv,noheader", "-lms", "200")
_SMALL = ("--batch=8", "--size=8", "--depth=1", "--workers=1", "--tiny=50")
_TORCH = "import torch; print(torch.__version__, torch.cuda.is_available())"
_LARGEST = 3 << 20


class LackingError(Exception):
    """What a part needs is not here; the text is its line."""


@dataclass
class Kit:
    """Where the parts work, and what they found: `kept` is packed, `measured` has names of the table of
    assumptions. In a rehearsal a CPU does what the training's GPU would, and all is short."""

    work: Path
    kept: Path
    python: str
    rehearsal: bool = False
    until: float = 0.0
    depth: str = "8"
    measured: dict[str, float] = field(default_factory=dict)

    @property
    def places(self) -> dict[str, str]:
        """Paths of the machine, and what is written for them."""
        places = {self.work: "WORK", Path(self.python).absolute(): "PYTHON", ROOT: "ROOT"}
        return {**{str(path): name for path, name in places.items()}, sys.prefix: "PREFIX"}

    def run(self, *argv: object, cwd: Path | None = None) -> tuple[int, str]:
        """Run a command to its end or that of the part's time (status 124); everything goes to log.txt."""
        words = [str(word) for word in argv]
        with open(self.kept / "log.txt", "a", encoding="utf-8") as log:
            print(f"\n$ {shlex.join(words)}", file=log, flush=True)
            with started(words, subprocess.PIPE, log, cwd or self.work) as child:
                status, out = ended(child, max(self.until - time.monotonic(), 0.1))
            print(f"{out[:20_000]}\n-- status {status}", file=log)
        return status, out

    def gpudebug(self, *argv: object, cwd: Path | None = None) -> tuple[int, str]:
        return self.run(sys.executable, "-m", "gpudebug", *argv, cwd=cwd)

    def training(self, fault: str, *more: str) -> list[str]:
        size = _SMALL if self.rehearsal else (f"--depth={self.depth}",)
        program = STANDIN if self.rehearsal else TRAIN
        return [self.python, str(program), f"--fault={fault}", *size, *more]

    def keep(self, source: Path, name: str) -> None:
        """Copy what is there and not large."""
        if source.is_file() and source.stat().st_size < _LARGEST:
            keep(source, self.kept / name, self.places)


@contextmanager
def started(argv: Sequence[str], out: Any, err: Any, cwd: Path) -> Iterator[subprocess.Popen[str]]:
    """A command in a group of its own, which ends with the block."""
    env = {**os.environ, "NO_COLOR": "1", "TZ": "UTC"}
    words = argv if shutil.which(argv[0]) else ["sh", "-c", f"echo no {argv[0]} here; exit 127"]
    streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": err, "text": True}
    child = subprocess.Popen(words, cwd=cwd, env=env, start_new_session=True, **streams)
    try:
        yield child
    finally:
        if child.poll() is None:
            ended(child, 0.01)


def ended(child: subprocess.Popen[str], limit: float) -> tuple[int, str]:
    """Wait for a command; past the limit end it and its group, politely first, with status 124."""
    for seconds, sign in ((limit, signal.SIGINT), (8.0, signal.SIGTERM), (3.0, signal.SIGKILL)):
        try:
            out, _ = child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, sign)
        else:
            return child.returncode if sign is signal.SIGINT else 124, out or ""
    return 124, child.communicate()[0] or ""


class Machine(NamedTuple):
    """What parts need: None if it is there, else why not. `text` names the devices."""

    gpu: str | None
    alone: str | None
    whole: str | None
    torch: str | None
    smi: str | None
    text: str


def machine(python: str, *, rehearsal: bool) -> Machine:
    """Look at the GPUs, the training's Python and nvidia-smi."""
    gpu, found = None, tuple[dict[str, Any], ...]()
    try:
        resolved = devices.resolve("auto", os.environ)
        found = resolved.devices
        if not device_kind(resolved.spec["kind"]).is_gpu:
            gpu = resolved.notes[0].partition(":")[0]
    except GpudebugError as e:
        gpu = e.message
    pids = [str(pid) for device in found for pid in device.get("processes", ())]
    part = next((device for device in found if device["uuid"].startswith("MIG-")), None)
    told = subprocess.run([python, "-c", _TORCH], capture_output=True, text=True, check=False)
    version, _, works = told.stdout.strip().partition(" ")
    torch = None if version else f"no PyTorch in {python}"
    if version and works != "True" and not rehearsal:
        old = " (its driver is too old)" if "too old" in told.stderr else ""
        torch = f"PyTorch {version} sees no GPU{old}"
    return Machine(
        gpu,
        f"the GPU is in use by process {', '.join(pids)}" if pids else None,
        f"GPU {part['index']} is a part (MIG), whose utilisation is unknown" if part else None,
        torch,
        None if shutil.which("nvidia-smi") else "no nvidia-smi on the PATH",
        "; ".join(f"{d['index']} {d['name']}, driver {d['driver']}" for d in found),
    )


def recordings(kit: Kit) -> Iterator[str]:
    """nvidia-smi in its forms under a load, each read by `analyze`; the depth that later trainings have."""
    seconds, log = 2 if kit.rehearsal else 10, kit.work / "load.log"
    load = kit.training("loader", "--workers=0")
    with (
        open(log, "w", encoding="utf-8") as file,
        started(load if kit.rehearsal else [*load, "--depth=0"], file, file, kit.work) as child,
    ):
        while child.poll() is None and time.monotonic() < kit.until - 30 and "step" not in log.read_text():
            time.sleep(0.2)
        depth = re.search(r"depth=(\d+)", log.read_text())
        if depth is None:
            raise LackingError(f"the training did not start: {log.read_text().strip()[-200:]}")
        kit.depth = depth[1]
        for name, words in FORMS.items():
            kit.run("sh", "-c", f"timeout {seconds} nvidia-smi {shlex.join(words)} > {name}")
    yield f"a step of 25 ms has depth {kit.depth}"
    for name in FORMS:
        yield f"nvidia-smi {name}: analyze {outcome(kit.gpudebug('analyze', name))}"
        kit.keep(kit.work / name, f"nvidia-smi-{name}")


def outcome(ran: tuple[int, str]) -> str:
    """What a command came to, in a few words."""
    status, out = ran
    return "ok" if status == 0 else f"status {status}: {' '.join(out.split())[-120:]}"


def doctor(kit: Kit) -> Iterator[str]:
    """`doctor --gpu` and its bundle, which it writes anew after each of its own parts."""
    status, out = kit.gpudebug("--json", "doctor", "--gpu")
    kit.keep(kit.work / DOCTOR_BUNDLE, DOCTOR_BUNDLE)
    answer = json.loads(out or "{}")
    if "checks" not in answer:
        raise LackingError(answer.get("error", {}).get("message", f"no answer, status {status}"))
    yield f"{sum(c['result'] == 'ok' for c in answer['checks'])} of {len(answer['checks'])} checks ok"
    yield from (f"{c['name']} {c['result']}: {c['found']}" for c in answer["checks"] if c["result"] != "ok")


def suite(kit: Kit) -> Iterator[str]:
    """The project's own tests that need a GPU."""
    marked = [p for p in (ROOT / "tests").rglob("test_*.py") if "mark.gpu\n" in p.read_text("utf-8")]
    pytest = ("-m", "pytest", "--run-gpu", "-m", "gpu", "-p", "no:cacheprovider", "--tb=short")
    # A GPU of the stand-ins runs no kernel of PyTorch's.
    only = ("--collect-only",) if kit.rehearsal else ()
    status, out = kit.run(sys.executable, *pytest, *only, *sorted(marked), cwd=ROOT)
    lines = out.splitlines()
    yield next((line.strip("= ") for line in reversed(lines) if " in " in line), f"status {status}")
    yield from (line for line in lines if line.startswith(("FAILED", "ERROR")))


def looks(kit: Kit) -> Iterator[str]:
    """`why` on each planted fault, beside nvidia-smi and what the program itself saw."""
    for fault in ("loader",) if kit.rehearsal else EXPECTED:
        here, kept = kit.work / f"why-{fault}", kit.kept / "why" / fault
        here.mkdir()
        workers = ["--workers=0"] if fault == "loader" else []
        argv = kit.training(fault, *workers, "--own=own.jsonl")
        with open(here / "nvidia-smi.csv", "w", encoding="utf-8") as file, started(_SMI, file, file, here):
            ran = kit.gpudebug("--json", "why", "--", *argv, cwd=here)
        run = here / "gpudebug-why-1"
        if ran[0] or not (run / "evidence.json").exists() or not (here / "own.jsonl").exists():
            yield f"{fault}: nothing to compare, {outcome(ran)}"
            continue
        (here / "causes.json").write_text(json.dumps(json.loads(ran[1])["causes"]))
        for path in (run / "evidence.json", run / "samples.csv", *here.glob("*.[jc]*")):
            kit.keep(path, f"why/{fault}/{path.name}")
        yield f"{fault}: {look_line(kept)}"


def campaign(kit: Kit) -> Iterator[str]:
    """Four runs of one command, whose noise is compared with what is assumed, and a change that helps."""
    here, length = kit.work / "campaign", "6s" if kit.rehearsal else "10s"
    here.mkdir()
    for path in (TRAIN, STANDIN) if kit.rehearsal else (TRAIN,):
        shutil.copy(path, here)
    python, program, *words = kit.training("loader", "--workers=0")
    train = [python, Path(program).name, *words]
    author = ("-c", "user.name=kit", "-c", "user.email=kit@example.org")
    for words in (["init", "-q"], ["add", "-A"], [*author, "commit", "-qm", "A training"]):
        kit.run("git", *words, cwd=here)
    kit.gpudebug("init", "--command", shlex.join(train), cwd=here)
    with open(here / "gpudebug.yaml", "a", encoding="utf-8") as file:
        file.write(f"\nprotocol: {{run_for: {length}, max_runs: 3}}\n")
    kit.gpudebug("settings", "--accept", cwd=here)
    ran = kit.gpudebug("next", cwd=here)
    kit.gpudebug("baseline", "--aa", "--runs=2", cwd=here)
    runs = [json.loads(path.read_text()) for path in sorted(here.glob("runs/*/evidence.json"))]
    if len(runs) < 2:
        raise LackingError(f"no baseline: {outcome(ran)}")
    (kit.work / "baseline.json").write_text(json.dumps(runs))
    kit.keep(kit.work / "baseline.json", "baseline.json")
    kit.measured |= noise(runs)
    yield f"utilisation of {len(runs)} runs: {', '.join(shown(e['utilisation']) for e in runs)} %"
    texts = ("--title", "Loader workers", "--description", "The GPU waits.", "--method", "Eight workers.")
    kit.gpudebug("propose", *texts, "--set", "--workers=8", cwd=here)
    status, out = kit.gpudebug("next", cwd=here)
    verdict = next((line for line in out.splitlines() if line.startswith("Verdict")), None)
    yield verdict or f"no verdict, status {status}"
    yield f"verify: {outcome(kit.gpudebug('verify', cwd=here))}"


def traces(kit: Kit) -> Iterator[str]:
    """Profiled steps, eager and as replayed graphs."""
    for name, more in (("eager", ()), ("graph", ("--graph",)))[: 1 if kit.rehearsal else 2]:
        here = kit.work / f"trace-{name}"
        here.mkdir()
        argv = kit.training("launch", f"--tiny={20 if kit.rehearsal else 200}", "--steps=60", *more)
        profile = ("--torch-profile", "wait=20,warmup=3,active=5")
        ran = kit.gpudebug("sample", "-o", "samples.csv", *profile, "--", *argv, cwd=here)
        trace = next(iter(sorted(here.glob("*.trace*.json.gz"))), None)
        if trace is None:
            yield f"{name}: no trace, {outcome(ran)}"
            continue
        kit.keep(trace, f"trace/{name}.json.gz")
        yield f"{name}: {trace_line(trace)}; analyze {outcome(kit.gpudebug('analyze', trace))}"


def sampler(kit: Kit) -> Iterator[str]:
    """The sampler's processor time, and the steps of a launch-bound training with it and without, in turn."""
    seconds, pairs = (1.5, 1) if kit.rehearsal else (4.0, 3)
    spec, own = devices.resolve("auto", os.environ).spec, kit.work / "steps.jsonl"
    costs, ratios = list[float](), list[float]()
    argv = kit.training("launch", "--workers=2", f"--own={own}")
    with started(argv, subprocess.DEVNULL, subprocess.DEVNULL, kit.work) as child:
        while child.poll() is None and time.monotonic() < kit.until - 20 and _steps(own)[20:] == []:
            time.sleep(0.2)
        for n in range(pairs):
            time.sleep(seconds)
            before = _median_s(own, seconds)
            (folder := kit.work / f"sampler-{n}").mkdir()
            with SamplerProcess(folder, spec, interval=0.1, log=os.devnull, root_pid=os.getpid()) as one:
                one.launch(child.pid)
                one.wait_for_rows(3)
                used = _cpu_s(one.process.pid)
                time.sleep(seconds)
                costs.append(100 * (_cpu_s(one.process.pid) - used) / seconds)
                ratios.append(_median_s(own, seconds) / before)
                one.stop()
    kit.measured["sampler_core"] = statistics.fmean(costs)
    yield f"a step takes {100 * (statistics.fmean(ratios) - 1):+.1f} % with it, on average of {pairs} pairs"


def _steps(own: Path) -> list[float]:
    lines = own.read_text().splitlines()[1:-1] if own.exists() else []
    return [json.loads(line)["t"] for line in lines]


def _median_s(own: Path, seconds: float) -> float:
    """The median of the steps in the last seconds."""
    steps = [t for t in _steps(own) if t > time.monotonic() - seconds]
    if len(steps) < 3:
        raise LackingError(f"{len(steps)} steps in {seconds:g} s are too few to compare")
    return statistics.median(b - a for a, b in pairwise(steps))


def _cpu_s(pid: int) -> float:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


class Part(NamedTuple):
    """`needs` are fields of `Machine`; `limit_s` is its own, `least_s` what the parts before leave it."""

    run: Callable[[Kit], Iterator[str]]
    needs: tuple[str, ...]
    limit_s: float
    least_s: float


PARTS = {
    "recordings": Part(recordings, ("gpu", "torch", "smi"), 80, 40),
    "doctor": Part(doctor, ("gpu",), 200, 60),
    "tests": Part(suite, ("gpu", "torch"), 90, 20),
    "why": Part(looks, ("gpu", "torch", "alone"), 180, 60),
    "campaign": Part(campaign, ("gpu", "torch", "alone", "whole"), 220, 80),
    "trace": Part(traces, ("gpu", "torch"), 70, 30),
    "sampler": Part(sampler, ("gpu", "torch", "alone"), 50, 25),
}
