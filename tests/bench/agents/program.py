"""A program of the zoo as an agent finds it, what mends it, and a stopwatch that gpudebug has no part in."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import threading
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from tests.bench.agents.outcome import Ratio, ratio_of
from tests.support import zoo
from tests.support.campaigns import environment

from gpudebug.core import config, progress

PAIRS = 3
"""Runs of each side that the stopwatch takes, in turn."""
_STEP = re.compile(r"(?:\bstep\s*[=:]|^\[)\s*(\d+)")
_FIRST_STEP = 10
_TICK_S = 0.25


@dataclass(frozen=True)
class Idea:
    """A change with the words that propose it; `flags` are set, FLAG=VALUE."""

    title: str
    description: str
    method: str
    flags: tuple[str, ...]


@dataclass(frozen=True)
class EvalProgram:
    """One program in `folder`, an own repository without candidates; `right` is what mends it."""

    name: str
    folder: Path
    argv: tuple[str, ...]
    env: dict[str, str]
    right: Idea


def prepare(name: str, folder: Path) -> EvalProgram:
    """Make a campaign of a zoo program whose ideas are the agent's own; its settings are pinned."""
    entries = progress.parse(zoo.files(name)["progress.md"].encode(), "progress.md").hypotheses
    fix = zoo.truth(name).fix[0]
    campaign = zoo.make_zoo_campaign(folder, name)
    campaign.keep_candidates()
    campaign.pin()
    workload = config.load(zoo.files(name)["gpudebug.yaml"], "gpudebug.yaml").workload
    right = next(entry for entry in entries if entry.number == fix)
    return EvalProgram(name, folder, tuple(workload.argv()), dict(workload.env), _idea(right))


def _idea(entry: progress.HypothesisEntry) -> Idea:
    words = shlex.split(entry.intervention or "")
    flags = tuple(word for option, word in pairwise(words) if option == "--set")
    return Idea(entry.title, entry.description or entry.title, entry.test_method or "Try it.", flags)


def with_change(argv: tuple[str, ...], flags: tuple[str, ...]) -> list[str]:
    """The command with these flags, as a person would type it."""
    names = {flag.partition("=")[0] for flag in flags}
    return [*(word for word in argv if word.partition("=")[0] not in names), *flags]


@dataclass(frozen=True)
class Timed:
    """One run outside gpudebug: its output, its steps a second after the first ten, and its seconds."""

    text: str
    rate: float
    seconds: float


def timed(program: EvalProgram, argv: list[str]) -> Timed:
    """Run a command to its end; ValueError if it failed or printed too few steps."""
    env = {**environment(), **program.env}
    began = time.monotonic()
    seen: list[tuple[float, int]] = []
    lines: list[str] = []
    with subprocess.Popen(
        argv, cwd=program.folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if found := _STEP.search(line):
                seen.append((time.monotonic(), int(found[1])))
    seen = [(at, step) for at, step in seen if step >= _FIRST_STEP]
    if process.returncode or len(seen) < 2 or seen[-1][1] <= seen[0][1]:
        raise ValueError(f"{program.name} ended with {process.returncode} after {len(seen)} lines of steps")
    (start, first), (end, last) = seen[0], seen[-1]
    return Timed("".join(lines), (last - first) / (end - start), time.monotonic() - began)


def stopwatch(program: EvalProgram) -> Ratio:
    """What the right change is worth: both commands in turn, by their own steps."""
    changed = with_change(program.argv, program.right.flags)
    return ratio_of(
        [(timed(program, list(program.argv)).rate, timed(program, changed).rate) for _ in range(PAIRS)]
    )


class Watch:
    """Counts the seconds in which trainings of one folder live, whoever started them; a context."""

    def __init__(self, folder: Path) -> None:
        self.seconds = 0.0
        self._folder = os.path.realpath(folder)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._count, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _count(self) -> None:
        last = time.monotonic()
        while not self._ended.wait(_TICK_S):
            now = time.monotonic()
            self.seconds += len(self._leaders()) * (now - last)
            last = now

    def _leaders(self) -> set[int]:
        """The processes that train here, without those that they started themselves."""
        parents = dict(filter(None, map(self._parent, filter(str.isdigit, os.listdir("/proc")))))
        return {pid for pid, parent in parents.items() if parent not in parents}

    def _parent(self, pid: str) -> tuple[int, int] | None:
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if not any(os.path.basename(word) == b"train.py" for word in words[:6]):
                return None
            place = os.path.realpath(f"/proc/{pid}/cwd")
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return None
        inside = place == self._folder or place.startswith(f"{self._folder}/")
        return (int(pid), int(stat.rpartition(")")[2].split()[1])) if inside else None
