"""Where a step of a training goes, of one run's evidence."""

from __future__ import annotations

from collections.abc import Mapping

from gpudebug.core.answers.diagnosis import BusyPlace, StepParts
from gpudebug.core.diagnosis.figures import number
from gpudebug.core.diagnosis.ofattached import phases
from gpudebug.core.inside.stacks.evaluation import hottest
from gpudebug.core.records import Evidence

_PARTS: Mapping[str, str] = {
    "data_wait": "data_wait_share",
    "forward": "forward_share",
    "backward": "backward_share",
    "optimizer": "optimizer_share",
}
_PLACES = 3
_LEAST = 0.05


def step_parts(evidence: Evidence) -> StepParts:
    """Return the parts of a step by the probe, of a job that ran already by its stacks, what is left as
    `other`; and the lines with the most time."""
    return StepParts(
        time_s=evidence.step_time_p50_s, shares=_shares(evidence), places=tuple(_places(evidence))
    )


def _shares(evidence: Evidence) -> dict[str, float]:
    probe = evidence.probe
    if probe is None and evidence.attached is not None:
        seen = phases(evidence.stacks)
        found = {name: number(seen.get(field)) for name, field in _PARTS.items()}
    else:
        found = {} if probe is None else {name: getattr(probe, field) for name, field in _PARTS.items()}
    known = {name: share for name, share in found.items() if share is not None}
    if not known:
        return {}
    return {**known, "other": max(0.0, 1.0 - sum(known.values()))}


def _places(evidence: Evidence) -> list[BusyPlace]:
    training = evidence.stacks.training if evidence.stacks else None
    if training is None or not training.seconds:
        return []
    hot = [one for one in hottest(training)[:_PLACES] if one.share >= _LEAST]
    return [
        BusyPlace(site=h.site, function=h.function, share=h.share, state=h.state, code=h.code) for h in hot
    ]
