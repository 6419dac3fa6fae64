"""Whether a run did other work than the runs of the same command beside it: they have no common mean."""

from __future__ import annotations

from collections.abc import Sequence

from gpudebug.core.records import Evidence, LossEvidence
from gpudebug.core.words import Outcome, Trend

# A run that does less than this of what another does was not given the same work.
LEAST_WORK = 0.6
# It was over sooner, too: in less than this share of the time.
SOONER = 0.8
# A run begins later if it does so by this share of what the other one does.
LATER = 0.1
# A loss that falls by this share of itself shows where on its way a run begins; a run that begins with this
# share of the way behind it has learned before.
LEAST_FALL = 0.3
BEHIND = 0.75
FEWEST_LOSSES = 10
_LONGEST = 80


def unlike(run: Evidence, beside: Sequence[Evidence], *, changed: bool = False) -> str | None:
    """Why a run is unlike every one of those beside it; None if it is like one, or if nothing shows it.

    A run that resumes, or begins behind where another began, had a snapshot of an earlier run; one that ends
    by itself after far fewer steps, and sooner, was given less to do. A `changed` run may have fewer steps.
    """
    found = [_against(run, other, changed) for other in beside]
    return found[0] if found and all(found) else None


def unlike_notes(sides: Sequence[Sequence[Evidence]]) -> list[str]:
    """A line for each run that is unlike the first of its side, or that alone of the sides resumes."""
    found = [(e, unlike(e, side[:1])) for side in sides for e in side[1:]]
    found += [
        (side[0], unlike(side[0], sides[0][:1], changed=True)) for side in sides[1:] if side and sides[0]
    ]
    return [f"run {e.run} did other work: {why}" for e, why in found if why is not None]


def _against(run: Evidence, other: Evidence, changed: bool) -> str | None:
    if run.resumed is not None and other.resumed is None:
        return f"it goes on where an earlier run ended ({_short(run.resumed)}), and {other.run} does not"
    if not changed and (why := _learned_before(run.loss, other.loss)):
        return f"{why} in {other.run}: it goes on from what an earlier run kept"
    mine, theirs = _ends(run), _ends(other)
    if mine is None or theirs is None or run.step_unit != other.step_unit:
        return None
    (first, last), (usual, until) = mine, theirs
    unit, work = run.step_unit or "step", until - usual
    if not changed and first - usual >= max(1.0, LATER * work):
        return f"it begins at {unit} {first}, and {other.run} at {unit} {usual}"
    whole = run.outcome is Outcome.COMPLETED and other.outcome is Outcome.COMPLETED
    fewer = last - first + 1 < LEAST_WORK * (work + 1)
    if whole and fewer and not changed and _sooner(run, other):
        return f"it ended at {unit} {last}, and {other.run} at {unit} {until}"
    return None


def _sooner(run: Evidence, other: Evidence) -> bool:
    """Whether a run was over sooner; a training that a clock ends makes fewer steps, but in the same time.

    Its time is that of its counts at the rate of its window, which start-up has no part in, else the whole.
    """
    times = [
        (last - first + 1) / e.progress_per_s
        for e in (run, other)
        if (ends := _ends(e)) and e.progress_per_s
        for first, last in (ends,)
    ]
    if len(times) < 2:
        times = [e.duration_s for e in (run, other) if e.duration_s is not None]
    return len(times) == 2 and times[0] < SOONER * times[1]


def _learned_before(run: LossEvidence, other: LossEvidence) -> str | None:
    """Where the run's loss begins near the end of the other's, at an equal step; None if it does not."""
    enough = min(run.points, other.points) >= FEWEST_LOSSES and run.name == other.name
    if not enough or other.trend is not Trend.CONVERGING or not run.curve or not other.curve:
        return None
    step, begins = run.curve[0]
    usual = next((value for at, value in reversed(other.curve) if at <= step), other.curve[0][1])
    fall = usual - other.curve[-1][1]
    if fall <= LEAST_FALL * abs(usual) or usual - begins < BEHIND * fall:
        return None
    return f"its {run.name} begins at {begins:.3g}, at that step {usual:.3g}"


def _ends(e: Evidence) -> tuple[int, int] | None:
    """The first and the last count of a run's log."""
    return (e.first_count, e.last_count) if e.first_count is not None and e.last_count is not None else None


def _short(line: str) -> str:
    return line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."
