"""The process that runs in the place of a training: it looks at one that runs already, until that ends.

The warden starts it (`command`) as the job of a run, so that samples, log and records lie where those of any
run do. It copies what the training's own log grows by to its standard output, and writes what it sees of the
training's processes into the run's record: stacks as the probe does, and a line of kind `process` each.
Nothing of the training is changed, stopped or written to. An interrupt ends it: it tells what it has.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import stat
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from gpudebug.core.inside.attached.looks import MOST_STACKS, Looks, hottest_place, stacks_line
from gpudebug.core.text.shell_words import isolated_argv
from gpudebug.edges import opener
from gpudebug.edges.attach import counters, processes
from gpudebug.edges.attach.processes import ForeignProcess
from gpudebug.edges.attach.recorder import ProcessLook

RECORDS = "GPUDEBUG_RECORDS_DIR"
LAUNCH = "GPUDEBUG_T0"
RECORD = "probe.jsonl"

# Looks a second at the process that trains, and at every other one. Nearly all of what that costs is the
# start of a py-spy, two for each process whose states are seen: docs/benchmarks.md.
MAIN_RATE, RANK_RATE, WORKER_RATE = 4, 2, 2
SPAN_S = 45
TICK_S = 0.5
# What is looked at in a span: ranks first, then workers of the main process, one of them with its stacks.
MOST_RANKS, MOST_WORKERS = 32, 3
LONGEST_LINE = 60_000
_UNREAD, _ANOTHER = "py-spy read no stack", "the stacks of another worker were read"
LONGEST_PLACE = 200
LARGEST_LOG = 1 << 20
_ENV = ("RANK", "LOCAL_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "WORLD_SIZE")
_LONGEST_SOURCE = 120
_LARGEST_FILE = 4 << 20
_LONG_WORD = re.compile(r"[A-Za-z0-9_+/=-]{20,}")
_LITERAL = re.compile(r"\"[^\"\\]*\"|'[^'\\]*'")


class FollowOrder(NamedTuple):
    """What is followed: the root of a job by number and start, with the program of py-spy, None for none;
    `why` says why there is none, `allow` what to do about that."""

    pid: int
    start: int
    program: str | None
    why: str | None = None
    allow: str | None = None


def command(order: FollowOrder) -> tuple[str, ...]:
    """The argument list that runs the follower, whatever modules the working folder or PYTHONPATH hold."""
    folder = str(Path(__file__).resolve().parents[3])
    statement = f"from gpudebug.edges.attach import follower; sys.exit(follower.main({json.dumps(order)!r}))"
    return isolated_argv(sys.executable, [folder], statement)


def main(text: str) -> int:
    """Follow until the job ends or an interrupt comes; returns the exit status."""
    wake, woken = os.pipe()
    for fd in (wake, woken):
        os.set_blocking(fd, False)
    stopped: list[int] = []
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _frame: stopped.append(received))
    JobFollower(FollowOrder(*json.loads(text)), FollowRecord()).run(wake, lambda: bool(stopped))
    return 0


class FollowRecord:
    """The run's record: lines are added whole."""

    def __init__(self) -> None:
        self.t0 = float(os.environ.get(LAUNCH) or time.monotonic())
        self._path = os.path.join(os.environ[RECORDS], RECORD)

    def add(self, entry: dict[str, object]) -> None:
        data = (json.dumps(entry, separators=(",", ":")) + "\n").encode("ascii")
        fd = opener.descriptor(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(fd, data)
        finally:
            os.close(fd)


class Part(NamedTuple):
    """A process of the job as it is looked at. `of` is `training`, `rank`, `worker` or `other`."""

    process: ForeignProcess
    of: str
    rank: int | None


class JobFollower:
    """Looks at a job, span by span."""

    def __init__(self, order: FollowOrder, record: FollowRecord) -> None:
        self._order = order
        self._record = record
        self._parts: dict[int, Part] = {}
        self._first: dict[int, counters.CountedProcess] = {}
        self._last: dict[int, counters.CountedProcess] = {}
        self._states: dict[int, list[int]] = {}
        self._looks: dict[int, ProcessLook] = {}
        self._found: dict[int, dict[str, Any]] = {}
        self._spies_s = 0.0
        self._spans = 0
        self._log = _GrowingLog()

    def run(self, wake: int, stopped: Callable[[], bool]) -> None:
        """Until the job's root is gone, or `stopped` says so."""
        due = 0.0
        while not stopped() and self._alive():
            now = time.monotonic()
            if now >= due:
                self._end_span()
                self._begin_span()
                due = time.monotonic() + SPAN_S
            self._glance()
            self._log.copy()
            select.select([wake], [], [], TICK_S)
            with suppress(BlockingIOError):
                os.read(wake, 4096)
        self._end_span()
        self._log.copy()
        self._tell()

    def _alive(self) -> bool:
        root = processes.read(self._order.pid)
        return root is not None and root.alive and root.start == self._order.start

    def _begin_span(self) -> None:
        parts = parts_of(processes.family(self._order.pid))
        self._parts.update({part.process.pid: part for part in parts})
        self._log.follow([self._order.pid, *(part.process.pid for part in parts)])
        chosen = watched(parts)
        workers = [part.process.pid for part in chosen if part.of == "worker"]
        # Loader workers do one work: in each span another one is looked into, and all are counted.
        apart = {pid for n, pid in enumerate(workers) if n != self._spans % len(workers)}
        self._spans += 1
        for part in chosen:
            pid, main = part.process.pid, part.of == "training"
            rate = MAIN_RATE if main else WORKER_RATE if part.of == "worker" else RANK_RATE
            program = None if pid in apart else self._order.program
            look = ProcessLook(program, pid, rate=rate, seconds=SPAN_S, states=main or part.of == "worker")
            self._looks[pid] = look
            if look.before is not None:
                self._first.setdefault(pid, look.before)

    def _end_span(self) -> None:
        looks, self._looks = self._looks, {}
        for look in looks.values():
            look.ask()
        # The process that trains comes first: its stacks are the run's.
        for pid, look in looks.items():
            found = look.finish()
            until = time.monotonic()
            self._spies_s += look.cpu_s
            counted = counters.count(pid)
            if counted is not None:
                self._last[pid] = counted
            facts = self._found.setdefault(
                pid, {"looks": 0, "why": self._order.why, "allow": self._order.allow}
            )
            if found is None:
                if not facts["looks"]:
                    facts["why"] = look.failed or facts["why"] or (_UNREAD if look.spied else _ANOTHER)
                continue
            facts["looks"] += found.count
            facts["why"] = facts["allow"] = None
            self._take(self._parts[pid], found, facts, look.begun, until)

    def _take(self, part: Part, found: Looks, facts: dict[str, object], since: float, until: float) -> None:
        facts["loader"] = found.loader or facts.get("loader", "")
        place, share = hottest_place(found)
        facts |= {"place": place[:LONGEST_PLACE], "place_share": round(share, 4)}
        if found.worker and part.of == "other":
            self._parts[part.process.pid] = part = part._replace(of="worker")
        # What serves the training otherwise (an environment, a compiler) is no loader worker.
        if (part.of == "worker") != found.worker or part.of == "other":
            return
        pid, uid, cwd = part.process.pid, part.process.uid, processes.folder(part.process.pid)
        lines = {(one.stack.file, one.stack.line) for one in found.stacks if one.stack.at >= 0}
        known = {place: line_of(pid, uid, cwd, *place) for place in lines}
        most = MOST_STACKS
        while True:
            line = stacks_line(
                found, pid=pid, since=since, until=until, t0=self._record.t0, sources=known, most=most
            )
            if len(json.dumps(line)) <= LONGEST_LINE or most == 1:
                break
            most //= 2
        self._record.add(line)

    def _glance(self) -> None:
        """Note whether each first thread runs, waits, or waits for a disk."""
        for pid in self._looks:
            state = counters.state_of(pid, pid)
            if state is not None:
                seen = self._states.setdefault(pid, [0, 0])
                seen[0] += 1
                seen[1] += state == "D"

    def _tell(self) -> None:
        """A line for each process that was looked at, and one of what looking cost."""
        now = time.monotonic()
        for pid, before in self._first.items():
            part, after = self._parts[pid], self._last.get(pid)
            if after is None or after.at <= before.at:
                continue
            seen, waiting = self._states.get(pid, (0, 0))
            self._record.add(
                {
                    "kind": "process",
                    "pid": pid,
                    "t": round(now, 6),
                    "t0": self._record.t0,
                    "of": part.of,
                    "rank": part.rank,
                    "name": part.process.shown,
                    **counters.between(before, after, pid),
                    "disk_wait": round(waiting / seen, 4) if seen else None,
                    **counters.standing(pid),
                    **self._found.get(pid, {}),
                }
            )
        self._record.add(
            {
                "kind": "observer",
                "pid": os.getpid(),
                "t": round(now, 6),
                "t0": self._record.t0,
                "seconds": round(now - self._record.t0, 3),
                "cpu_s": round(self._spies_s + time.process_time(), 4),
                "ended": not self._alive(),
                "members": len(self._parts),
            }
        )


def parts_of(family: dict[int, ForeignProcess]) -> list[Part]:
    """Return the Python processes of a job, the one that trains first, then ranks, workers and others; of a
    job that runs no Python all processes."""
    python = {pid: one for pid, one in family.items() if processes.is_python(one) is not False} or family
    known = {pid: processes.variables(pid, _ENV) or {} for pid in python}
    ranks = {pid: rank for pid, env in known.items() if (rank := _rank(env)) is not None}
    workers = {pid for pid, one in python.items() if one.loads or _serves(one, python)}
    free = {pid: one for pid, one in python.items() if pid not in workers}
    ranked = {pid: rank for pid, rank in ranks.items() if pid in free and _launched(pid, ranks, python)}
    main: int | None
    if ranked:
        main = min(ranked, key=lambda pid: (ranked[pid], pid))
    else:
        main = max(free or python, key=lambda pid: python[pid].cpu_s, default=None)
    found = []
    for pid, one in python.items():
        of = (
            "training"
            if pid == main
            else "rank"
            if pid in ranked
            else "worker"
            if pid in workers
            else "other"
        )
        found.append(Part(one, of, ranked.get(pid)))
    order = ("training", "rank", "worker", "other")
    return sorted(found, key=lambda part: (order.index(part.of), part.rank or 0, -part.process.cpu_s))


def watched(parts: Sequence[Part]) -> list[Part]:
    """Return the processes that are looked at: of very many not all."""
    kept = {"training": 1, "rank": MOST_RANKS - 1, "worker": MOST_WORKERS, "other": 2}
    found = []
    for part in parts:
        if kept[part.of] > 0:
            kept[part.of] -= 1
            found.append(part)
    return found


def _rank(env: dict[str, str]) -> int | None:
    """Return the rank that a process was launched with, if it is one of several."""
    if env.get("WORLD_SIZE") == "1":
        return None
    words = [env.get(name, "") for name in _ENV[:-1]]
    return next((int(word) for word in words if word.isdecimal()), None)


def _launched(pid: int, ranks: dict[int, int], python: dict[int, ForeignProcess]) -> bool:
    """Tell whether a process is the outermost with its rank: those below have it by inheritance."""
    parent = python[pid].parent
    while parent in python:
        if ranks.get(parent) == ranks[pid]:
            return False
        parent = python[parent].parent
    return True


def _serves(process: ForeignProcess, python: dict[int, ForeignProcess]) -> bool:
    """Tell whether a process is a copy of the Python above it, as a loader's workers are."""
    above = python.get(process.parent)
    return above is not None and bool(process.argv) and process.argv == above.argv


class _GrowingLog:
    """The file that the job's standard output goes to, as far as it grows while one looks."""

    def __init__(self) -> None:
        self._fd: int | None = None
        self._at = 0

    def follow(self, pids: Sequence[int]) -> None:
        """Read the first of these processes' files from its end on."""
        for pid in pids if self._fd is None else ():
            path = processes.output_of(pid)
            if path is not None:
                with suppress(OSError):
                    self._fd = opener.descriptor(path, follow=True)
                    self._at = os.fstat(self._fd).st_size
                    return

    def copy(self) -> None:
        """What it grew by, to standard output."""
        if self._fd is None:
            return
        with suppress(OSError):
            size = os.fstat(self._fd).st_size
            # A file that is shorter was begun again.
            self._at = min(self._at, size)
            data = os.pread(self._fd, LARGEST_LOG, self._at)
            self._at += len(data)
            if data:
                os.write(1, data)


def line_of(pid: int, uid: int, cwd: str | None, file: str, line: int) -> str:
    """Return the text of a line without white space around it; "" if it cannot be read."""
    if file.startswith("<") or line < 1 or "\0" in file:
        return ""
    path = os.path.normpath(os.path.join(cwd or "/", file))
    text = _text(f"/proc/{pid}/root{path}", uid)
    lines = (text or "").split("\n", line)
    if len(lines) < line:
        return ""
    hidden = _LITERAL.sub(lambda literal: _LONG_WORD.sub("...", literal.group()), lines[line - 1].strip())
    return hidden[:_LONGEST_SOURCE]


def _text(path: str, uid: int) -> str | None:
    with suppress(OSError), opener.opened(path, follow=True) as file:
        status = os.fstat(file.fileno())
        if status.st_uid == uid or status.st_mode & stat.S_IROTH:
            return opener.read(file, _LARGEST_FILE).decode("utf-8", "replace")
    return None
