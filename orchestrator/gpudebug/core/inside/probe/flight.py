"""Lines of kind `collectives` in probe.jsonl -> when each rank came to which collective, and who comes last.

PyTorch's flight recorder notes when a rank's host calls a collective. Ranks count the collectives of a group
alike, so that group, number and name say which calls are one collective.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any, NamedTuple

MOST_CALLS = 4096
_LONGEST = 80
_LARGEST = 2.0**53
LEAST_STEPS = 20
"""Fewer steps say nothing of the rest."""


class CollectiveKey(NamedTuple):
    """Which collective a call is of."""

    group: str
    number: int
    name: str


@dataclass(frozen=True, slots=True)
class CollectiveCall:
    """When a rank's host called it, in seconds since the epoch, on the clock of its host; `numbers` that it
    took in, and the seconds that it took on the device, None if they were not timed."""

    at_s: float
    numbers: int
    took_s: float | None = None


class Lateness(NamedTuple):
    """How long after the last of the others a rank comes to a collective, in seconds: the mean over `steps`,
    below 0 if it is not the last one, and its standard error."""

    steps: int
    mean_s: float
    error_s: float


def calls(line: Mapping[str, Any]) -> dict[CollectiveKey, CollectiveCall]:
    """The calls of a line; what is not as the probe writes it is left out."""
    rows = line.get("rows")
    found = (_call(row) for row in (rows[:MOST_CALLS] if isinstance(rows, list) else ()))
    return dict(one for one in found if one is not None)


def _call(row: object) -> tuple[CollectiveKey, CollectiveCall] | None:
    if not isinstance(row, list) or len(row) != 6:
        return None
    group, number, name, at_us, numbers, took_ms = row
    whole = [value for value in (number, at_us, numbers) if isinstance(value, int) and 0 <= value <= _LARGEST]
    if not isinstance(group, str) or not isinstance(name, str) or len(whole) < 3:
        return None
    known = isinstance(took_ms, (int, float)) and not isinstance(took_ms, bool) and 0 <= took_ms < _LARGEST
    took_s = took_ms / 1e3 if known and isinstance(took_ms, (int, float)) else None
    key = CollectiveKey(group[:_LONGEST], whole[0], name[:_LONGEST])
    return key, CollectiveCall(whole[1] / 1e6, whole[2], took_s)


def lateness(
    ranks: Sequence[Mapping[CollectiveKey, CollectiveCall]],
    spans: Sequence[tuple[float, float] | None],
    step_s: float,
) -> list[Lateness] | None:
    """Of each rank, over the collectives that all of them called within their spans (in seconds since the
    epoch, None: ever); None of fewer than `LEAST_STEPS` steps, `step_s` long.

    Collectives of one step come late together, so that each step counts once.
    """
    inside = [
        {key: call.at_s for key, call in one.items() if span is None or span[0] <= call.at_s <= span[1]}
        for one, span in zip(ranks, spans, strict=True)
    ]
    if len(inside) < 2 or step_s <= 0:
        return None
    steps: defaultdict[int, list[list[float]]] = defaultdict(list)
    for key in set(inside[0]).intersection(*inside[1:]):
        times = [one[key] for one in inside]
        *_, before, last = sorted(times)
        behind = [t - (before if t == last else last) for t in times]
        steps[math.floor(min(times) / step_s)].append(behind)
    if len(steps) < LEAST_STEPS:
        return None
    means = [[fmean(column) for column in zip(*rows, strict=True)] for rows in steps.values()]
    return [
        Lateness(len(means), fmean(column), stdev(column) / math.sqrt(len(means)))
        for column in zip(*means, strict=True)
    ]
