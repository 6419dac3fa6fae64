"""PyTorch's profiler over a few iterations of a training that was not written for it.

GPUDEBUG_TORCH_PROFILE says which iterations and what else to record: `wait=2,warmup=2,active=4` and after
these `record_shapes`, `with_stack`, `profile_memory`. The trace goes to the run folder as `trace.json.gz`,
`trace.rankN.json.gz` of the other ranks. Whatever happens to it, and how much slower the profiler made the
iterations, is reported in lines of kind `torch_profile`; the last one counts.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import shutil
import time
from collections.abc import Callable
from typing import Any

from .recorder import Recorder, described

VARIABLE = "GPUDEBUG_TORCH_PROFILE"
KIND = "torch_profile"
# What every profiler of PyTorch calls as it starts.
STARTS = ("_prepare_profiler", "_enable_profiler")
# The first iterations of a training are slower than those that follow; so is the one after an export.
UNSTEADY = 2
# Iterations after the recorded ones that tell how long one takes without the profiler.
AFTER = 8
FEWEST = 3
COMPRESSION = 5
SUFFIX = ".json.gz"


def install(torch: Any, recorder: Recorder) -> None:
    """Profile this process once it trains, where GPUDEBUG_TORCH_PROFILE asks for it."""
    spec = os.environ.get(VARIABLE)
    if not spec:
        return
    try:
        profile = _Profile(torch, recorder, os.environ["GPUDEBUG_RUN_DIR"], spec)
        profile.guard()
    except Exception as error:  # noqa: BLE001 - the probe's other reports do not depend on it
        why = described(error, "preparing to profile")
        recorder.on_begin(lambda: recorder.tell(KIND, why=why))
        return
    os.register_at_fork(after_in_child=profile.forked)
    recorder.on_begin(profile.began)
    recorder.on_step(profile.stepped)
    recorder.on_end(profile.ended)


class _Profile:
    """One profile of one process: waits, warms up, records, exports, compares, and is done."""

    def __init__(self, torch: Any, recorder: Recorder, folder: str, spec: str) -> None:
        self.torch = torch
        self.recorder = recorder
        self.folder = folder
        parts = [part.partition("=") for part in spec.split(",")]
        counts = {name: int(value) for name, is_, value in parts if is_}
        self.begins = counts["wait"]
        self.records = self.begins + counts["warmup"]
        self.ends = self.records + counts["active"]
        self.switches = [name for name, is_, _ in parts if not is_]
        self.ours = False
        self.originals: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {}
        self._anew()

    def _anew(self) -> None:
        self.pid = os.getpid()
        self.profiler: Any = None
        self.recording = False
        self.done = False
        self.mark: Any = None
        self.iteration = 0
        self.last = 0.0
        self.before: list[float] = []
        self.active: list[float] = []
        self.after: list[float] = []
        self.report: dict[str, Any] = {}

    def forked(self) -> None:
        """A forked child may train as well; what the other one is doing stays with that."""
        self._anew()
        self.guard()

    def began(self) -> None:
        """The first iteration begins."""
        if not self.done:
            self._advance()

    def stepped(self, _count: int) -> None:
        """An iteration has ended; the next one begins when this returns."""
        if self.done:
            return
        now = time.perf_counter()
        if self.last:
            self._timed(now - self.last)
        self.iteration += 1
        self._advance()

    def _advance(self) -> None:
        """What is due between two iterations; none of it counts for either."""
        try:
            self._due()
        except Exception as error:  # noqa: BLE001 - a training never fails because it is profiled
            self._give_up(described(error, "profiling"))
        self.last = time.perf_counter()

    def _timed(self, seconds: float) -> None:
        """Keep how long the iteration took that has just ended."""
        if UNSTEADY <= self.iteration < self.begins:
            self.before.append(seconds)
        elif self.records <= self.iteration < self.ends:
            self.active.append(seconds)
        elif self.iteration > self.ends:
            self.after.append(seconds)

    def _due(self) -> None:
        self._leave_mark()
        if self.profiler is None and self.begins <= self.iteration < self.ends:
            self._prepare()
        if self.profiler is not None and not self.recording and self.iteration >= self.records:
            self._start()
        if self.iteration == self.ends:
            self._save()
        elif self.recording:
            self._enter_mark()
        elif len(self.after) >= max(AFTER, 2 * (self.ends - self.records)):
            self._close()

    def _prepare(self) -> None:
        profiler = self.torch.profiler
        activities = [profiler.ProfilerActivity.CPU]
        if self.torch.cuda.is_available() and self.torch.cuda.is_initialized():
            activities.append(profiler.ProfilerActivity.CUDA)
        made = profiler._KinetoProfile(activities=activities, **dict.fromkeys(self.switches, True))
        self._as_ours(made.prepare_trace)
        self.profiler = made

    def _start(self) -> None:
        self._as_ours(self.profiler.start_trace)
        self.recording = True

    def _as_ours(self, start: Callable[[], None]) -> None:
        self.ours = True
        try:
            start()
        finally:
            self.ours = False

    def _enter_mark(self) -> None:
        self.mark = self.torch.profiler.record_function(f"ProfilerStep#{self.iteration}")
        self.mark.__enter__()

    def _leave_mark(self) -> None:
        mark, self.mark = self.mark, None
        if mark is not None:
            mark.__exit__(None, None, None)

    def _save(self) -> None:
        profiler, self.profiler, self.recording = self.profiler, None, False
        profiler.stop_trace()
        path = self._path()
        plain = os.path.join(self.folder, f".trace.{self.pid}.json")
        packed = plain + ".gz"
        try:
            profiler.export_chrome_trace(plain)
            _pack(plain, packed)
            os.replace(packed, path)
        finally:
            for left in (plain, packed):
                with contextlib.suppress(OSError):
                    os.unlink(left)
        self._tell(file=os.path.basename(path), bytes=os.path.getsize(path))

    def _path(self) -> str:
        """Return where the trace goes; two trainings without a rank do not share a file."""
        rank = self._rank()
        path = os.path.join(self.folder, f"trace.rank{rank}" if rank else "trace")
        if os.path.exists(path + SUFFIX):
            path += f".pid{self.pid}"
        return path + SUFFIX

    def _rank(self) -> int:
        distributed = self.torch.distributed
        if distributed.is_available() and distributed.is_initialized():
            return int(distributed.get_rank())
        rank = os.environ.get("RANK", "")
        return int(rank) if rank.isdigit() else 0

    def _close(self) -> None:
        self._tell()
        self.done = True
        self._unguard()

    def _tell(self, **facts: Any) -> None:
        """Write what is known so far."""
        plain = self.after if len(self.after) >= FEWEST else self.before + self.after
        self.report.update(facts, steps=len(self.active))
        if self.active:
            self.report["active_step_s"] = _mean(self.active)
        if len(plain) >= FEWEST:
            self.report["plain_step_s"] = _mean(plain)
        if self.active and len(plain) >= FEWEST:
            self.report["overhead"] = overhead(self.active, plain)
        self.recorder.tell(KIND, **self.report)

    def _give_up(self, why: str) -> None:
        """Stop for good, keeping nothing of what was being recorded."""
        self.done = True
        try:
            self.report.update(why=why)
            self.recorder.tell(KIND, **self.report)
            self._abandon()
        except Exception:  # noqa: BLE001, S110 - there is nothing left to do for it
            pass
        self._unguard()

    def _abandon(self) -> None:
        profiler, self.profiler = self.profiler, None
        if profiler is not None:
            self._leave_mark()
            if not self.recording:  # What was prepared can only be stopped once it runs.
                self._as_ours(profiler.start_trace)
            profiler.stop_trace()

    def ended(self) -> None:
        """Nothing more is heard of the training: save what was recorded, and say what is missing."""
        if self.done:
            return
        try:
            if "file" not in self.report:
                self._cut_short()
            else:
                self._close()
        except Exception as error:  # noqa: BLE001 - nor does one that ends
            self._give_up(described(error, "profiling"))

    def _cut_short(self) -> None:
        why = f"the training ended after {self.iteration} iterations"
        if not self.active:
            self._give_up(why + ", before one was recorded")
        elif self.profiler is None:
            self._give_up(why + ", while its trace was written")
        else:
            self.report["why"] = why
            self._leave_mark()
            self._save()
            self._close()

    def guard(self) -> None:
        """Step aside where the training starts a profiler of its own: there can only be one."""
        module = self.torch.autograd.profiler
        for name in STARTS:
            original = getattr(module, name)
            if name not in self.originals or original is not self.originals[name][1]:
                self.originals[name] = original, self._guarded(original)
                setattr(module, name, self.originals[name][1])

    def _guarded(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def start(*args: Any, **kwargs: Any) -> Any:
            if not self.ours and not self.done:
                self._step_aside()
            return original(*args, **kwargs)

        return start

    def _step_aside(self) -> None:
        if "file" not in self.report:
            self._give_up(f"the training started a profiler of its own in iteration {self.iteration}")
            return
        try:
            self._close()
        except Exception as error:  # noqa: BLE001 - theirs starts whatever becomes of ours
            self._give_up(described(error, "profiling"))

    def _unguard(self) -> None:
        module = self.torch.autograd.profiler
        for name, (original, guarded) in self.originals.items():
            if getattr(module, name, None) is guarded:
                setattr(module, name, original)


def overhead(active: list[float], plain: list[float]) -> float:
    """Return how much longer the `active` iterations took than the `plain` ones, as a share of these.

    The smaller of what means and medians say: one slow iteration is not the profiler's doing, and where a
    loader hands over several batches at once the median says nothing of the wait for them.
    """
    return min(_mean(active) / _mean(plain), _median(active) / _median(plain)) - 1.0


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _median(values: list[float]) -> float:
    return (sorted(values)[len(values) // 2] + sorted(values)[(len(values) - 1) // 2]) / 2


def _pack(plain: str, packed: str) -> None:
    fd = os.open(packed, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as raw, open(plain, "rb") as source:
        target = gzip.GzipFile("", "wb", COMPRESSION, raw)
        shutil.copyfileobj(source, target, 1 << 20)
        target.close()
