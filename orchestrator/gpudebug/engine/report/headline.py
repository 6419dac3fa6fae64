"""The answer in a few sentences: the start, what was found, where it is now, what is next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from gpudebug.core.campaign import overview
from gpudebug.core.campaign.decide import ActionKind
from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.metrics import GPU_UTIL, Metric

Data = Mapping[str, Any]


class SentencePart(NamedTuple):
    """A piece of a sentence; `own` if the words are another's, which must not reorder ours."""

    text: str
    own: bool = False


def headline(data: Data) -> list[SentencePart]:
    """One short paragraph, in pieces that are joined as they are."""
    start = started(data)
    if start is None:
        return [SentencePart(_unmeasured(data))]
    return [SentencePart(_stood(data, start)), *_found(data), *_doubted(data), SentencePart(_now(data))]


def started(data: Data) -> float | None:
    """Return the metric of the first baseline; None if none is known."""
    gain = data["gain"]
    if gain is not None and gain["start"] is not None:
        return float(gain["start"])
    baseline = data["status"]["baselines"]["workload"]
    known = baseline["gpu_util"] if baseline and metric_of(data).points else None
    return None if known is None else float(known)


def metric_of(data: Data) -> Metric:
    """Of the whole campaign; its direction does not matter here."""
    gain = data["gain"]
    return Metric((gain or {}).get("metric") or data["status"]["metric"] or GPU_UTIL)


def figure_name(data: Data) -> str:
    """Return what the figure is called in a sentence."""
    metric = metric_of(data)
    if not metric.points:
        return metric.name
    return "Utilisation of the CPU stand-in" if overview.stand_in(data) else "GPU utilisation"


def command(data: Data) -> str | None:
    """Return what to type next; None if nothing is left."""
    if data["status"]["running"]:
        return "gpudebug status --watch"
    return None if data["status"]["next"]["action"] == ActionKind.STOP else "gpudebug next"


def _unmeasured(data: Data) -> str:
    baseline = data["status"]["baselines"]["workload"]
    if not data["runs"]:
        if overview.tested(data["hypotheses"]):
            return "No run is here: the figures below are the progress file's, UNVERIFIED."
        return "Nothing has been measured yet."
    why = f": {baseline['why']}" if baseline and baseline.get("why") else ""
    return f"The workload has no baseline to compare with yet{why}."


def _stood(data: Data, start: float) -> str:
    metric, gain = metric_of(data), data["gain"] or {}
    text = f"{figure_name(data)} was {numbers.figure(metric, start)}"
    known = [
        f"{what} {numbers.figure(metric, gain[what])}"
        for what in ("reference", "target")
        if gain.get(what) is not None
    ]
    if known:
        text += f" ({', '.join(known)})"
    return f"{text}. "


def _found(data: Data) -> Iterable[SentencePart]:
    done, good = overview.tested(data["hypotheses"]), overview.validated(data["hypotheses"])
    if not done:
        return [SentencePart("No hypothesis has been tested yet. ")]
    count = _count(len(done), "tested hypothesis", "tested hypotheses")
    if not good:
        return [SentencePart(f"Of {count} none was VALIDATED. ")]
    lead, best = f"Of {count} {_was(len(good))} VALIDATED", overview.best(good)
    if best is None and any(map(overview.doubted, good)):
        return [SentencePart(f"{lead}. ")]
    if best is None:
        return [SentencePart(f"{lead}, UNVERIFIED: no run here backs {'it' if len(good) == 1 else 'them'}. ")]
    change, title = overview.change_text(best), SentencePart(best["title"], own=True)
    if len(good) == 1:
        return [SentencePart(f"{lead}: “"), title, SentencePart(f"”, {change}. ")]
    return [SentencePart(f"{lead}; the largest effect, {change}, has “"), title, SentencePart("”. ")]


def _doubted(data: Data) -> Iterable[SentencePart]:
    """Return the VALIDATED ones that do not count, with the reason."""
    return [
        SentencePart(f"Hypothesis {h['number']} does not count: {'; '.join(h['doubts'])}. ")
        for h in overview.validated(data["hypotheses"])
        if overview.doubted(h)
    ]


def _was(count: int) -> str:
    return f"{count} {'was' if count == 1 else 'were'}"


def _now(data: Data) -> str:
    gain, accepted = data["gain"], sum(h["accepted"] is not None for h in data["hypotheses"])
    if not accepted:
        return "No change has been accepted yet." if overview.validated(data["hypotheses"]) else ""
    changes = _count(accepted, "accepted change", "accepted changes")
    if gain is None or gain["now"] is None:
        return f"With {changes} it has not been measured yet."
    left = f", {gain['gap_text']}" if gain["gap"] is not None else ""
    return f"With {changes} it is now {numbers.figure(metric_of(data), gain['now'])}{left}."


def _count(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def plain(parts: Sequence[SentencePart]) -> str:
    """Return the same as one text."""
    return "".join(p.text for p in parts).strip()
