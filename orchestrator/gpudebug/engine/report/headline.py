"""The answer in a few sentences: where it stood, what was found, where it is now, what is next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from gpudebug.core import present
from gpudebug.core.metrics import GPU_UTIL, Metric
from gpudebug.core.words import VERDICTS, Status

Data = Mapping[str, Any]
_COMMANDS = {
    "record_baseline": "gpudebug next",
    "recover": "gpudebug next",
    "test": "gpudebug next",
    "implement": "gpudebug next",
    "propose": "gpudebug propose",
}


class Part(NamedTuple):
    """A piece of a sentence; `own` where it is somebody's own words, which must not reorder ours."""

    text: str
    own: bool = False


def headline(data: Data) -> list[Part]:
    """One short paragraph, in pieces that are joined as they are."""
    start = started(data)
    if start is None:
        return [Part(_unmeasured(data))]
    return [Part(_stood(data, start)), *_found(data), Part(_now(data))]


def started(data: Data) -> float | None:
    """The metric of the first baseline; None where none is known."""
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


def stand_in(data: Data) -> bool:
    """Whether a CPU stood in for a GPU, in any run."""
    devices = [d for run in data["runs"].values() for d in run["timeline"]]
    devices += data["status"]["device"]["devices"]
    devices += (data["machine"] or {}).get("devices") or []
    return any(d.get("uuid") == "CPU" for d in devices)


def figure_name(data: Data) -> str:
    """What the figure is called in a sentence."""
    metric = metric_of(data)
    if not metric.points:
        return metric.name
    return "Utilisation of the CPU stand-in" if stand_in(data) else "GPU utilisation"


def command(data: Data) -> str | None:
    """What to type next; None where nothing is left."""
    return _COMMANDS.get(str(data["status"]["next"]["action"]))


def tested(data: Data) -> list[Data]:
    return [h for h in data["hypotheses"] if h["status"] in VERDICTS]


def validated(data: Data) -> list[Data]:
    return [h for h in data["hypotheses"] if h["status"] == Status.VALIDATED]


def effect(hypothesis: Data) -> str | None:
    """The change of a hypothesis in its metric's terms, without its interval; None is unknown."""
    if hypothesis.get("delta_pp") is not None:
        return present.points({"value": hypothesis["delta_pp"]})
    if hypothesis.get("improvement") is not None:
        return present.factor({"value": hypothesis["improvement"]})
    return None


def _unmeasured(data: Data) -> str:
    baseline = data["status"]["baselines"]["workload"]
    if not data["runs"]:
        return "Nothing has been measured yet."
    why = f": {baseline['why']}" if baseline and baseline.get("why") else ""
    return f"The workload has no baseline to compare with yet{why}."


def _stood(data: Data, start: float) -> str:
    metric, gain = metric_of(data), data["gain"] or {}
    said = f"{figure_name(data)} stood at {present.figure(metric, start)}"
    known = [
        (what, gain[key]) for what, key in (("reference", "reference"), ("target", "target")) if gain.get(key)
    ]
    if known:
        rest = ", ".join(f"{what} {present.figure(metric, value)}" for what, value in known)
        said += f" ({rest})"
    return f"{said}. "


def _found(data: Data) -> Iterable[Part]:
    done, good = tested(data), validated(data)
    if not done:
        return [Part("No hypothesis has been tested yet. ")]
    if not good:
        return [
            Part(f"Of {_count(len(done), 'tested hypothesis', 'tested hypotheses')} none was VALIDATED. ")
        ]
    best = max(good, key=_size)
    said = effect(best)
    lead = f"Of {_count(len(done), 'tested hypothesis', 'tested hypotheses')} {_was(len(good))} VALIDATED"
    which = f"; the largest effect{f', {said},' if said else ''} has " if len(good) > 1 else ": "
    end = "" if len(good) > 1 or not said else f", {said}"
    return [Part(lead + which + "“"), Part(best["title"], own=True), Part(f"”{end}. ")]


def _was(count: int) -> str:
    return f"{count} {'was' if count == 1 else 'were'}"


def _size(hypothesis: Data) -> float:
    for key in ("delta_pp", "improvement"):
        if hypothesis.get(key) is not None:
            return float(hypothesis[key])
    return float("-inf")


def _now(data: Data) -> str:
    gain, metric = data["gain"], metric_of(data)
    if gain is None or gain["now"] is None or not gain["accepted"]:
        return "No change has been accepted yet." if validated(data) else ""
    said = f"With {_count(len(gain['accepted']), 'accepted change', 'accepted changes')} it is now "
    left = f", {gain['gap_text']}" if gain["gap"] is not None else ""
    return f"{said}{present.figure(metric, gain['now'])}{left}."


def _count(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def plain(parts: Sequence[Part]) -> str:
    """The same as one text."""
    return "".join(p.text for p in parts).strip()
