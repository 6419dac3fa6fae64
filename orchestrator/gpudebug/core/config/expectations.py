"""Figures that a device is known to reach, and how a measured one compares with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpudebug.core.config.values import LOWER_IS_BETTER, METRICS
from gpudebug.core.statistics.metrics import LOG, SECTION, Metric
from gpudebug.core.words import Word

Ranges = Mapping[str, tuple[float, float]]
Table = Mapping[str, Ranges]
"""As gpudebug.yaml has it: figure -> device's name or `default`, and the configuration if it holds for one
alone (`V100 / ppo`) -> least and most."""

OF = " / "
"""Between a device and the configuration of which the figure is known: words of the workload's command."""

DEFAULT = "default"
_HALF = 0.5
FAULT = "a configuration fault is likely"


class Rating(Word):
    """How well a figure compares; FAULTY is less than half as good as the worse end of what is expected."""

    FAULTY = "faulty"
    BELOW = "below"
    WITHIN = "within"
    ABOVE = "above"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Expectation:
    """One figure as it was measured (None: not) beside the `least` and `most` that are expected of it.

    `device` is the row of the table: a device's name, or `default`, with its configuration if it has one.
    """

    figure: str
    device: str
    least: float
    most: float
    measured: float | None

    @property
    def less_is_better(self) -> bool:
        return self.figure.startswith(LOWER_IS_BETTER)

    @property
    def standing(self) -> Rating:
        if self.measured is None:
            return Rating.UNKNOWN
        least, most, found = self.least, self.most, self.measured
        if self.less_is_better:
            # A time of 0 would be a rate beyond every bound.
            least, most, found = (1 / max(v, 1e-12) for v in (most, least, found))
        if found < _HALF * least:
            return Rating.FAULTY
        if found < least:
            return Rating.BELOW
        return Rating.ABOVE if found > most else Rating.WITHIN


def compare(
    table: Table, devices: Sequence[str], evidence: Sequence[Mapping[str, Any]], command: str = ""
) -> list[Expectation]:
    """What `table` says of runs of `command` on devices with these names, one row a figure that it knows.

    `evidence` are the runs' evidence.json; a run without a figure leaves the mean to the others.
    """
    rows = []
    for figure, ranges in table.items():
        device = row_for(ranges, devices, command)
        if device is not None:
            least, most = ranges[device]
            rows.append(Expectation(figure, device, least, most, _mean(figure, evidence)))
    return rows


def _mean(figure: str, evidence: Sequence[Mapping[str, Any]]) -> float | None:
    metric = Metric(figure)
    return metric.mean([value for facts in evidence if (value := metric.recorded(facts)) is not None])


def rows(
    table: Table, devices: Sequence[str], evidence: Sequence[Mapping[str, Any]], command: str = ""
) -> list[dict[str, Any]]:
    """`compare` as JSON and in words: `note` says what to make of a figure, None if there is no cause."""
    return [
        {
            "figure": row.figure,
            "device": row.device,
            "range": [row.least, row.most],
            "measured": row.measured,
            "standing": row.standing.value,
            "note": _note(row) if evidence else "not measured yet",
        }
        for row in compare(table, devices, evidence, command)
    ]


def _note(row: Expectation) -> str | None:
    if row.standing is Rating.FAULTY:
        return f"{'more than twice' if row.less_is_better else 'less than half of'} what is expected: {FAULT}"
    if row.standing is not Rating.UNKNOWN:
        return None
    if row.figure in METRICS or row.figure.startswith((LOG, SECTION)):
        return Metric(row.figure).absent()
    return f"no metric has this name; there are {', '.join(METRICS)}"


def row_for(ranges: Ranges, devices: Sequence[str], command: str = "") -> str | None:
    """The row for the first of `devices` that has one: of its name, else the longest name that is part of it.

    Letter case does not count. A row of a configuration, all of whose words `command` has, goes before one of
    the device alone. `default` if no device has one; None if that is not there either.
    """
    fitting = [(row, *_parts(row)) for row in ranges if _fits(_parts(row)[1], command.casefold())]
    for device in devices:
        name = device.casefold()
        own = [(len(of), len(words), row) for row, of, words in fitting if of != DEFAULT and of in name]
        if own:
            return max(own)[2]
    rest = [(len(words), row) for row, of, words in fitting if of == DEFAULT]
    return max(rest)[1] if rest else None


def _parts(row: str) -> tuple[str, list[str]]:
    """Return the device of a row and the words of its configuration, in lower case."""
    device, _, configuration = row.casefold().partition(OF)
    return device.strip(), configuration.split()


def _fits(words: Sequence[str], command: str) -> bool:
    return all(word in command for word in words)
