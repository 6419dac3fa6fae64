"""The lines of probe.jsonl -> the training processes of a run, each with its beats.

The training can write there too, may be killed in mid-line, and several of its processes write into one
file: a line that is not what the probe writes counts for nothing, and no number is believed unseen.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gpudebug.core.lazy import regex
from gpudebug.core.records.inside import ReadSite
from gpudebug.core.text.json_lines import parse

VERSION = 1
"""Of the lines that are understood here; `version` of a start line."""

LONGEST_LINE = 1 << 16
MOST_PROCESSES = 256
MOST_SITES = 20
MOST_LOSSES = 10_000
# What a process reports is shown and kept: it is cut to what a person would read.
_MOST_KEYS, _MOST_ITEMS, _LONGEST_TEXT, _DEEPEST = 40, 16, 200, 3
_LARGEST = 2.0**53
# What is half a character, and no byte of a file's name either: it could not be written again.
_HALF = regex("[\ud800-\udc7f\udd00-\udfff]")


class ProcessKey(NamedTuple):
    """Which process a line is of: hosts that share the run's folder number theirs alike. `host` is None in
    the lines of older probes."""

    host: str | None
    pid: int


@dataclass(frozen=True, slots=True)
class Beat:
    """A process at one moment, at the end of an iteration: `t` is seconds since launch.

    `steps` and `counters` are cumulative; `hist` counts the iterations since the beat before by the bucket
    of their time.
    """

    t: float
    steps: int
    counters: Mapping[str, float]
    hist: Mapping[int, int]


@dataclass(slots=True)
class TrainingProcess:
    """A training process. `start_s` is when it began to train, `steps` the iterations that it made in all.

    `boot` names the clock of its times. Of another clock than the run's first process has, whose offset was
    measured, `moved_s` is that offset; without one it is `aside`: `start_s` is 0, `moved_s` before what it
    took for it, and its times compare with no other's. `met_s` is what it waited for the others before it
    began, `ended_s` when it exited, `cores` what it may use and `affinity` which ones (`0-3,8`), `python` its
    version; `visible`, `omp` and `slurm_cpus` are CUDA_VISIBLE_DEVICES, OMP_NUM_THREADS and
    SLURM_CPUS_PER_TASK as it found them. `optimizers` is by which beat each had stepped. `losses` are some
    (iteration, loss on which it called backward), NaN for any that is not finite. None is unknown, or not
    set.
    """

    pid: int
    start_s: float
    t0: float
    rank: int | None = None
    world_size: int | None = None
    torch: str | None = None
    steps: int = 0
    beats: list[Beat] = field(default_factory=list)
    losses: list[tuple[int, float]] = field(default_factory=list)
    optimizers: dict[str, float] = field(default_factory=dict)
    facts: dict[str, object] = field(default_factory=dict)
    sites: tuple[ReadSite, ...] = ()
    off: str | None = None
    local_rank: int | None = None
    node: str | None = None
    boot: str | None = None
    aside: bool = False
    moved_s: float = 0.0
    met_s: float | None = None
    ended_s: float | None = None
    cores: float | None = None
    affinity: str | None = None
    python: str | None = None
    visible: str | None = None
    omp: str | None = None
    slurm_cpus: str | None = None
    host: str | None = None

    @property
    def key(self) -> ProcessKey:
        return ProcessKey(self.host, self.pid)

    def take(self, line: Mapping[str, Any]) -> None:
        """What one of its later lines says."""
        kind = line.get("kind")
        if kind in ("beat", "end"):
            self._beat(line, last=kind == "end")
        elif kind == "facts" and isinstance(line.get("facts"), dict):
            self.facts = _plain(line["facts"])
        elif kind == "sites" and isinstance(line.get("sites"), list):
            self.sites = tuple(site for entry in line["sites"] if (site := _site(entry)))[:MOST_SITES]
        elif kind == "off" and self.off is None:
            self.off = _why(line)

    def _beat(self, line: Mapping[str, Any], *, last: bool) -> None:
        moment, steps = finite(line.get("t")), _count(line.get("steps"))
        if moment is None or steps is None or steps < self.steps:
            return
        t = moment - self.t0
        self.losses += _losses(line.get("losses"))[: MOST_LOSSES - len(self.losses)]
        made = steps > self.steps
        self.steps = steps
        if last:
            self.ended_s = t
        # A process may exit long after its last iteration: its end is no moment of training, and may hold
        # iterations of unknown time.
        if last or not made or t <= (self.beats[-1].t if self.beats else self.start_s):
            return
        stepped = line.get("opt")
        for index in stepped if isinstance(stepped, dict) else ():
            if index in self.optimizers or len(self.optimizers) < _MOST_ITEMS:
                self.optimizers.setdefault(index, t)
        self.beats.append(Beat(t, steps, _counters(line.get("counters")), _histogram(line.get("hist"))))


@dataclass(frozen=True, slots=True)
class ProbeRecord:
    """The training processes in the order in which they began.

    `other_version` is a version of the record that is not understood here, of a process that is left out;
    `off` is why the probe switched itself off in one that had not begun to train.
    """

    processes: tuple[TrainingProcess, ...] = ()
    other_version: str | None = None
    off: str | None = None

    @property
    def main(self) -> TrainingProcess | None:
        """The process that made the most iterations; of equal ones that of rank 0, else the first."""
        return max(self.processes, key=lambda p: (p.steps, p.rank == 0), default=None)

    @property
    def ranks(self) -> tuple[TrainingProcess, ...]:
        """The processes that train together with the main one, by rank; itself alone if it has no rank.

        Of several with one rank those count that made half of its iterations or more, of these one on its
        node: each node may have a training of its own, and one that began again has processes that ended.
        """
        main = self.main
        if main is None:
            return ()

        def near(process: TrainingProcess) -> tuple[bool, bool, int]:
            return _as_far(process, main), process.node == main.node, process.steps

        peers: dict[int, TrainingProcess] = {}
        for process in self.processes:
            if process.rank is not None and process.world_size == main.world_size:
                before = peers.get(process.rank)
                if before is None or near(process) > near(before):
                    peers[process.rank] = process
        if main.rank is None or peers.get(main.rank) is not main:
            return (main,)
        return tuple(peers[rank] for rank in sorted(peers))

    @property
    def elsewhere(self) -> tuple[TrainingProcess, ...]:
        """Processes of other nodes that got as far as the main one, with ranks that those of `ranks` have: of
        trainings of their own."""
        main, found = self.main, {process.rank: process for process in self.ranks}
        return tuple(
            process
            for process in self.processes
            if main is not None and process.world_size == main.world_size and _as_far(process, main)
            if (peer := found.get(process.rank)) is not None and process.node != peer.node
        )


def _as_far(process: TrainingProcess, main: TrainingProcess) -> bool:
    return 2 * process.steps >= main.steps


def read_probe(text: str) -> ProbeRecord | None:
    """Parse the lines of probe.jsonl; None if no process reported that it trains."""
    found: list[TrainingProcess] = []
    current: dict[ProcessKey, TrainingProcess] = {}
    other_version = off = None
    for raw in text.split("\n"):
        line = read_line(raw)
        if line is None:
            continue
        key = key_of(line)
        if line["kind"] != "start":
            if key in current:
                current[key].take(line)
            elif line["kind"] == "off" and off is None:
                off = _why(line)
        elif line.get("version") != VERSION:
            current.pop(key, None)
            other_version = str(line.get("version"))[:_LONGEST_TEXT]
        elif (process := _started(line, found[0].boot if found else None)) and len(found) < MOST_PROCESSES:
            current[key] = process
            found.append(process)
    return ProbeRecord(tuple(found), other_version, off) if found or other_version or off else None


def _why(line: Mapping[str, Any]) -> str:
    return str(line.get("why"))[:_LONGEST_TEXT]


def read_line(raw: str) -> dict[str, Any] | None:
    """Return a process's line about itself; None for any other."""
    if not raw.startswith("{") or len(raw) > LONGEST_LINE:
        return None
    try:
        found = parse(raw)
        if "\\u" in raw and _HALF.search(text := json.dumps(found, ensure_ascii=False)):
            found = parse(_HALF.sub("\ufffd", text))
    except ValueError:
        return None
    sound = isinstance(found, dict) and isinstance(found.get("kind"), str)
    return found if sound and _count(found.get("pid")) else None


def key_of(line: Mapping[str, Any]) -> ProcessKey:
    """Whose a line of `read_line` is."""
    return ProcessKey(_word(line.get("host")), line["pid"])


def _started(line: Mapping[str, Any], boot: str | None) -> TrainingProcess | None:
    """Return the process; `boot` is that of the run's first one, whose clock is the launch's."""
    t, t0 = finite(line.get("t")), finite(line.get("t0"))
    own = _word(line.get("boot"))
    aside = boot is not None and own is not None and own != boot
    offset, moved = finite(line.get("offset")), 0.0
    if aside and offset is not None and t0 is not None:
        aside, moved, t0 = False, offset, t0 + offset
    elif aside:
        moved = t - t0 if t is not None and t0 is not None else 0.0
        t0 = t
    if t is None or t0 is None or t < t0:
        return None
    torch = line.get("torch")
    return TrainingProcess(
        pid=line["pid"],
        start_s=t - t0,
        t0=t0,
        rank=_count(line.get("rank")),
        world_size=_count(line.get("world_size")),
        torch=torch[:_LONGEST_TEXT] if isinstance(torch, str) else None,
        local_rank=_count(line.get("local_rank")),
        node=_word(line.get("node")),
        boot=own,
        aside=aside,
        moved_s=moved,
        met_s=_positive(line.get("met")),
        cores=_positive(line.get("cores")),
        affinity=_word(line.get("affinity")),
        python=_word(line.get("python")),
        visible=_word(line.get("visible")),
        omp=_word(line.get("omp")),
        slurm_cpus=_word(line.get("slurm_cpus")),
        host=key_of(line).host,
    )


def _word(value: object) -> str | None:
    return value[:_LONGEST_TEXT] if isinstance(value, str) else None


def _positive(value: object) -> float | None:
    number = finite(value)
    return number if number is not None and number >= 0 else None


def _counters(value: object) -> dict[str, float]:
    if not isinstance(value, dict):
        return {}
    known = ((name, finite(number)) for name, number in value.items())
    return {name: number for name, number in known if number is not None and number >= 0}


def _losses(value: object) -> list[tuple[int, float]]:
    pairs = value if isinstance(value, list) else []
    known = [(_count(one[0]), one[1]) for one in pairs if isinstance(one, list) and len(one) == 2]
    found = ((step, math.nan if loss is None else finite(loss)) for step, loss in known)
    return [(step, loss) for step, loss in found if step is not None and loss is not None]


def _histogram(value: object) -> dict[int, int]:
    if not isinstance(value, dict):
        return {}
    found = {}
    for name, number in value.items():
        count = _count(number)
        # 32 buckets an octave from a microsecond: 2,000 of them are beyond a century.
        if count and name.isascii() and name.isdigit() and len(name) <= 4:
            found[int(name)] = count
    return found


def _site(entry: object) -> ReadSite | None:
    if not isinstance(entry, list) or len(entry) != 6:
        return None
    file, line, kind, device, count, seconds = entry
    number, times, took = _count(line), _count(count), finite(seconds)
    if not all(isinstance(text, str) for text in (file, kind, device)) or times is None or took is None:
        return None
    place = file[-_LONGEST_TEXT:] if not number else f"{file[-_LONGEST_TEXT:]}:{number}"
    return ReadSite(
        site=place, kind=kind[:_LONGEST_TEXT], device=device[:_LONGEST_TEXT], count=times, seconds=took
    )


def finite(value: object) -> float | None:
    """Return a finite number that a float holds exactly enough."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if abs(value) <= _LARGEST and math.isfinite(value) else None


def _count(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= _LARGEST else None


def _plain(value: dict[str, Any]) -> dict[str, object]:
    found = _cut(value, _DEEPEST)
    assert isinstance(found, dict)
    return found


def _cut(value: object, depth: int) -> object:
    """Return a JSON value cut to a size for people; None for what is no value of JSON's."""
    if isinstance(value, str):
        return value[:_LONGEST_TEXT]
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value if abs(value) <= _LARGEST else None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list) and depth:
        return [_cut(item, depth - 1) for item in value[:_MOST_ITEMS]]
    if isinstance(value, dict) and depth:
        kept = list(value.items())[:_MOST_KEYS]
        return {name[:_LONGEST_TEXT]: _cut(item, depth - 1) for name, item in kept}
    return None
