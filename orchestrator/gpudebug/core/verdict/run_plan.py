"""When gpudebug ends a run: once start-up is over and the steady window holds what a verdict needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from gpudebug.core.inside.probe import counts
from gpudebug.core.inside.stacks.shares import by_function
from gpudebug.core.records import Evidence, LearningSeries
from gpudebug.core.samples.window import SETTLED
from gpudebug.core.statistics.assumed import assumed
from gpudebug.core.statistics.units import BY_BACKWARD, ENOUGH_LOSSES, LOSS, LOWER
from gpudebug.core.text.values import parse_phase
from gpudebug.core.verdict import work
from gpudebug.core.verdict.turns import span
from gpudebug.core.words import FLIPS, Outcome, Trend

LEAST_WINDOW_S = assumed("long_s")
"""`run_for: auto` plans this much steady window a run."""
MOST = 3.0
"""A run whose loss has not fallen yet, or that made few steps, goes on up to this many planned windows."""
MOST_SPARSE = 10.0
"""The same of a run that does print its loss, and has not printed enough of it: a line every few minutes."""
ENOUGH_STEPS = 10
"""Fewer steps than this in the window have no rate worth comparing."""
ENOUGH_EPOCHS = 3
"""The same of a log that counts epochs, or another unit of many steps, where nothing finer is known."""
SOON_S = 9.0
"""A look whose step is the same in half of so much window as in all of it has shown what there is to see."""
_SOON_LOOKS = (0.5, 1.0, 1.5, 2.25)
"""When it is looked, in `SOON_S`: each is compared with the one before."""
_HALF = 0.7
"""Of a window: what another one has at most to be its half, and no more of the same."""
_SOON_STEPS = 20
_ALIKE = 0.03
"""Of the time: so far half of the window may be from all of it, which is twice as much between its halves."""
_PARTS = ("data_wait_share", "forward_share", "backward_share", "optimizer_share", "stall_share")
LONGEST_SILENT_S = 300.0
"""A run that shows no step is still starting for `MOST_SPARSE` windows or so long: it loads a model."""
OWN_END = "its end"
"""What a run that is left to end by itself waits for."""
_SOONEST = 1.0
"""Seconds between two looks: each reads the run's samples again."""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """How long a run is to go on: `window_s` seconds of steady training, then gpudebug ends it.

    With `may_complete` a run that would end by itself within about one more window is left to. `learns` says
    that the loss is judged, so that its trend should be known. With `counted` a run that counts no steps,
    work or latencies is left to end by itself: only its whole time says how fast it is. With `silent` the
    runs beside it never showed a step, so that only the device says when start-up is over. It is ended
    `most_s` seconds after its launch, whatever it has shown by then; None: only once it has shown enough.
    With `soon_s` so much of the window is enough where a step is the same from one half of it to the other.
    With `phase` the window is the steady part of that phase, and a run without it is left to end by itself.
    """

    window_s: float
    may_complete: bool = False
    learns: bool = True
    counted: bool = False
    silent: bool = False
    most_s: float | None = None
    soon_s: float | None = None
    phase: str | None = None

    @property
    def first_s(self) -> float:
        """Seconds of window at which a first look may be worth something."""
        return self.window_s if self.soon_s is None else self.soon_s / 2


def time_left(total: int | None, done: int | None, rate: float | None) -> float | None:
    """Seconds until a run has made all `total` steps at its own rate; None if unknown."""
    if not total or done is None or not rate or done > total:
        return None
    return (total - done) / rate


class NextLook(NamedTuple):
    """Seconds until a run that goes on is worth another look, 0 if it is to be ended; what it waits for, and
    whether that likely comes by then: of a first step nothing says when."""

    seconds: float
    waits_for: str = ""
    foreseen: bool = True


def next_look(plan: RunPlan, seen: Evidence, left: float | None, before: Evidence | None = None) -> NextLook:
    """Return when a run is worth another look.

    `seen` is its evidence so far, `before` what the look before this one saw, `left` how many seconds of
    training are left by its own rate.
    """
    window = seen.window.duration_s if seen.window else 0.0
    what = "steady training"
    if plan.phase is not None:
        what = f"phase {plan.phase}"
        found = next((one for one in seen.phases if one.is_named(plan.phase)), None)
        window = found.window.duration_s if found and found.window else 0.0
        if (window and found is not seen.phases[-1]) or (seen.phases_reason or "").startswith(FLIPS):
            return NextLook(0.0)
    if window < plan.window_s:
        if plan.soon_s is not None and window >= plan.soon_s and _same(before, seen):
            return NextLook(0.0)
        looks = [part * plan.soon_s for part in _SOON_LOOKS] if plan.soon_s is not None else []
        at = next(at for at in (*looks, plan.window_s) if at > window)
        full = window > 0 and at == plan.window_s
        return NextLook(max(_SOONEST, at - window), f"{plan.window_s:.0f} s of {what}", foreseen=full)
    if plan.counted and not _counts(seen):
        return NextLook(max(_SOONEST, plan.window_s), f"{OWN_END}, as it counts no steps", foreseen=False)
    if not plan.silent and _starts(seen) and window < min(MOST_SPARSE * plan.window_s, LONGEST_SILENT_S):
        awaited = "steps at a steady pace" if seen.probe and seen.probe.steps else "its first step"
        return NextLook(max(_SOONEST, plan.window_s), awaited, foreseen=False)
    if plan.may_complete and left is not None and left < plan.window_s and window < MOST * plan.window_s:
        return NextLook(max(_SOONEST, left), OWN_END)
    if seen.loss.trend is Trend.NAN:
        return NextLook(0.0)
    points, better = _learned(seen)
    steps, learning = _missing_steps(seen, window), _missing_losses(points, better, window)
    missing = learning if plan.learns and learning.seconds > steps.seconds else steps
    most = plan.window_s * (MOST_SPARSE if plan.learns and 0 < points < ENOUGH_LOSSES else MOST)
    if missing.seconds <= 0 or window >= most:
        return NextLook(0.0)
    return missing._replace(seconds=max(_SOONEST, min(missing.seconds, most - window)))


def _same(half: Evidence | None, whole: Evidence) -> bool:
    """Tell whether a step's parts are in half of the window what they are in all of it: what grows, drains or
    comes now and then needs a longer look."""
    if half is None or half.window is None or whole.window is None:
        return False
    if half.window.duration_s > _HALF * whole.window.duration_s or _steps(whole) < _SOON_STEPS:
        return False
    one, all_ = _parts(half), _parts(whole)
    return bool(all_) and all(
        abs(one.get(part, 0.0) - all_.get(part, 0.0)) <= _ALIKE for part in one.keys() | all_.keys()
    )


def _steps(seen: Evidence) -> float:
    """Return the steps of the window; 0 if none are known."""
    if seen.probe is not None:
        return seen.probe.span_steps or 0
    rate = (seen.progress_per_s if seen.step_unit in (None, "step") else None) or seen.steps_per_s
    return rate * seen.window.duration_s if rate and seen.window else 0.0


def _parts(seen: Evidence) -> dict[str, float]:
    """Return shares of the time: of the parts of a step, without the probe of the program's functions."""
    if seen.probe is not None:
        shares = ((part, getattr(seen.probe, part)) for part in _PARTS)
        return {part: share for part, share in shares if share is not None}
    stacks = seen.stacks.training if seen.stacks else None
    return by_function(stacks) if stacks is not None else {}


def _starts(seen: Evidence) -> bool:
    """Tell whether a run may still be starting: its device is busy, and no step is seen."""
    return seen.window is not None and seen.window.rule == SETTLED and not _timed(seen)


def _timed(seen: Evidence) -> bool:
    return seen.latency is not None and bool(seen.latency.count)


def _counts(seen: Evidence) -> bool:
    return _timed(seen) or bool(seen.progress_per_s or seen.steps_per_s or seen.work)


def _missing_steps(seen: Evidence, window: float) -> NextLook:
    """Return when the window has enough steps, by the finest count of them; at once if none is known."""
    in_steps = seen.step_unit in (None, "step")
    rates = (seen.steps_per_s, counts.optimizer_rate(seen), seen.progress_per_s if in_steps else None)
    steps = max((rate for rate in rates if rate), default=None)
    if steps is not None:
        return NextLook(max(0.0, ENOUGH_STEPS / steps - window), f"{ENOUGH_STEPS} steps")
    if not seen.progress_per_s:
        return NextLook(0.0)
    missing = ENOUGH_EPOCHS / seen.progress_per_s - window
    return NextLook(max(0.0, missing), f"{ENOUGH_EPOCHS} {seen.step_unit}s of its log")


def _learned(seen: Evidence) -> tuple[int, bool]:
    """Return how many values of learning a run has shown, and whether they need no longer run: a loss that
    falls, or a reward, of which a flat one is judged by its height."""
    rewards = [one.points for one in seen.learning if one.metric != LOSS]
    if rewards:
        return max(rewards), True
    own = _of_backward(seen.learning)
    if own is not None and seen.loss.points < ENOUGH_LOSSES:
        return own.points, work.trend(own, LOWER) is Trend.CONVERGING
    return seen.loss.points, seen.loss.trend is Trend.CONVERGING


def _of_backward(learning: Sequence[LearningSeries]) -> LearningSeries | None:
    return next((one for one in learning if one.source == BY_BACKWARD), None)


def _missing_losses(points: int, better: bool, window: float) -> NextLook:
    """Return when learning may be known, by the pace of its values so far; a guess if a loss is flat."""
    if points < ENOUGH_LOSSES:
        seconds = window / 2 if points == 0 else window * (ENOUGH_LOSSES / points - 1)
        return NextLook(seconds, f"{ENOUGH_LOSSES} losses of its log", foreseen=points > 0)
    return NextLook(0.0 if better else window / 2, "its loss to fall", foreseen=False)


def losses_awaited(seen: Evidence) -> str | None:
    """Return how long runs like this one will wait until learning can be judged; None if it has shown enough
    of it or nothing, or has ended by itself."""
    points, _ = _learned(seen)
    ended = seen.outcome is Outcome.ENDED_BY_PLAN
    if not (ended and seen.window and 0 < points < ENOUGH_LOSSES):
        return None
    seconds = seen.window.duration_s * ENOUGH_LOSSES / points
    return (
        f"learning is judged by {ENOUGH_LOSSES} losses of a run, and {seen.run} shows {points}: a run takes "
        f"about {span(seconds)} for them, and is ended without them after {MOST_SPARSE:.0f} planned windows"
    )


def _flat(evidence: Mapping[str, Any]) -> bool:
    """Tell whether more of a run would not have shown its loss fall: none is known, or enough of it is."""
    learning = [LearningSeries.model_validate(one) for one in evidence.get("learning") or ()]
    own, loss = _of_backward(learning), evidence.get("loss") or {}
    points = loss.get("points") or 0
    if any(one is not own for one in learning):
        return False
    if own is not None and points < ENOUGH_LOSSES:
        return work.trend(own, LOWER) is not Trend.CONVERGING
    return not points or (points >= ENOUGH_LOSSES and loss.get("trend") != Trend.CONVERGING)


def as_recorded(
    wanted: float | str | None,
    recorded: Sequence[Mapping[str, Any]],
    *,
    learns: bool,
    phase: str | None = None,
) -> RunPlan | None:
    """Return the plan of a run beside a baseline whose runs have this evidence; None: it ends by itself.

    `wanted` is `protocol.run_for`, None for `auto`: then runs are ended if the baseline's were. `phase` is
    the one that is judged, None for the whole run. Without a baseline its first run decides. A loss that
    stayed flat to the end of the baseline's longest window is not waited for again.
    """
    if wanted == "end":
        return None
    flat = any(e.get("outcome") == Outcome.ENDED_BY_PLAN and _flat(e) for e in recorded)
    plan = RunPlan(LEAST_WINDOW_S, learns=learns and not flat, silent=never_counted(recorded), phase=phase)
    if isinstance(wanted, str):
        awaited, seconds = parse_phase(wanted)
        return replace(plan, phase=awaited, window_s=seconds or LEAST_WINDOW_S)
    if wanted is not None:
        return replace(plan, window_s=wanted)
    if not recorded:
        return replace(plan, may_complete=True)
    return plan if any(e.get("outcome") == Outcome.ENDED_BY_PLAN for e in recorded) else None


def never_counted(recorded: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether a run of these was ended, and showed no step to its end."""
    return any(
        e.get("outcome") == Outcome.ENDED_BY_PLAN and (e.get("window") or {}).get("rule") == SETTLED
        for e in recorded
    )
