"""What one training process reports: counters in memory, lines in `probe.jsonl` of the run folder.

The rules for a watcher's wrapper: look at `recorder.on` first and, where it is false, only call the
original; call the original exactly once and pass its result or exception through untouched; keep errors of
the own bookkeeping away from the caller (`recorder.failed(error)`); import nothing at exit.

Lines are of the kinds `start`, `beat`, `facts`, `sites`, `off` and `end`, and what watchers `tell`; those of
kind `stacks` are the only ones that loader workers and processes which only infer write, too.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import math
import os
import sys
import time
from _thread import get_ident
from collections.abc import Callable
from typing import Any

from .record import RecordFile, surroundings

VERSION = 1
# Seconds between beats while the record is small; a rank other than 0 beats that many times as seldom.
BEAT_S = 0.5
OTHER_RANKS = 4
# With every so many beats facts and sites are reported, and early on with two more: a killed process
# reports no end.
RARE = 20
EARLY = (2, 6)
MOST_SITES = 1000
SITES_TOLD = 20
# Of torchrun and those like it, Open MPI, Slurm, MPICH and Intel MPI.
LOCAL_RANKS = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID", "MPI_LOCALRANKID")
OTHER_SITES = ("(other)", 0, "(other)", "")
# Thirty-two buckets an octave of step time: 2 % wide.
OCTAVE = 32
SHORTEST_S = 1e-6


class Recorder:
    """One a process. `on` from the first sign of training in it, until an error of ours or its end.

    `counters` are cumulative; one that cannot be known in this process is absent. `facts` hold JSON values
    and may be set before `on`. `optimizers` has each optimizer's steps by its index, `losses` what the next
    beat reports of the loss: `[step, value]`, None of one that is not finite; `steps` counts iterations. In a
    forked child everything begins again, once it trains itself.
    """

    def __init__(self, run: str, torch: Any) -> None:
        self.counters: dict[str, float] = {}
        self.facts: dict[str, Any] = {}
        self.sites: dict[Any, list[float]] = {}
        self.optimizers: dict[int, int] = {}
        self.losses: list[list[Any]] = []
        # What the wrappers share: see calls.
        self.calls: Any = None
        self._torch = torch
        self.run = run
        self.refused = False
        self._began: list[Callable[[], None]] = []
        self._stepped: list[Callable[[int], None]] = []
        self._fetched: list[Callable[[], None]] = []
        self._backward: list[Callable[[], None]] = []
        self._refresh: list[Callable[[], None]] = []
        self._ended: list[Callable[[], None]] = []
        self._called: list[Callable[[], object]] = []
        # What this process waited for the others of its training, in seconds; see `lone`.
        self.met: Callable[[], float | None] = lambda: None
        # Makes the next call of a module tell `called` once more.
        self.listen: Callable[[], None] = lambda: None
        self._anew()
        os.register_at_fork(after_in_child=self._anew)

    def _anew(self) -> None:
        for store in (self.counters, self.facts, self.sites, self.optimizers, self.losses):
            store.clear()
        self.on = False
        self.steps = 0
        # Above 0 while a batch is fetched in the thread that trains: what runs then is loading. See loader.
        self.in_loader = 0
        # The thread of the last step.
        self.thread: int | None = None
        self._record = RecordFile(self.run)
        self._hist: dict[int, int] = {}
        self._last_step: float | None = None
        self._next_beat = 0.0
        self._beat_s = BEAT_S
        self._beats = 0
        self._facts_told = ""

    # For watchers

    def on_begin(self, callback: Callable[[], None]) -> None:
        """Call it when the training begins in this process, and again in a forked child that trains."""
        self._began.append(callback)

    def on_step(self, callback: Callable[[int], None]) -> None:
        """Call it with the count of iterations at the end of each."""
        self._stepped.append(callback)

    def on_fetch(self, callback: Callable[[], None]) -> None:
        """Call it each time a loader has handed over a batch."""
        self._fetched.append(callback)

    def on_backward(self, callback: Callable[[], None]) -> None:
        """Call it each time a backward has ended: of the training, or before that has begun."""
        self._backward.append(callback)

    def before_beat(self, callback: Callable[[], None]) -> None:
        """Call it just before counters and facts are written; at exit too, where nothing may be imported."""
        self._refresh.append(callback)

    def on_end(self, callback: Callable[[], None]) -> None:
        """Call it once, as a process that trains ends or as everything is switched off in it.

        `on` is false by then, the last line not yet written; nothing may be imported there.
        """
        self._ended.append(callback)

    def on_call(self, callback: Callable[[], object]) -> None:
        """Call it when a module is called before training begins: once, and again after `listen`."""
        self._called.append(callback)

    def add(self, name: str, amount: float = 1) -> None:
        """Add to a counter."""
        self.counters[name] = self.counters.get(name, 0) + amount

    def tell(self, kind: str, **entries: Any) -> None:
        """Write a line of another kind; it must not be one of many."""
        self._write([self._record.line(kind, **entries)], last=True)

    def begin(self) -> bool:
        """The first sign of training in this process; whether it is recorded. Never in a loader's worker."""
        if self.on or self.refused:
            return self.on
        try:
            if self._in_worker():
                self.refused = True
                return False
            self.on = True
            at_end(self._end)
            self._write([self._start()], last=True)
            for callback in self._began:
                callback()
        except Exception as error:  # noqa: BLE001 - the training goes on without us
            self.failed(error, "beginning")
        return self.on

    def iteration(self) -> None:
        """An iteration has ended."""
        try:
            now = time.monotonic()
            self.steps += 1
            if self._last_step is not None:
                seconds = max(now - self._last_step, SHORTEST_S)
                bucket = math.floor(OCTAVE * math.log2(seconds / SHORTEST_S))
                self._hist[bucket] = self._hist.get(bucket, 0) + 1
            self._last_step = now
            self.thread = get_ident()
            for callback in self._stepped:
                callback(self.steps)
            if now >= self._next_beat and self.on:
                self._beat(now)
        except Exception as error:  # noqa: BLE001
            self.failed(error, "after an iteration")

    def fetched(self) -> None:
        """A loader has handed over a batch."""
        self._call(self._fetched, "after a fetch")

    def went_back(self) -> None:
        """A backward has ended."""
        self._call(self._backward, "after a backward")

    def called(self) -> None:
        """A module is called, and the training has not begun."""
        self._call(self._called, "before training")

    def _call(self, callbacks: list[Callable[[], Any]], where: str) -> None:
        try:
            for callback in callbacks:
                callback()
        except Exception as error:  # noqa: BLE001 - the training goes on without us
            self.failed(error, where)

    def failed(self, error: BaseException, where: str = "") -> None:
        """An error of ours: everything is switched off, and why is noted."""
        self.off(described(error, where))

    def off(self, why: str) -> None:
        """Switch everything off for good, and note why."""
        trained, self.on = self.on, False
        if not self.refused:
            self.refused = True
            self._call_ended(trained)
            # A folder that cannot be written: there is nowhere to say so.
            with contextlib.suppress(Exception):
                self._record.append([self._record.line("off", why=why)], last=True)

    # Lines

    def _start(self) -> str:
        argv = getattr(sys, "argv", None) or [""]
        ranks = self.ranks()
        self._beat_s = BEAT_S * OTHER_RANKS if ranks["rank"] else BEAT_S
        return self._record.line(
            "start",
            version=VERSION,
            ppid=os.getppid(),
            t0=_number(os.environ.get("GPUDEBUG_T0"), float),
            **ranks,
            argv0=str(argv[0]),
            python=".".join(map(str, sys.version_info[:3])),
            torch=str(getattr(self._torch, "__version__", "")) or None,
            met=self.met(),
            **surroundings(),
            **self._clock(),
        )

    def _clock(self) -> dict[str, list[float]]:
        # A folder that cannot be written: the next line says so.
        with contextlib.suppress(OSError):
            return self._record.clock()
        return {}

    def ranks(self) -> dict[str, int | None]:
        """Return which of several training processes this is."""
        environ = os.environ.get
        ranks = {name: _number(environ(name.upper()), int) for name in ("rank", "world_size")}
        local = next((text for name in LOCAL_RANKS if (text := environ(name)) is not None), None)
        ranks["local_rank"] = _number(local, int)
        distributed = getattr(self._torch, "distributed", None)
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            ranks["rank"], ranks["world_size"] = distributed.get_rank(), distributed.get_world_size()
        return ranks

    def _beat(self, now: float) -> None:
        for callback in self._refresh:
            callback()
        self._write(self._told("beat", rare=self._beats in EARLY or self._beats % RARE == 0))
        self._beats += 1
        self._next_beat = now + self._beat_s * self._record.rarity if self._record.rarity else math.inf

    def _told(self, kind: str, rare: bool) -> list[str]:
        hist, self._hist = self._hist, {}
        counters = {name: round(value, 6) for name, value in self.counters.items()}
        fields: dict[str, Any] = {"counters": counters, "hist": hist, "opt": self.optimizers}
        if self.losses:
            fields["losses"], self.losses = self.losses, []
        lines = [self._record.line(kind, steps=self.steps, **fields)]
        if rare:
            facts = json.dumps(self.facts, default=str)
            if facts != self._facts_told:
                self._facts_told = facts
                lines.append(self._record.line("facts", facts=self.facts))
            if self.sites:
                most = sorted(self.sites.items(), key=lambda entry: -entry[1][1])[:SITES_TOLD]
                sites = [[*key, count, round(seconds, 6)] for key, (count, seconds) in most]
                lines.append(self._record.line("sites", sites=sites))
        return lines

    def _write(self, lines: list[str], last: bool = False) -> None:
        """OSError switches us off: a folder that cannot be written is no trouble of the training's."""
        try:
            self._record.append(lines, last)
        except OSError as error:
            self.failed(error, "writing")

    # The process

    def _in_worker(self) -> bool:
        worker = sys.modules.get("torch.utils.data._utils.worker")
        return getattr(worker, "_worker_info", None) is not None

    def _end(self) -> None:
        # Nothing may be imported here: see `loaded`.
        try:
            if self.on and self._record.pid == os.getpid():
                self.on = False
                self.refused = True
                self._call_ended(True)
                # Once more: there may have been no room for them before.
                self._facts_told = ""
                _call_each(self._refresh)
                self._record.append(self._told("end", rare=True), last=True)
        except BaseException:  # noqa: BLE001, S110 - a training never fails or prints because it is watched
            pass

    def _call_ended(self, trained: bool) -> None:
        if trained:
            _call_each(self._ended)


def at_end(callback: Callable[[], None]) -> None:
    """Call it as this process ends by itself; in one that is forked later on, it may be called as well."""
    atexit.register(callback)
    parent = getattr(sys.modules.get("multiprocessing.process"), "parent_process", None)
    util = sys.modules.get("multiprocessing.util")
    if parent is not None and util is not None and parent() is not None:
        # A forked child of multiprocessing leaves by os._exit.
        util.Finalize(None, callback, exitpriority=0)


def _call_each(callbacks: list[Callable[[], None]]) -> None:
    """At the end, where one that fails must not keep the others from telling."""
    for callback in callbacks:
        with contextlib.suppress(Exception):
            callback()


def _number(text: str | None, kind: Callable[[str], Any]) -> Any:
    try:
        return None if text is None else kind(text)
    except ValueError:
        return None


def described(error: BaseException, where: str = "") -> str:
    """`ValueError: why (installing steps; steps.py:12)`."""
    at = ""
    trace = error.__traceback__
    while trace is not None:
        at = f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}"
        trace = trace.tb_next
    places = "; ".join(filter(None, (where, at)))
    return f"{type(error).__name__}: {error}"[:300] + (f" ({places})" if places else "")
