"""Pieces of the page that need arithmetic: small drawings, a tree of sections, texts and what differs."""

from __future__ import annotations

import difflib
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from gpudebug.core.answers.diagnosis import gained
from gpudebug.core.statistics.across import name as device_name
from gpudebug.core.statistics.metrics import Metric
from gpudebug.core.statistics.numbers import UNKNOWN, figure, number, percent, seconds
from gpudebug.core.text.shown import legible

Data = Mapping[str, Any]
SPARK = 100
"""Width and height of the box of a sparkline."""
EFFECT_WIDTH = 132.0
_DEEPEST = 4
_LEAST_BOTTLENECK = 0.1
_BOTTLENECKS = 3


def link(folder: Path, target: str, *names: str) -> str:
    """`target` as seen from the page's `folder`, to be written into an href: `../0005-h1/train.log`."""
    path = os.path.join(os.path.relpath(target, folder), *names)
    # A bare first part could be read as a scheme.
    start = "" if path.startswith(".") else "./"
    return start + quote(os.fsencode(path))


def line(values: Sequence[float | None], top: float = 100.0) -> str:
    """Return the d of a path through values from 0 to `top`, in its box."""
    step = SPARK / max(1, len(values) - 1)
    points = [f"{step * i:.0f} {_height(v, top):.0f}" for i, v in enumerate(values) if v is not None]
    return "M" + "L".join(points) if points else ""


def area(values: Sequence[float | None], top: float = 100.0) -> str:
    """Return the same down to the ground."""
    drawn = line(values, top)
    return f"{drawn}V{SPARK}H0Z" if drawn else ""


def _height(value: float, top: float) -> float:
    return SPARK * (1 - min(1.0, max(0.0, value / top)))


class EffectBar(NamedTuple):
    """An effect and its interval as places on a line of `EFFECT_WIDTH`; no bounds if unknown."""

    zero: float
    value: float
    low: float | None
    high: float | None


def effects(hypotheses: Sequence[Data]) -> dict[int, EffectBar]:
    """Of all hypotheses that have one, on one scale for those in points and one for ratios (logarithmic)."""
    found = {h["number"]: numbers for h in hypotheses if (numbers := _numbers(h)) is not None}
    reach: dict[bool, float] = {}
    for points, values in found.values():
        most = max(abs(v) for v in values if v is not None)
        reach[points] = max(reach.get(points, 0.0), most)
    return {n: _placed(values, reach[points] or 1.0) for n, (points, values) in found.items()}


def _numbers(h: Data) -> tuple[bool, tuple[float, float | None, float | None]] | None:
    if h.get("delta_pp") is not None:
        low, high = h.get("delta_ci") or (None, None)
        return True, (h["delta_pp"], low, high)
    if (h.get("improvement") or 0) > 0:
        low, high = h.get("improvement_ci") or (None, None)
        return False, (math.log(h["improvement"]), _log(low), _log(high))
    return None


def _log(value: float | None) -> float | None:
    return math.log(value) if value is not None and value > 0 else None


def _placed(values: tuple[float, float | None, float | None], reach: float) -> EffectBar:
    half = EFFECT_WIDTH / 2
    room = half - 5
    return EffectBar(half, *(None if v is None else round(half + room * v / reach, 1) for v in values))  # type: ignore[arg-type]


class SectionTreeRow(NamedTuple):
    """A section, and how deep below the one that it was entered from."""

    section: Data
    depth: int
    bottleneck: bool


def tree(sections: Sequence[Data], outline: Sequence[Data]) -> list[SectionTreeRow]:
    """Sections in the order and at the depth of a run's `outline`, once each; then those that it lacks.

    The bottlenecks are those with the most time of their own, a tenth of all at least.
    """
    rest = {s["name"]: s for s in sections}
    marked = _bottlenecks(outline)
    rows = []
    for place in outline:
        if (found := rest.pop(place["name"], None)) is not None:
            rows.append(SectionTreeRow(found, min(place["depth"], _DEEPEST), place["name"] in marked))
    return [*rows, *(SectionTreeRow(s, 0, False) for s in sorted(rest.values(), key=_share, reverse=True))]


def _bottlenecks(outline: Sequence[Data]) -> set[str]:
    own: dict[str, float] = {}
    for row in outline:
        own[row["name"]] = own.get(row["name"], 0.0) + row["own_s"]
    least = _LEAST_BOTTLENECK * sum(own.values())
    worst = sorted((name for name in own if own[name] >= least > 0), key=lambda name: -own[name])
    return set(worst[:_BOTTLENECKS])


def _share(section: Data) -> float:
    """Before the change; after it if it is new."""
    side = section.get("a") or section.get("b")
    return float(side["share"]) if side else 0.0


class Piece(NamedTuple):
    text: str
    kind: str  # "same", "cut", "add", "place"


def words(before: str, after: str) -> tuple[list[Piece], list[Piece]]:
    """Both texts in pieces, with the words that only one of them has marked."""
    a, b = re.findall(r"\s+|\S+", before), re.findall(r"\s+|\S+", after)
    first: list[Piece] = []
    second: list[Piece] = []
    for kind, i, j, k, n in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        same = kind == "equal"
        if j > i:
            first.append(Piece("".join(a[i:j]), "same" if same else "cut"))
        if n > k:
            second.append(Piece("".join(b[k:n]), "same" if same else "add"))
    return first, second


def patch(text: str) -> list[Piece]:
    """Return a patch by lines: what it adds, what it cuts, and where."""
    lines = text.removesuffix("\n").split("\n")
    return [Piece(legible(line.removesuffix("\r")), _kind(line)) for line in lines]


def _kind(text_line: str) -> str:
    if text_line.startswith(("@@", "diff ", "--- ", "+++ ", "index ")):
        return "place"
    return {"+": "add", "-": "cut"}.get(text_line[:1], "same")


_ENDS = (("Unmodified workload", "start"), ("Now, all of it together", "now"))


class Rung(NamedTuple):
    """One bar of the ladder of accepted changes; `hypothesis` is None for its two ends."""

    hypothesis: int | None
    title: str
    value: float | None
    shown: str
    step: str


def ladder(gain: Data, metric: Metric) -> list[Rung]:
    """Return the start, then each accepted change with what its trial reached and added, then all of them
    together as the newest baseline measured them."""
    first, last = (Rung(None, name, gain[key], figure(metric, gain[key]), "") for name, key in _ENDS)
    if gain.get("gained") is not None:
        last = last._replace(step=gain["gained_text"])
    changes = [_rung(change, metric) for change in gain["accepted"]]
    return [first, *changes, last] if changes else [first]


def _rung(change: Data, metric: Metric) -> Rung:
    shown = figure(metric, change["after"])
    return Rung(change["hypothesis"], change["title"], change["after"], shown, change["change_text"])


def top(gain: Data, metric: Metric) -> float:
    """Return what the ladder's full width is: 100 % of utilisation, the largest figure otherwise."""
    values = [gain["start"], gain["now"], gain["reference"], gain["target"]]
    values += [change["after"] for change in gain["accepted"]]
    most = max((v for v in values if v is not None), default=0.0)
    return max(100.0, most) if metric.points else most or 1.0


def when(at: str | None) -> str:
    """`2026-11-21 10:00:03 UTC` of an ISO time in UTC."""
    if not at:
        return UNKNOWN
    # Every time of ours is UTC.
    return f"{at[:19].replace('T', ' ')} UTC"


def inside(sides: Sequence[Data]) -> list[tuple[str, list[str | None]]]:
    """What the training processes of all sides reported, by figure; without figures that no side knows."""
    rows = [(label, [_told(s.get("figures"), key, show) for s in sides]) for label, key, show in _INSIDE]
    return [(label, cells) for label, cells in rows if any(cells)]


def _told(figures: Data | None, key: str, show: Callable[[float], str]) -> str | None:
    value = (figures or {}).get(key)
    return None if value is None else show(value)


def _percent(share: float) -> str:
    return percent(100 * share)


_INSIDE: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("step time, p50", "step_time_p50_s", seconds),
    ("step time, p95", "step_time_p95_s", seconds),
    ("waiting for data", "data_wait_share", _percent),
    ("fetching in other threads", "background_data_share", _percent),
    ("forward", "forward_share", _percent),
    ("backward", "backward_share", _percent),
    ("optimizer", "optimizer_share", _percent),
    ("blocking reads a step", "blocking_reads_per_step", number),
    ("time in blocking reads", "blocking_read_share", _percent),
    ("synchronisations a step", "syncs_per_step", number),
    ("device time in steps", "device_time_share", _percent),
    ("CPU cores used", "cpu_cores", number),
    ("peak host memory, MB", "peak_host_mb", number),
    ("peak device memory, MB", "peak_device_mb", number),
)


ELECTRIC = ("Power", "Clock", "Temperature", "Throttled", "Link")
DEVICE_HEADS = ("GPU", "Utilisation", "5 to 95 %", "Memory, most", *ELECTRIC)


def device_rows(devices: Sequence[Data]) -> list[list[str | None]]:
    """Return a row a device under `DEVICE_HEADS`; None is unknown."""
    return [_device_row(d) for d in devices]


def _device_row(d: Data) -> list[str | None]:
    util, memory = d.get("gpu_util"), d.get("memory")
    return [
        device_name(d),
        percent(util["mean"]) if util else None,
        f"{util['p5']:.0f} to {util['p95']:.0f}" if util else None,
        f"{memory['peak_mb']:.0f} MB" if memory else None,
        *electric(d),
    ]


def electric(d: Data) -> list[str | None]:
    """Return what the driver tells of a device beside its use, under `ELECTRIC`."""
    limit = "" if d.get("power_limit_w") is None else f" of {d['power_limit_w']:.0f}"
    return [
        f"{d['power_w']['mean']:.0f}{limit} W" if d.get("power_w") else None,
        f"{d['sm_clock_mhz']['mean']:.0f} MHz" if d.get("sm_clock_mhz") else None,
        f"{d['temperature_c']['mean']:.0f} C" if d.get("temperature_c") else None,
        None if d.get("throttled") is None else _percent(d["throttled"]),
        d.get("link"),
    ]


def ceiling(cause: Data) -> str:
    """Return the most that the fix of a cause can bring: points of utilisation, or steps a second."""
    ratio = cause.get("ceiling_ratio")
    rate = gained(ratio) if ratio is not None else ""
    points = f"+{cause['ceiling_pp']:.1f}pp" if cause["ceiling_pp"] is not None else ""
    return ", ".join(text for text in (points, rate) if text) or UNKNOWN
