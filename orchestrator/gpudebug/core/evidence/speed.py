"""What a log shows of speed beyond its step rate: samples a second, times of steps, latency, own figures.

No utilisation window is needed: the warm-up is cut from the latencies themselves, and the interval of a
percentile comes from their order and from how much neighbours are alike.

All of the steady window, where the log's lines have times; a program that prints its figures once, when it
ends, is believed too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from gpudebug.core.command import batch
from gpudebug.core.lazy import regex
from gpudebug.core.records import LatencyEvidence, ProbeEvidence, Window
from gpudebug.core.statistics import intervals
from gpudebug.core.trainlog.latency import PrintedLatencies
from gpudebug.core.trainlog.text import number

if TYPE_CHECKING:
    from gpudebug.core.trainlog.reader import LogSummary


FEW_FOR_P95 = 20
"""Of fewer values the 95th percentile is their largest."""
FEW_FOR_P99 = 100
FEW_FOR_ERROR = 20
"""Fewer values than this show no spread of their own."""


def latency_figures(printed: PrintedLatencies, warmup: float | None = None) -> dict[str, Any]:
    """Return the fields of an Evidence that are of latencies, by name."""
    found = latency_evidence(printed, warmup)
    if found is None:
        return {}
    percentiles = {f"latency_{p}_s": getattr(found, f"{p}_s") for p in ("p50", "p95", "p99")}
    return {**percentiles, "latency": found}


def latency_evidence(printed: PrintedLatencies, warmup: float | None = None) -> LatencyEvidence | None:
    """Summarise the latencies of a run; None if none was printed.

    The first ones, slow by compilation, caches or a cold start, are cut by MSER-5; those before a fixed
    `warmup` in seconds since launch are cut too. A printed mean or median without single values has no count.
    """
    values = _after(printed, warmup)
    if not values:
        return _summary(printed)
    steady = sorted(kept := values[intervals.mser5(values) :])
    count = round(printed.count * len(kept) / len(printed.values))
    enough = len(kept) >= FEW_FOR_ERROR
    return LatencyEvidence(
        count=count,
        warmup=printed.count - count,
        first_s=printed.values[0],
        mean_s=math.fsum(kept) / len(kept),
        p50_s=median(kept),
        p95_s=quantile(steady, 0.95) if len(kept) >= FEW_FOR_P95 else None,
        p99_s=quantile(steady, 0.99) if len(kept) >= FEW_FOR_P99 else None,
        p50_error=quantile_error(kept, 0.5) if enough else None,
        p95_error=quantile_error(kept, 0.95) if enough else None,
        p99_error=quantile_error(kept, 0.99) if enough else None,
    )


def _after(printed: PrintedLatencies, warmup: float | None) -> tuple[float, ...]:
    if warmup is None:
        return printed.values
    timed = zip(printed.values, printed.times, strict=True)
    return tuple(value for value, time in timed if time is None or time >= warmup)


def _summary(printed: PrintedLatencies) -> LatencyEvidence | None:
    """Return what the program printed over all of its inferences."""
    known = printed.summary
    if printed.values or not known.keys() & {"mean", "median"}:
        return None
    return LatencyEvidence(mean_s=known.get("mean"), p50_s=known.get("median"))


def quantile(ordered: Sequence[float], q: float) -> float:
    """Return the quantile `q` of ascending values, between two of them by their distance."""
    at = min(max(q, 0.0), 1.0) * (len(ordered) - 1)
    below = math.floor(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (at - below) * (ordered[above] - ordered[below])


def quantile_error(values: Sequence[float], q: float) -> float:
    """Standard error of the logarithm of the quantile `q`, of positive values in their order in time.

    The share of values below a quantile has the variance q (1 - q) / n, with n the count of independent
    values that the series is worth: latencies come in bursts. The quantiles one such error above and below
    are the bounds of its distribution-free interval (David and Nagaraja, *Order Statistics*, section 7.1).
    """
    ordered = sorted(values)
    level = quantile(ordered, q)
    worth = intervals.effective_size([float(value > level) for value in values])
    half = math.sqrt(q * (1 - q) / worth)
    low, high = quantile(ordered, q - half), quantile(ordered, q + half)
    return (math.log(high) - math.log(low)) / 2


T = TypeVar("T")

FEW_STEPS = 5
"""Fewer printed step times than this have no median worth comparing."""

_THING = r"(?:samples?|images?|imgs?|examples?|sequences?|seqs?)"
_PER = r"[ _]?(?:/|per)[ _]?s(?:ec(?:ond)?s?)?"
_VALUE = r"(\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?)(k)?"
_SAMPLES = regex(
    rf"(?P<name>[\w/.-]*){_THING}{_PER}['\"]?\s*[:=]\s*['\"]?{_VALUE}|{_VALUE}\s*{_THING}{_PER}(?![\w/]|[\'\"]?\s*[:=])",
    re.IGNORECASE,
)
# `loss 3.1 img/s 320`: what comes next has the name.
_NAMED_ALREADY = regex(r"(?<!throughput)(?<!speed)(?<!rate)(?<=[a-z]) $", re.IGNORECASE)
_NEXT_VALUE = regex(r" +\d")
_NOT_TRAINED = regex(r"e?val(?![a-z])|eval|test|infer|predict", re.IGNORECASE)


class SamplesPerSecond(NamedTuple):
    """Samples per second, and what says so: `probe`, `counted`, `batch` (as printed), `flags`, `printed`."""

    per_s: float | None
    told_by: str | None


def samples(
    log: LogSummary, window: Window | None, rates: tuple[float | None, float | None], said: dict[str, str]
) -> SamplesPerSecond:
    """Samples per second: counted by the log; else the step rate times the batch, as the program printed it
    or as the command's flags `said`; else as printed. `rates` are steps and progress per second."""
    steps_per_s, progress_per_s = rates
    if log.step_unit == "samples" and progress_per_s:
        return SamplesPerSecond(progress_per_s, "counted")
    for told_by, size in (("batch", batch.printed(_texts(log, "batch"))), ("flags", batch.size(said))):
        if size and steps_per_s:
            return SamplesPerSecond(size * steps_per_s, told_by)
    shown = printed_samples(_texts(log, "samples", window))
    return SamplesPerSecond(shown, "printed" if shown else None)


def printed_samples(lines: Iterable[str]) -> float | None:
    """Harmonic mean of the printed samples per second: of lines that come every so many samples, it is the
    samples of all over the seconds of all. None if none is printed."""
    values = [value for line in lines for value in _read_samples(line) if 0 < value < math.inf]
    return len(values) / math.fsum(1 / value for value in values) if values else None


def _read_samples(line: str) -> Iterable[float]:
    if _NOT_TRAINED.search(line):
        return
    for match in _SAMPLES.finditer(line):
        named = match[4] and _NAMED_ALREADY.search(line, 0, match.start())
        if named and _NEXT_VALUE.match(line, match.end()):
            continue
        value, kilo = number(match[2] or match[4]), match[3] or match[5]
        if value is not None:
            yield value * (1000 if kilo else 1)


def step_times(log: LogSummary, window: Window | None) -> tuple[float | None, float | None]:
    """Median and 95th percentile of the printed times of steps in seconds; None if too few are printed."""
    values = [p.value for p in _inside(log.durations, [p.time for p in log.durations], window)]
    if len(values) < FEW_STEPS:
        return None, None
    found = intervals.spread(values, [1.0] * len(values))
    return found.p50, found.p95 if len(values) >= FEW_FOR_P95 else None


def logged(log: LogSummary, window: Window | None) -> dict[str, float]:
    """Mean of each of the user's own patterns, by name."""
    found = {}
    for name, points in log.extra.items():
        values = [p.value for p in _inside(points, [p.time for p in points], window)]
        if values and all(math.isfinite(v) for v in values):
            found[name] = math.fsum(values) / len(values)
    return found


def figures(
    log: LogSummary,
    window: Window | None,
    rates: tuple[float | None, float | None],
    said: Mapping[str, str],
    inside: ProbeEvidence | None = None,
) -> dict[str, Any]:
    """Return the fields of an Evidence that tell of speed, by name.

    What the training process reported of samples and step times wins over anything printed.
    """
    found = samples(log, window, rates, dict(said))
    if inside is not None and inside.samples_per_s:
        found = SamplesPerSecond(inside.samples_per_s, "probe")
    (p50, p95), times_by = step_times(log, window), "printed"
    if inside is not None and inside.step_time_p50_s is not None:
        p50, p95, times_by = inside.step_time_p50_s, inside.step_time_p95_s, "probe"
    shown = batch.printed(_texts(log, "batch"))
    return {
        "samples_per_s": found.per_s,
        "samples_by": found.told_by,
        "step_time_p50_s": p50,
        "step_time_p95_s": p95,
        "step_time_by": times_by if p50 is not None else None,
        "batch_size": shown if shown is not None else inside and _batch(inside),
        "batch_flags": dict(said),
        "logged": logged(log, window),
    }


def _batch(inside: ProbeEvidence) -> float | None:
    """Return the samples of a batch, as set on the loader that fetched the most for training."""
    loaders = inside.facts.get("loaders")
    known = [one for one in loaders if isinstance(one, dict)] if isinstance(loaders, list) else []
    known = [one for one in known if one.get("training") is not False]
    busiest = max(known, key=lambda one: _whole(one.get("fetched")) or 0, default={})
    size = _whole(busiest.get("batch_size"))
    return float(size) if size else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _texts(log: LogSummary, topic: str, window: Window | None = None) -> list[str]:
    lines = log.speech.get(topic, ())
    return [text for text, _ in _inside(lines, [time for _, time in lines], window)]


def _inside(items: Sequence[T], times: Sequence[float | None], window: Window | None) -> list[T]:
    """Return those with a time in the window; if none has, those without a time or after it."""
    if window is None:
        return list(items)
    timed = list(zip(items, times, strict=True))
    kept = [item for item, time in timed if time is not None and window.start_s <= time <= window.end_s]
    return kept or [item for item, time in timed if time is None or time > window.end_s]
