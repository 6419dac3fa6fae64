"""What a reader of the mean utilisation of a baseline's devices has to know, as `status` shows it."""

from __future__ import annotations

from gpudebug.core.statistics.metrics import Metric
from gpudebug.engine.campaign.campaign import CampaignBaseline, Setup


def advice(setup: Setup, baseline: CampaignBaseline) -> list[str]:
    """Return what to judge by where the mean misleads, if utilisation judges."""
    if not _telling(baseline) or not setup.metric.points:
        return []
    from gpudebug.core.evidence.devices import mean_hides

    hides = mean_hides(baseline.evidence, setup.config.criteria.devices)
    return [hides] if hides is not None else []


def notes(metric: Metric, baseline: CampaignBaseline) -> list[str]:
    """Return what `sample` notes of such runs: the device that the others wait for, and that the mean
    misleads; the latter is an advice if utilisation judges."""
    if not _telling(baseline):
        return []
    from gpudebug.core.evidence import devices

    misleads = None if metric.points else devices.mean_hides(baseline.evidence)
    return [note for note in (devices.waited_for(baseline.evidence), misleads) if note is not None]


def _telling(baseline: CampaignBaseline) -> bool:
    """Tell whether there is anything to know: one device without power hides nothing, and `status` is to
    start fast."""
    return any(len(e.get("devices") or ()) > 1 or e.get("working") is not None for e in baseline.evidence)
