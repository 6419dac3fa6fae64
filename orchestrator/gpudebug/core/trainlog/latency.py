"""Latencies that an inference program prints: `latency: 12.3 ms`, `Inference time: 0.234s`, `Loop 4: 0.25s`.

A unit must be printed, beside the number or in the name; a number without one is left alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from gpudebug.core.lazy import regex
from gpudebug.core.statistics import intervals
from gpudebug.core.trainlog.series import Point, Thinned
from gpudebug.core.trainlog.text import Splitter, measured, plain
from gpudebug.core.words import word_set

_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "secs": 1.0}
_SECONDS |= {"second": 1.0, "seconds": 1.0, "millisecond": 1e-3, "milliseconds": 1e-3, "msec": 1e-3}
_SECONDS |= {"msecs": 1e-3, "usec": 1e-6, "usecs": 1e-6, "microsecond": 1e-6, "microseconds": 1e-6}
_UNIT = "|".join(sorted(_SECONDS, key=len, reverse=True))
_PAIR = regex(rf"(?<![\w.])(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)(?: ?({_UNIT})(?![a-z0-9]))?(?![\d.]*\d)")
_TOPIC = regex(
    r"latency|latencies|infer(?:ence)?[ _-]*(?:time|duration|took)s?|infer(?:ence)?_(?=[mun]?s\b)"
    r"|(?:response|request|predict(?:ion)?)[ _-]*(?:time|duration|took)s?"
    r"|(?:time|duration)[ _-]+per[ _-]+(?:inference|iteration|iter|request|call|query)"
    r"|forward[ _-](?:pass[ _-])?time"
)
_WORD = regex(r"[a-z]+\d*|\d+")
_TURN = regex(
    r"^\W*(?:loop|iteration|iter|inference|request|frame) ?#?\d+(?:/\d+)?\s*(?:[:=-]|took)?\s*$"
    r"|^(?:image|video) \d+/\d+ .*, $"
)
_HINTS = (
    *("latenc", "infer", "per", "forward", "loop", "iter", "request", "frame", "respon", "predict"),
    *("image ", "video "),
)
# A figure over many: `95th percentile latency`, `99% latency`. Its rank may be the number before the label.
_PERCENTILE = regex(r"percentile|\bquantile|^ ?(?:%|th|st|nd|rd)(?: ?[:=)]|[ -]*(?:ile )?(?:latenc|infer))")
_HALF = frozenset({"50", "0.5", "50.0"})
# A line of a load generator: what it says is over all requests at that load.
_LOAD = regex(r"^\W*(?:concurrency|request rate)\b")

_MEAN = frozenset({"mean", "average", "avg"})
_MEDIAN = frozenset({"median", "p50"})
_LEAST = frozenset({"min", "minimum", "fastest", "best"})
_MOST = frozenset({"max", "maximum", "slowest", "worst"})
_SUMMARY = _MEAN | _MEDIAN | _LEAST | _MOST
# What is no latency of one inference, though its name says so.
_OTHER = word_set(
    "p1 p5 p10 p25 p75 p90 p95 p98 p99 p999 std stdev sd total sum overall target budget limit expected "
    "threshold elapsed timeout compile compilation load loading warmup warm overhead"
)
_FILLER = frozenset({"is", "was", "of", "took", "in", *_SECONDS})
MIN_PRINTED = 3
"""Fewer single values than this are believed less than a printed mean."""

LEAST_FOR_WARMUP = 20
"""MSER-5 needs four batches of five."""

_GROWTH = 3.0

KEPT = 2048
"""Of more single values an even spread of this many at most is kept."""
RECENT = 9
"""A live line shows the median of this many."""


@dataclass(frozen=True, slots=True)
class PrintedLatencies:
    """The latencies of a log in seconds, in their order: an even spread of the `count` that were printed.

    `times` are when they were there, in seconds since launch; None without times. `summary` holds printed
    figures over all of them: mean, median, least, most.
    """

    values: tuple[float, ...] = ()
    times: tuple[float | None, ...] = ()
    count: int = 0
    summary: Mapping[str, float] = field(default_factory=dict)


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
        self._single, self._turns = Thinned[Point](KEPT), Thinned[Point](KEPT)
        self._summary: dict[str, float] = {}
        self._last: list[float] = []

    def feed(self, data: bytes) -> None:
        for segment, _ in self._splitter.push(data, None):
            self.line(plain(segment))

    def latency(self) -> Latency | None:
        """Return what was printed so far, the unfinished line included; None if that holds no latency."""
        segment, _ = self._splitter.pending()
        self.line(plain(segment))
        self._splitter = Splitter()
        found = self.printed()
        if found.values:
            return _summarised(found)
        mean = next((found.summary[k] for k in ("mean", "median") if k in found.summary), None)
        if mean is None:
            return None
        summary = found.summary
        return Latency(mean, summary.get("least"), summary.get("most"), median=summary.get("median"))

    def printed(self) -> PrintedLatencies:
        """The single values so far; a printed summary alone if there are fewer of them than `MIN_PRINTED`."""
        turns = self._turns
        if _cumulative([point.value for point in turns.items()]):
            turns = Thinned()
        series = next((s for s in (self._single, turns) if s.count >= MIN_PRINTED), None)
        if series is None:
            series = Thinned() if self._summary.keys() & {"mean", "median"} else self._single
        points = series.items()
        values, times = tuple(p.value for p in points), tuple(p.time for p in points)
        return PrintedLatencies(values, times, series.count, dict(self._summary))

    @property
    def recent(self) -> float | None:
        """The median of the last few, in seconds; None if none was printed."""
        return median(self._last) if self._last else None

    def line(self, text: bytes, time: float | None = None) -> None:
        """Take one line in, as `plain` makes it; `time` is when it was there, in seconds since launch."""
        line = text.decode("ascii", "replace").lower()
        if not any(hint in line for hint in _HINTS):
            return
        if _LOAD.search(line):
            return
        carried = False
        position, before = 0, ""
        for match in _PAIR.finditer(line):
            label = line[position : match.start()]
            topic = _topic(label, carried, before)
            position, before = match.end(), match[1]
            value = _value(match, label)
            if topic is None:
                self._turn(line[: match.start()], value, time)
                carried = carried and value is None
                continue
            carried = True
            if value is not None:
                self._keep(topic, value, time)

    def _keep(self, kind: str, value: float, time: float | None) -> None:
        if kind == "single":
            self._single.add(Point(None, value, time))
            self._last = [*self._last[1 - RECENT :], value]
        elif kind != "other":
            self._summary[kind] = value

    def _turn(self, before: str, value: float | None, time: float | None) -> None:
        if value is not None and _TURN.match(before):
            self._turns.add(Point(None, value, time))


def _topic(label: str, carried: bool, before: str) -> str | None:
    """What the number behind `label` is: single, mean, median, least, most or other; None for no latency.

    `carried` says whether the number `before` it on the line was one: `latency mean 12 ms, max 20 ms`.
    """
    found = _TOPIC.search(label)
    if found is None and not carried:
        return None
    if _PERCENTILE.search(label):
        return "median" if before in _HALF else "other"
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
    value = measured(float(match[1])) * _SECONDS[unit] if unit else 0.0
    return value if 0 < value < math.inf else None


def _cumulative(values: Sequence[float]) -> bool:
    """Tell whether times count from a start: they never fall, and grow."""
    if len(values) < MIN_PRINTED or values[-1] < _GROWTH * values[0]:
        return False
    return all(after >= before for before, after in pairwise(values))


def _summarised(printed: PrintedLatencies) -> Latency:
    cut = intervals.mser5(printed.values)
    steady = printed.values[cut:]
    count = round(printed.count * len(steady) / len(printed.values))
    return Latency(
        mean=math.fsum(steady) / len(steady),
        least=min(steady),
        most=max(steady),
        first=printed.values[0],
        count=count,
        warmup=printed.count - count,
        median=median(steady),
    )
