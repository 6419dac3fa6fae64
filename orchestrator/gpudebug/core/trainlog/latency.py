"""Latencies that an inference program prints: `latency: 12.3 ms`, `Inference time: 0.234s`, `Loop 4: 0.25s`.

A unit must be printed, beside the number or in the name; a number without one is left alone.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from gpudebug.core.statistics import intervals
from gpudebug.core.trainlog.names import word_set
from gpudebug.core.trainlog.text import Splitter, plain

_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "secs": 1.0}
_SECONDS |= {"second": 1.0, "seconds": 1.0, "millisecond": 1e-3, "milliseconds": 1e-3, "msec": 1e-3}
_UNIT = "|".join(sorted(_SECONDS, key=len, reverse=True))
_PAIR = re.compile(rf"(?<![\w.])(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)(?: ?({_UNIT})(?![a-z0-9]))?(?![\d.]*\d)")
_TOPIC = re.compile(
    r"latency|latencies|infer(?:ence)?[ _-]*(?:time|duration|took)s?"
    r"|(?:time|duration)[ _-]+per[ _-]+(?:inference|iteration|iter|request|call|query)"
    r"|forward[ _-](?:pass[ _-])?time"
)
_WORD = re.compile(r"[a-z]+\d*|\d+")
_TURN = re.compile(
    r"^\W*(?:loop|iteration|iter|inference|request|frame) ?#?\d+(?:/\d+)?\s*(?:[:=-]|took)?\s*$"
)
_HINTS = ("latenc", "infer", "per", "forward", "loop", "iter", "request", "frame")

_MEAN = frozenset({"mean", "average", "avg"})
_MEDIAN = frozenset({"median", "p50"})
_LEAST = frozenset({"min", "minimum", "fastest", "best"})
_MOST = frozenset({"max", "maximum", "slowest", "worst"})
_SUMMARY = _MEAN | _MEDIAN | _LEAST | _MOST
# What is no latency of one inference, though its name says so.
_OTHER = word_set(
    "p5 p90 p95 p99 std stdev sd total sum overall target budget limit expected threshold elapsed timeout "
    "compile compilation load loading warmup warm overhead"
)
_FILLER = frozenset({"is", "was", "of", "took", "in", *_SECONDS})
MIN_PRINTED = 3
"""Fewer single values than this are believed less than a printed mean."""

LEAST_FOR_WARMUP = 20
"""MSER-5 needs four batches of five."""

_GROWTH = 3.0


@dataclass(frozen=True, slots=True)
class Latency:
    """How long one inference took, in seconds; None is not known.

    `first` is the first that was printed, `warmup` how many leading ones were cut (MSER-5) before the
    `count` others were summarised. `count` is None if the program printed a summary only.
    """

    mean: float
    least: float | None = None
    most: float | None = None
    first: float | None = None
    count: int | None = None
    warmup: int = 0
    median: float | None = None


class LatencyReader:
    """Reads a program's output as it comes, cut anywhere."""

    def __init__(self) -> None:
        self._splitter = Splitter()
        self._single = array("d")
        self._turns = array("d")
        self._summary: dict[str, float] = {}

    def feed(self, data: bytes) -> None:
        for segment, _ in self._splitter.push(data, None):
            self._read(segment)

    def latency(self) -> Latency | None:
        """What was printed so far, the unfinished line included; None if that holds no latency."""
        segment, _ = self._splitter.pending()
        self._read(segment)
        self._splitter = Splitter()
        turns = self._turns if not _cumulative(self._turns) else array("d")
        printed = next((v for v in (self._single, turns) if len(v) >= MIN_PRINTED), None)
        if printed is not None:
            return _summarised(printed)
        mean = next((self._summary[k] for k in ("mean", "median") if k in self._summary), None)
        if mean is not None:
            summary = self._summary
            return Latency(mean, summary.get("least"), summary.get("most"), median=summary.get("median"))
        return _summarised(self._single) if self._single else None

    def _read(self, segment: bytes) -> None:
        line = plain(segment).decode("ascii", "replace").lower()
        if not any(hint in line for hint in _HINTS):
            return
        carried = False
        position = 0
        for match in _PAIR.finditer(line):
            label = line[position : match.start()]
            position = match.end()
            topic = _topic(label, carried)
            value = _value(match, label)
            if topic is None:
                self._turn(line[: match.start()], value)
                carried = carried and value is None
                continue
            carried = True
            if value is not None:
                self._keep(topic, value)

    def _keep(self, kind: str, value: float) -> None:
        if kind == "single":
            self._single.append(value)
        elif kind != "other":
            self._summary[kind] = value

    def _turn(self, before: str, value: float | None) -> None:
        if value is not None and _TURN.match(before):
            self._turns.append(value)


def _topic(label: str, carried: bool) -> str | None:
    """What the number behind `label` is: single, mean, median, least, most or other; None for no latency.

    `carried` says whether the number before it on the line was one: `latency mean 12 ms, max 20 ms`.
    """
    found = _TOPIC.search(label)
    if found is None and not carried:
        return None
    words = set(_WORD.findall(label))
    behind = set(_WORD.findall(label[found.end() :] if found else label))
    if words & _OTHER:
        return "other"
    if behind - _SUMMARY - _FILLER:
        return None
    for kind, names in (("mean", _MEAN), ("median", _MEDIAN), ("least", _LEAST), ("most", _MOST)):
        if words & names:
            return kind
    return "single" if found else "other"


def _value(match: re.Match[str], label: str) -> float | None:
    """Seconds, by the unit behind the number or at the end of its name; None without one, and for nothing."""
    unit = match[2]
    if unit is None:
        words = _WORD.findall(label)
        unit = words[-1] if words and words[-1] in _SECONDS else None
    value = float(match[1]) * _SECONDS[unit] if unit else 0.0
    return value if 0 < value < math.inf else None


def _cumulative(values: Sequence[float]) -> bool:
    """Whether times count from a start: they never fall, and grow."""
    if len(values) < MIN_PRINTED or values[-1] < _GROWTH * values[0]:
        return False
    return all(after >= before for before, after in pairwise(values))


def _summarised(values: Sequence[float]) -> Latency:
    cut = intervals.mser5(values)
    steady = values[cut:]
    return Latency(
        mean=math.fsum(steady) / len(steady),
        least=min(steady),
        most=max(steady),
        first=values[0],
        count=len(steady),
        warmup=cut,
        median=median(steady),
    )
