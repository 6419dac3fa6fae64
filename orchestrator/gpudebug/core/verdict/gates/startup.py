"""Whether start-up takes what the steps save: a wait that is moved before the first step is still a wait."""

from __future__ import annotations

from collections.abc import Sequence

from gpudebug.core.records import Evidence
from gpudebug.core.verdict import others
from gpudebug.core.verdict.gates.case import TrialCase
from gpudebug.core.verdict.gates.rates import mean
from gpudebug.core.words import Outcome

# Start-up that takes less than this longer, in seconds, or less than this share, varies from run to run.
LEAST_S = 2.0
LEAST_SHARE = 0.5
# Of what the steps of the planned length save, what start-up may take: a gain keeps most of itself.
MOST = 0.5


def eats_gain(case: TrialCase) -> str | None:
    """Return why the gain is none over the length that the command plans.

    None if start-up does not take longer, if the length is not known, or if a person confirmed the change:
    what compiles or caches first is tested short and pays in a long run.
    """
    ratio = case.ratio or (case.delta if case.metric.throughput else None)
    longer, planned = _longer(case), _planned_s(case)
    if case.setting.confirmed or ratio is None or ratio.value <= 1:
        return None
    if longer is None or planned is None:
        return None
    saved = planned * (1 - 1 / ratio.value)
    if longer <= MOST * saved:
        return None
    return (
        f"start-up takes {longer:.0f} s longer, and the steps of the planned length save {saved:.0f} s: "
        "plan as many steps as a real training has"
    )


def _longer(case: TrialCase) -> float | None:
    """Seconds that start-up takes longer in the trial, by the quickest runs; None if not, or unknown."""
    sides = [[_first_s(e) for e in side] for side in (case.before, case.after)]
    before, after = ([value for value in side if value is not None] for side in sides)
    if len(before) + len(after) < len(case.before) + len(case.after):
        return None
    longer = min(after) - min(before)
    return longer if longer > max(LEAST_S, LEAST_SHARE * max(before)) else None


def _first_s(e: Evidence) -> float | None:
    """Seconds to the first step, as the probe saw it, less what others kept the run from."""
    first = e.probe.first_step_s if e.probe is not None else None
    return first * (1 - (others.share(e) or 0.0) / 100) if first is not None else None


def _planned_s(case: TrialCase) -> float | None:
    """Seconds that the steps of the baseline's planned length take; None if its runs do not tell."""
    return mean(found) if (found := _lengths(case.before, case.setting.planned_steps)) else None


def _lengths(before: Sequence[Evidence], planned_steps: float | None) -> list[float]:
    found = []
    for e in before:
        steps = planned_steps or e.total_steps or (e.steps if e.outcome is Outcome.COMPLETED else None)
        if not steps or not e.steps_per_s:
            return []
        found.append(steps / e.steps_per_s)
    return found
