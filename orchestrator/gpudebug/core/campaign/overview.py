"""What one glance at a campaign shows, of the data that its report is made of: where it is, what counts.

Hypotheses are those of `status`'s JSON: a figure in `delta_pp` or `improvement` has its runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.metrics import Metric
from gpudebug.core.words import VERDICTS, Status, counted, device_kind, is_stand_in

Hypothesis = Mapping[str, Any]


def tested(hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Return those with a verdict."""
    return [h for h in hypotheses if h["status"] in VERDICTS]


def validated(hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Return the VALIDATED ones, whether runs bear them out or not."""
    return [h for h in hypotheses if h["status"] == Status.VALIDATED]


def effect(h: Hypothesis) -> dict[str, Any] | None:
    """What the change did to the metric, `value`, `low` and `high`: points of utilisation, else a ratio."""
    value, bounds = h["delta_pp"], h["delta_ci"]
    if value is None:
        value, bounds = h["improvement"], h["improvement_ci"]
    if value is None:
        return None
    low, high = bounds or (None, None)
    return {"value": value, "low": low, "high": high}


def effect_text(h: Hypothesis) -> str:
    """`+40.0pp (95% CI +39.6 to +40.4)`, a ratio likewise; a figure without runs is UNVERIFIED."""
    found = effect(h)
    if found is None:
        claimed = h["claimed"] if h["verified"] is False else None
        return f"UNVERIFIED {claimed}" if claimed else numbers.UNKNOWN
    return _said(h, found)


def change_text(h: Hypothesis) -> str | None:
    """Return the effect without its interval; None is unknown."""
    found = effect(h)
    return None if found is None else _said(h, {"value": found["value"]})


def _said(h: Hypothesis, found: Mapping[str, Any]) -> str:
    return numbers.points(found) if h["delta_pp"] is not None else numbers.factor(found)


def best(hypotheses: Sequence[Hypothesis]) -> Hypothesis | None:
    """Return the VALIDATED one that counts whose runs show the largest effect; None without any."""
    counted = (h for h in validated(hypotheses) if effect(h) is not None and not doubted(h))
    return max(counted, key=_size, default=None)


def doubted(h: Hypothesis) -> bool:
    """Tell whether its verdict does not count: by weaker terms than the pinned ones, or on recordings."""
    return bool(h.get("doubts"))


def _size(h: Hypothesis) -> float:
    found = effect(h)
    return found["value"] if found else float("-inf")


def rows(hypotheses: Sequence[Hypothesis], most: int) -> list[Hypothesis]:
    """At most `most` of those tested, in their order: accepted ones first, then VALIDATED, then by effect."""
    known = tested(hypotheses)
    ranked = sorted(known, key=lambda h: (h["accepted"] is None, h["status"] != Status.VALIDATED, -_size(h)))
    kept = {h["number"] for h in ranked[:most]}
    return [h for h in known if h["number"] in kept]


def tally(hypotheses: Sequence[Hypothesis]) -> str:
    """`2 VALIDATED, 1 REJECTED, 3 UNTESTED`."""
    counts = Counter(h["status"] for h in hypotheses)
    text = ", ".join(f"{counts[s.value]} {s.value}" for s in _ORDER if counts[s.value])
    return text or "No hypothesis yet"


_ORDER = (
    *(Status.VALIDATED, Status.REJECTED, Status.INCONCLUSIVE, Status.INVALID),
    *(Status.TESTING, Status.UNTESTED),
)


def headline(data: Mapping[str, Any]) -> str:
    """Sum up the campaign in half a sentence."""
    gain, hypotheses = data["gain"], data["hypotheses"]
    if gain is None or gain["start"] is None:
        return "no baseline is measured yet"
    metric, count = Metric(gain["metric"]), len(gain["accepted"])
    start = f"{metric.name} {numbers.figure(metric, gain['start'])}"
    changes = counted(count, "accepted change")
    if count and gain["now"] is None:
        return f"{start} before {changes}, not measured together yet"
    if count:
        return f"{start} to {numbers.figure(metric, gain['now'])} with {changes}"
    found = best(hypotheses)
    if found is not None:
        return f"{start}, {change_text(found)} with hypothesis {found['number']}"
    if not tested(hypotheses):
        return f"{start}, no hypothesis is tested yet"
    return f"{start}, none of the hypotheses tested is VALIDATED"


def device(data: Mapping[str, Any]) -> str:
    """`2 x NVIDIA A100`; a processor is marked as the stand-in for a GPU."""
    counts = Counter(
        f"CPU stand-in, {d['name']}" if is_stand_in(d["uuid"]) else d["name"] for d in _devices(data)
    )
    return ", ".join(f"{n} x {name}" if n > 1 else name for name, n in counts.items()) or "no device used yet"


def utilisation(data: Mapping[str, Any]) -> str:
    """Return the name of the figure in percent: that of a processor is never shown as a GPU's."""
    return "gpu_util of the CPU stand-in" if stand_in(data) else "gpu_util"


def stand_in(data: Mapping[str, Any]) -> bool:
    """Tell whether a processor stood in for a GPU; before the first run, whether one is to."""
    found = _devices(data)
    if found:
        return any(is_stand_in(d["uuid"]) for d in found)
    return device_kind(data["status"]["device"]["setting"].partition(":")[0]).shares_cores


def _devices(data: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return those of the newest baseline, else of the newest run."""
    machine = data["machine"]
    found: Sequence[Mapping[str, Any]] = (machine or data["status"]["device"])["devices"]
    return found
