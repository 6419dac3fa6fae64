"""What one training process tells of itself: counters in memory, lines in `probe.jsonl` of the run folder.

The rules for a watcher's wrapper: look at `recorder.on` first and, where it is false, only call the
original; call the original exactly once and pass its result or exception through untouched; keep errors of
the own bookkeeping away from the caller (`recorder.failed(error)`); import nothing at exit.

A line is a JSON object with `kind`, `pid` and `t` (time.monotonic()): `start`, `beat`, `facts`, `sites`,
`off`, `end`.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import math
import os
import sys
import time
from collections.abc import Callable
from typing import Any

FILE = "probe.jsonl"
VERSION = 1
# All processes of a run together; what is written at the end has a part of its own.
LARGEST = 4 << 20
RESERVE = 256 << 10
BEAT_S = 0.5
# A process may write this many times as long as the beats come at one distance; then it doubles.
LEVELS = 12
# Facts and sites are written with every such beat only.
RARE = 20
MOST_SITES = 1000
SITES_TOLD = 20
OTHER_SITES = ("(other)", 0, "(other)", "")

Site = tuple  # (file, line, kind, device)


class Recorder:
    """One a process. `on` from the first sign of training in it, until an error of ours or its end.

    `counters` are cumulative; one that cannot be known in this process is absent. `facts` hold JSON values
    and may be set before `on`. `steps` counts iterations. In a forked child everything begins anew.
    """

    def __init__(self, run: str, torch: Any) -> None:
        self.on = False
        self.counters: dict[str, float] = {}
        self.facts: dict[str, Any] = {}
        self.sites: dict[Any, list[float]] = {}
        self.optimizers: dict[int, int] = {}
        self.steps = 0
        # Above 0 while a batch is fetched in a thread that trains: what runs then is loading. See loader.
        self.in_loader = 0
        # What the wrappers share: see calls.
        self.calls: Any = None
        self._torch = torch
        self._path = os.path.join(run, FILE)
        self._refused = False
        self._ended = False
        self._began: list[Callable[[], None]] = []
        self._stepped: list[Callable[[int], None]] = []
        self._fetched: list[Callable[[], None]] = []
        self._refresh: list[Callable[[], None]] = []
        self._ending: list[Callable[[], None]] = []
        self._anew()
        os.register_at_fork(after_in_child=self._forked)

    def _anew(self) -> None:
        self.counters.clear()
        self.facts.clear()
        self.sites.clear()
        self.optimizers.clear()
        self.on = False
        self.steps = 0
        self.in_loader = 0
        self._pid = os.getpid()
        self._hist: dict[int, int] = {}
        self._last_step = 0.0
        self._next_beat = 0.0
        self._interval = BEAT_S
        self._beats = 0
        self._written = 0
        self._share = LARGEST
        self._told_facts = ""

    def _forked(self) -> None:
        self._anew()

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

    def before_beat(self, callback: Callable[[], None]) -> None:
        """Call it just before counters and facts are written; at exit too, where nothing may be imported."""
        self._refresh.append(callback)

    def on_end(self, callback: Callable[[], None]) -> None:
        """Call it once, as a process that trains ends or as everything is switched off in it."""
        self._ending.append(callback)

    def tell(self, kind: str, **entries: Any) -> None:
        """Write a line of a kind of the caller's own; OSError where it cannot be written."""
        self._append([self._line(kind, **entries)])

    def add(self, name: str, amount: float = 1) -> None:
        """Add to a counter."""
        self.counters[name] = self.counters.get(name, 0) + amount

    def add_site(self, file: str, line: int, kind: str, device: str, seconds: float) -> None:
        """Count one call at this place; of very many places the rest is counted together."""
        key = (file, line, kind, device)
        entry = self.sites.get(key)
        if entry is None:
            if len(self.sites) >= MOST_SITES:
                key = OTHER_SITES
            entry = self.sites.setdefault(key, [0, 0.0])
        entry[0] += 1
        entry[1] += seconds

    def begin(self) -> bool:
        """The first sign of training in this process; whether it is recorded. Never in a loader's worker."""
        if self.on or self._refused:
            return self.on
        try:
            if self._in_worker():
                self._refused = True
                return False
            self.on = True
            self._at_exit()
            self._write([self._start()])
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
            if self._last_step:
                bucket = math.floor(32 * math.log2(max(now - self._last_step, 1e-6) / 1e-6))
                self._hist[bucket] = self._hist.get(bucket, 0) + 1
            self._last_step = now
            for callback in self._stepped:
                callback(self.steps)
            if now >= self._next_beat and self.on:
                self._beat(now)
        except Exception as error:  # noqa: BLE001
            self.failed(error, "after an iteration")

    def fetched(self) -> None:
        """A loader has handed over a batch."""
        try:
            for callback in self._fetched:
                callback()
        except Exception as error:  # noqa: BLE001
            self.failed(error, "after a fetch")

    def failed(self, error: BaseException, where: str = "") -> None:
        """An error of ours: everything is switched off, and why is noted."""
        self.off(described(error, where))

    def off(self, why: str) -> None:
        """Switch everything off for good, and note why."""
        trained, self.on = self.on, False
        if not self._refused:
            self._refused = True
            # A folder that cannot be written: there is nowhere to say so.
            with contextlib.suppress(Exception):
                self._append([self._line("off", why=why)])
                for callback in self._ending if trained else ():
                    callback()

    # Lines

    def _start(self) -> str:
        argv = getattr(sys, "argv", None) or [""]
        return self._line(
            "start",
            version=VERSION,
            ppid=os.getppid(),
            t0=_number(os.environ.get("GPUDEBUG_T0"), float),
            **self._ranks(),
            argv0=str(argv[0]),
            python=".".join(map(str, sys.version_info[:3])),
            torch=str(getattr(self._torch, "__version__", "")) or None,
        )

    def _ranks(self) -> dict[str, int | None]:
        """Which of several training processes this is."""
        ranks = {
            name: _number(os.environ.get(name.upper()), int) for name in ("rank", "local_rank", "world_size")
        }
        distributed = getattr(self._torch, "distributed", None)
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            ranks["rank"], ranks["world_size"] = distributed.get_rank(), distributed.get_world_size()
        others = max((ranks["world_size"] or 1) - 1, 0)
        if others:
            # The first has the half, the others the rest.
            self._share = LARGEST // 2 if not ranks["rank"] else LARGEST // 2 // others
        return ranks

    def _beat(self, now: float) -> None:
        lines = self._told("beat", rare=self._beats % RARE == 0)
        if self._written + sum(map(len, lines)) > self._share - RESERVE:
            self._next_beat = math.inf
            return
        self._write(lines)
        self._beats += 1
        level = (LEVELS * self._written) // max(self._share - RESERVE, 1)
        self._interval = BEAT_S * 2**level
        self._next_beat = now + self._interval

    def _told(self, kind: str, rare: bool) -> list[str]:
        for callback in self._refresh:
            callback()
        hist, self._hist = self._hist, {}
        counters = {name: round(value, 6) for name, value in self.counters.items()}
        lines = [self._line(kind, steps=self.steps, counters=counters, hist=hist, opt=self.optimizers)]
        if rare:
            facts = json.dumps(self.facts, default=str)
            if facts != self._told_facts:
                self._told_facts = facts
                lines.append(self._line("facts", facts=self.facts))
            if self.sites:
                most = sorted(self.sites.items(), key=lambda entry: -entry[1][1])[:SITES_TOLD]
                lines.append(self._line("sites", sites=[[*key, n, round(s, 6)] for key, (n, s) in most]))
        return lines

    def _line(self, kind: str, **entries: Any) -> str:
        told = {"kind": kind, "pid": self._pid, "t": round(time.monotonic(), 6), **entries}
        return json.dumps(told, default=str, separators=(",", ":")) + "\n"

    def _write(self, lines: list[str]) -> None:
        """OSError switches us off: a folder that cannot be written is no trouble of the training's."""
        try:
            self._append(lines)
        except OSError as error:
            self.off(described(error, "writing"))

    def _append(self, lines: list[str]) -> None:
        # Opened each time: a descriptor kept open may be closed, and its number used, by the training.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        fd = os.open(self._path, flags, 0o600)
        try:
            size = os.fstat(fd).st_size
            for line in lines:
                data = line.encode("ascii")
                if size + len(data) <= LARGEST:
                    os.write(fd, data)
                    size += len(data)
                    self._written += len(data)
        finally:
            os.close(fd)

    # The process

    def _in_worker(self) -> bool:
        worker = sys.modules.get("torch.utils.data._utils.worker")
        return getattr(worker, "_worker_info", None) is not None

    def _at_exit(self) -> None:
        atexit.register(self._end)
        parent = getattr(sys.modules.get("multiprocessing.process"), "parent_process", None)
        util = sys.modules.get("multiprocessing.util")
        if parent is not None and util is not None and parent() is not None:
            # A forked child of multiprocessing leaves by os._exit.
            util.Finalize(None, self._end, exitpriority=0)

    def _end(self) -> None:
        # Nothing may be imported here: see `loaded`.
        try:
            if self.on and self._pid == os.getpid():
                self.on = False
                self._refused = True
                for callback in self._ending:
                    callback()
                self._append(self._told("end", rare=True))
        except BaseException:  # noqa: BLE001, S110 - a training never fails or prints because it is watched
            pass


def _number(text: str | None, kind: Callable[[str], Any]) -> Any:
    try:
        return None if text is None else kind(text)
    except ValueError:
        return None


def described(error: BaseException, where: str) -> str:
    """`ValueError: why (installing steps; recorder.py:12)`."""
    at = ""
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        at = f"{os.path.basename(code.co_filename)}:{trace.tb_lineno}"
        trace = trace.tb_next
    places = "; ".join(filter(None, (where, at)))
    return f"{type(error).__name__}: {error}"[:300] + (f" ({places})" if places else "")
