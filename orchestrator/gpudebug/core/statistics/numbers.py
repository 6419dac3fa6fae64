"""Figures as the progress file and the terminal show them. Unknown is a word, never 0."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeVar

from gpudebug.core.statistics.metrics import GPU_UTIL, WORK, Metric
from gpudebug.core.words import Trend, counted

if TYPE_CHECKING:
    from gpudebug.core.answers.status import GateRow

Point = TypeVar("Point", bound=Sequence[float | None])


def finite(value: float | None) -> float | None:
    """Return a figure that JSON can hold: it has no NaN and no infinity, which the loss trend shows."""
    return value if value is not None and isfinite(value) else None


def thin(points: Sequence[Point], most: int, columns: Sequence[int] = (1,)) -> list[Point]:
    """At most `most` (2 or more) of the points, in their order, as they are.

    `columns` are the places of the values, finite or None, in a point. The first and the last point stay; of
    those between, cut into buckets of equal counts, in each column a lowest and a highest value and, where
    it has gaps (None), a gap.
    """
    if most < 2:
        raise ValueError("a series has two ends")
    if len(points) <= most:
        return list(points)
    items = [[point[column] for point in points] for column in columns]
    values = [(column, None in column) for column in items if any(v is not None for v in column)]
    each = sum(3 if gaps else 2 for _, gaps in values)
    kept = {0, len(points) - 1}
    for start, stop in buckets(len(points), (most - 2) // each if each else 0):
        for column, gaps in values:
            kept.update(start + at for at in _extremes(column[start:stop], gaps))
    return [points[at] for at in sorted(kept)]


def buckets(length: int, count: int) -> Iterator[tuple[int, int]]:
    """Start and stop of `count` buckets of the points between the first and the last of `length`."""
    inner = max(0, length - 2)
    count = min(count, inner)
    for at in range(count):
        yield 1 + at * inner // count, 1 + (at + 1) * inner // count


def _extremes(values: Sequence[float | None], gaps: bool) -> Iterator[int]:
    """Yield where the first lowest, the first highest and the first unknown value of a bucket are."""
    known = [v for v in values if v is not None] if gaps else values
    if known:
        yield values.index(min(known))  # type: ignore[type-var]
        yield values.index(max(known))  # type: ignore[type-var]
    if len(known) < len(values):
        yield values.index(None)


UNKNOWN = "unknown"
# Longer than any text of ours in a progress file; a program's error line may be of any length.
LONGEST = 1000
BLOCKS = "▁▂▃▄▅▆▇█"
# The same eight levels if only ASCII is shown, by how much ink a character has.
INK = ".:-=+*#@"


def known(text: str | None) -> str | None:
    """Return a text for JSON, where unknown is null."""
    return None if text is None or text.split(" ")[0] == UNKNOWN else text


def gates(rows: Sequence[Mapping[str, Any]]) -> tuple[GateRow, ...]:
    """A verdict's gates: a value that is unknown is None, and what a newer version adds is left out."""
    from gpudebug.core.answers.status import GateRow

    return tuple(
        GateRow(
            name=g["name"],
            value=known(g["value"]),
            threshold=g["threshold"],
            result=g["result"],
            note=g.get("note"),
            source=g.get("source"),
            unexplained=g.get("unexplained"),
        )
        for g in rows
    )


def throughput_source(verdict: Mapping[str, Any] | None) -> str | None:
    """Whose count a throughput is: `log`, the program's own word; `probe`, `both`; None: not known."""
    sources = (g.get("source") for g in (verdict or {}).get("gates") or () if isinstance(g, Mapping))
    found = next((source for source in sources if source), None)
    return found if isinstance(found, str) else None


def percent(value: float | None) -> str:
    return UNKNOWN if value is None else f"{_tenth(value):.1f}%"


def _tenth(value: float) -> float:
    # Adding 0.0 turns a rounded -0.0 into 0.0.
    return round(value, 1) + 0.0


def number(value: float | None, unit: str = "") -> str:
    """Three significant digits for rates and times: `6.1 steps/s` needs no more."""
    if value is None:
        return UNKNOWN
    text = f"{value:.3g}"
    if "e+" in text:
        text = f"{value:.0f}"
    return f"{text} {unit}".strip()


def points(estimate: Mapping[str, Any] | None) -> str:
    """Return a difference of utilisation in percentage points, with its interval."""
    if estimate is None:
        return UNKNOWN
    value, low, high = estimate["value"], estimate.get("low"), estimate.get("high")
    interval = ""
    if low is not None and high is not None:
        interval = f" (95% CI {_tenth(low):+.1f} to {_tenth(high):+.1f})"
    return f"{_tenth(value):+.1f}pp{interval}"


def factor(estimate: Mapping[str, Any] | None) -> str:
    """Return a ratio with its interval: `1.31x (95% CI 1.24x to 1.38x)`."""
    if estimate is None:
        return UNKNOWN
    value, low, high = estimate["value"], estimate.get("low"), estimate.get("high")
    interval = f" (95% CI {low:.2f}x to {high:.2f}x)" if low is not None and high is not None else ""
    return f"{value:.2f}x{interval}"


def figure(metric: Metric, value: float | None) -> str:
    """Return a metric's value with its unit; a time below a second in milliseconds."""
    if metric.points:
        return percent(value)
    scale, unit = _shown(metric, value)
    return UNKNOWN if value is None else number(value * scale, unit)


def bounds(metric: Metric, value: float | None, interval: tuple[float, float]) -> str:
    """`16.6 to 19.6`: an interval in the unit in which `figure` shows its value."""
    scale, _ = _shown(metric, value)
    return " to ".join(number(bound * scale) for bound in interval)


def threshold(metric: Metric, value: float) -> str:
    """Return a threshold of `criteria`: `20pp` or `1.2x`."""
    return f"{value:g}{'pp' if metric.points else 'x'}"


def gain(metric: Metric, value: float) -> str:
    """An expected gain: points of utilisation as `12.3pp`, of another metric relative to it as `12%`."""
    return f"{_tenth(value):.1f}pp" if metric.points else f"{100 * value:.3g}%"


def metric_change(verdict: Mapping[str, Any]) -> str:
    """`latency_p50 12.3 to 9.41 ms`: the metric of a verdict, before and after."""
    metric = Metric(verdict["metric"])
    before, after = verdict["metric_before"], verdict["metric_after"]
    if before is None and after is None:
        return f"{metric.name} {UNKNOWN}"
    scale, unit = _shown(metric, before if before is not None else after)
    if metric.name == WORK and verdict.get("throughput_unit"):
        unit = _per_second(verdict["throughput_unit"])
    shown = (number(None if v is None else v * scale) for v in (before, after))
    return f"{metric.name} {' to '.join(shown)} {unit}".strip()


def _shown(metric: Metric, value: float | None) -> tuple[float, str]:
    if metric.unit == "s" and value is not None and value < 1:
        return 1000.0, "ms"
    return 1.0, metric.unit


def improvement(verdict: Mapping[str, Any]) -> str:
    """Return the delta of a verdict in its metric's terms."""
    return points(verdict["delta"]) if _of_utilisation(verdict) else factor(verdict["delta"])


def _of_utilisation(verdict: Mapping[str, Any]) -> bool:
    return bool(verdict.get("metric", GPU_UTIL) == GPU_UTIL)


def rate(value: float | None, unit: str | None = None) -> str:
    """`6.1 steps/s`; `unit` is what the log counts, step if it is None."""
    return number(value, _per_second(unit))


def _per_second(unit: str | None) -> str:
    return f"{(unit or 'step').removesuffix('s')}s/s"


def throughput_change(before: float | None, after: float | None, unit: str | None = None) -> str:
    """`6.1 to 13.4 steps/s`; `unit` is what the log counts, step if it is None."""
    if before is None and after is None:
        return UNKNOWN
    return f"{number(before)} to {number(after)} {_per_second(unit)}"


def seconds(value: float | None) -> str:
    """Return a time with three digits: `850 us`, `41 ms`, `3.2 s`; from a minute on as `duration`."""
    if value is None:
        return UNKNOWN
    for scale, unit in ((60.0, ""), (1.0, "s"), (1e-3, "ms")):
        if value >= scale:
            return number(value / scale, unit) if unit else duration(value)
    return number(value * 1e6, "us")


_LEAST_PAUSES = 0.05
"""Of the time, from which pauses are worth a word."""


def of_step(time_s: float | None, median_s: float | None, pauses: float | None) -> str:
    """` of 19.9 ms (median 11 ms, pauses 45%)`; nothing if it is unknown."""
    if time_s is None:
        return ""
    paused = pauses is not None and pauses >= _LEAST_PAUSES and median_s is not None
    beside = f" (median {seconds(median_s)}, pauses {100 * (pauses or 0.0):.0f}%)" if paused else ""
    return f" of {seconds(time_s)}{beside}"


def duration(seconds: float) -> str:
    """`7.3 s`, `4 min 10 s`, `2 h 5 min`."""
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def span(seconds: float) -> str:
    """About how long, in one unit: `7.3 s`, `14 s`, `4.2 min`, `59 min`, `2.1 h`, `3.5 d`."""
    for unit, size, most in (("s", 1, 60), ("min", 60, 60), ("h", 3600, 48)):
        if float(_short(seconds / size)) < most:
            return f"{_short(seconds / size)} {unit}"
    return f"{_short(seconds / 86400)} d"


def _short(value: float) -> str:
    return f"{value:.1f}" if round(value, 1) < 10 else f"{value:.0f}"


def result_fields(verdict: Mapping[str, Any]) -> dict[str, str]:
    """Return the figures of a Result block, derived from verdict.json alone: key -> text as written.

    Another metric than utilisation has a line of its own.
    """
    own = {} if _of_utilisation(verdict) else {"metric": metric_change(verdict)}
    return {
        "gpu util before": _level(verdict),
        "gpu util after": percent(verdict["after"]),
        **own,
        "improvement": improvement(verdict),
        "training": str(verdict["training"]),
        "loss": _AS_THE_SEED.get(str(verdict["loss"]), str(verdict["loss"])),
        "throughput": throughput_change(
            verdict["throughput_before"], verdict["throughput_after"], verdict.get("throughput_unit")
        ),
    }


_AS_THE_SEED = {str(Trend.NAN): "NaN"}
"""Words of the entry's format that differ from those of records."""


def _level(verdict: Mapping[str, Any]) -> str:
    """`27.4% (level during the trial, 3 runs)`: what the unchanged program shows then, by all its runs."""
    text, course = percent(verdict["before"]), verdict.get("course") or ()
    count = sum(point["part"] == "baseline" for point in course)
    return f"{text} (level during the trial, {counted(count, 'run')})" if count else text


def result_notes(verdict: Mapping[str, Any]) -> str:
    """Return the Notes line: why this verdict, and what else was seen."""
    return "; ".join([str(verdict["why"]), *map(str, verdict.get("notes", ()))])


def same_figures(verdict: Mapping[str, Any], result: Mapping[str, str]) -> bool:
    """Tell whether an entry's figures are those of the verdict (verify derives the verdict again, too)."""
    return all(_same_text(text, result.get(key, "")) for key, text in result_fields(verdict).items())


def _same_text(derived: str, written: str) -> bool:
    # As a rule they are the same, and `status` need load nothing to see it.
    if derived == written.strip():
        return True
    from gpudebug.core.redaction.alike import alike

    if alike(derived, written):
        return True
    from gpudebug.core.progress import harmless

    return alike(harmless(derived, limit=LONGEST), written)


def sparkline(values: Sequence[float], top: float = 100.0, letters: str = BLOCKS) -> str:
    """One character a value, 0 to `top`; `letters` are those of the levels, the lowest first."""
    last = len(letters) - 1
    shares = (max(0.0, min(v, top)) / top for v in values)
    return "".join(letters[min(last, int(share * len(letters)))] for share in shares)


def shrunk(values: Sequence[float], count: int) -> list[float]:
    """At most `count` values: means of equal parts, in their order."""
    if len(values) <= count:
        return list(values)
    edges = [i * len(values) // count for i in range(count + 1)]
    return [sum(values[a:b]) / (b - a) for a, b in pairwise(edges)]
