"""The utilisation that a campaign's runs are judged by, `criteria.devices`, from evidence.json as read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpudebug.core.statistics.metrics import Metric

Facts = Mapping[str, Any]


def judged(devices: str | None, runs: Sequence[Facts]) -> list[Facts]:
    """The runs with utilisation (percent) and its standard error as they are judged, on one scale for all.

    None is the mean, as it was measured. What cannot be read as evidence has no figure.
    """
    if devices is None:
        return list(runs)
    # `status` answers before these would be built, where nothing asks for them.
    from gpudebug.core.records import Evidence
    from gpudebug.core.verdict.gates.figures import on_devices

    known: dict[int, Evidence] = {}
    for place, facts in enumerate(runs):
        try:
            known[place] = Evidence.model_validate(facts)
        except ValueError:
            continue
    found = dict(zip(known, on_devices(devices, list(known.values()), ())[0], strict=True))
    return [_with_figure(facts, found.get(place)) for place, facts in enumerate(runs)]


def mean_of(metric: Metric, runs: Sequence[Facts]) -> float | None:
    """Return the mean of a metric over the runs that have it."""
    return metric.mean([v for e in runs if (v := metric.recorded(e)) is not None])


def _with_figure(facts: Facts, found: Any) -> Facts:
    figures = (found.utilisation, found.standard_error) if found is not None else (None, None)
    return {**facts, "utilisation": figures[0], "standard_error": figures[1]}
