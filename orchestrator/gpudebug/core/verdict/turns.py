"""The order of a trial's runs, what they spend of the device, and which effects they can tell from noise.

A trial runs T T A T A, T T A T A: runs of the change (T) and of the baseline (A). It is the order, and no
random wait, that keeps what comes and goes beside the runs from meeting one side alone. How well the runs
show an effect depends on their order alone: figures are on a scale on which effects add.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpudebug.core.statistics.intervals import SURE, normal_quantile, t_quantile
from gpudebug.core.statistics.level import Effect, Noise, Seen, follow
from gpudebug.core.words import Word, counted

BASELINE_RUNS = 2
"""Runs with which a record of the baseline begins."""
REFERENCE_RUNS = 1
"""Runs of the reference: it sets the target, and no change is judged against it."""
STALE = 3
"""Runs after which the level is not believed any more: a run of the baseline is made first."""


class NextRun(Word):
    """What a trial needs: one more run of it, one of the baseline beside it, or nothing."""

    TRIAL = "trial"
    BASELINE = "baseline"
    DONE = "done"


def runs_of(role: str) -> int:
    """Return the runs that record a baseline of this role."""
    return REFERENCE_RUNS if role == "reference" else BASELINE_RUNS


def following(trials: int, most: int, *, closed: bool, since: int) -> NextRun:
    """Return what comes after so many of at most `most` runs of the change. `closed`: the last run was of the
    baseline, made `since` places before the next one."""
    if closed:
        return NextRun.BASELINE if since > STALE else NextRun.TRIAL
    return NextRun.TRIAL if trials % 3 == 1 and trials < most else NextRun.BASELINE


def planned(most: int) -> Iterator[NextRun]:
    """Yield all runs of a trial that goes on to its end, of which `most` are of the change."""
    trials, closed = 0, True
    while trials < most or not closed:
        step = following(trials, most, closed=closed, since=1)
        trials, closed = trials + (step is NextRun.TRIAL), step is NextRun.BASELINE
        yield step


LIKELY = 5
"""Runs of a trial that are likely at most: T, or T T A, or T T A T A."""
_MINUTES_FROM = 90.0
_NAMED = 3


def span(seconds: float) -> str:
    """`55 s`, `3.7 min` or `2.1 h`."""
    if seconds < _MINUTES_FROM:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.1f} min" if minutes < _MINUTES_FROM else f"{minutes / 60:.1f} h"


def of_baseline(runs: int, seconds: Sequence[float], *, made: int = 0) -> str:
    """What a baseline of `runs` runs, of which some are `made`, still takes. `seconds` are of like runs: the
    newest, the last of them, is expected again."""
    left = runs - made
    if not seconds:
        return f"{counted(left, 'run')} of the unchanged workload; how long one takes is not known yet"
    each = seconds[-1]
    more = " more" if made else ""
    runs_text = f"{left}{more} run{'s' if left != 1 else ''}"
    return f"{runs_text} of about {span(each)}: {span(left * each)} of the device"


def so_far(
    made: int, known: str, missing: str, runs: Sequence[NextRun], seconds: Mapping[NextRun, float]
) -> str:
    """`after 2 runs of the change: 2.40x (95% CI 1.50 to 3.90); 1 more run likely decides it, about 70 s`.

    `known` is of the `made` runs of the change, `missing` the gates that alone are open beside the metric's;
    `runs` are those that likely decide, none if not even the last one does, `seconds` what the last run of
    each kind took.
    """
    text = f"after {counted(made, 'run')} of the change: {known}"
    if not runs:
        return f"{text}; all runs may leave it open"
    usual = max(seconds.values(), default=0.0)
    left = math.fsum(seconds.get(run, usual) for run in runs)
    likely = f"likely decide{'' if len(runs) > 1 else 's'} it"
    what = f"{missing} {'are' if ', ' in missing else 'is'} open: " if missing else ""
    time = f", about {span(left)}" if left else ""
    return f"{text}; {what}{counted(len(runs), 'more run')} {likely}{time}"


def of_trial(first: NextRun, seconds: Sequence[float], most: int, *, least: int = 1) -> str:
    """Return what a trial that begins with `first`, of `least` to `most` runs of the change, takes; `seconds`
    are those of the baseline's runs, the newest last."""
    begun = [first] if first is NextRun.BASELINE else []
    whole = [*begun, *planned(most)]
    fewest, likely = len(begun) + least, min(len(begun) + LIKELY, len(whole))
    more = f", …; never more than {len(whole)}" if len(whole) > _NAMED else ""
    time = f", {span(fewest * seconds[-1])} to {span(likely * seconds[-1])}" if seconds else ""
    return f"{fewest} to {likely} runs are likely{time}: {', '.join(whole[:_NAMED])}{more}"


POWER = 0.8
"""An effect counts as detected if four trials of five would tell it: the usual 80 % power."""
_REACH = normal_quantile(POWER)
MOST_TRIALS = 200
"""What takes more runs of a change than these is out of reach."""


@dataclass(frozen=True, slots=True)
class RunCounts:
    """How many runs of the trial, and of the baseline beside it."""

    trial: int
    baseline: int

    @property
    def total(self) -> int:
        return self.trial + self.baseline


@dataclass(frozen=True, slots=True)
class Ahead:
    """A trial before its first run, after the runs `before` of its baseline, oldest first.

    `sd` is the noise from run to run, `assumed` the one that the rule assumes at first; each run of the trial
    varies `variance` times as much as a long one.
    """

    before: Sequence[Seen]
    sd: float
    assumed: Noise
    variance: float = 1.0

    def detectable_effect(self, steps: Sequence[NextRun]) -> float | None:
        """Return the smallest effect whose interval excludes 0 in four trials of five; None without a run."""
        if not steps:
            return None
        error, half = self._after(steps)
        return half + _REACH * error

    def smallest_passed(self, steps: Sequence[NextRun], success: float, failure: float) -> float | None:
        """The smallest effect that passes the delta gate in four trials of five; None without a run."""
        if not steps:
            return None
        error, half = self._after(steps)
        return max(success, failure + half) + _REACH * error

    def runs_for(self, effect: float) -> RunCounts | None:
        """Return the fewest runs, the last of the baseline, after which an interval excludes what lies
        `effect` away in four trials of five; None: out of reach."""
        steps = list(planned(MOST_TRIALS))
        closed = [n + 1 for n, step in enumerate(steps) if step is NextRun.BASELINE]

        def tells(count: int) -> bool:
            error, half = self._after(steps[:count])
            return half + _REACH * error <= effect

        at = bisect_left(closed, True, key=tells)
        if at == len(closed):
            return None
        trial = steps[: closed[at]].count(NextRun.TRIAL)
        return RunCounts(trial, closed[at] - trial)

    def _after(self, steps: Sequence[NextRun]) -> tuple[float, float]:
        """Standard error of the effect and half its interval, after these runs behind the baseline's."""
        last = self.before[-1].place
        runs = [run._replace(value=0.0) for run in self.before]
        runs += [
            Seen(place, step is NextRun.TRIAL, 0.0, None, self.variance)
            for place, step in enumerate(steps, last + 1)
        ]
        found = follow(runs, self.assumed)
        error = found.spread * self.sd
        return error, t_quantile(0.5 + SURE / 2, found.freedom) * error


def begun(made: int) -> str:
    """Say what of an interrupted trial is not run again; nothing if it has no complete run."""
    count = "counts" if made == 1 else "count"
    return f"begun: {counted(made, 'complete run')} of the change {count} when next goes on" if made else ""


def own_sd(found: Effect, assumed: Noise) -> float | None:
    """Return the spread that the runs themselves show, without what is assumed; None if no run has a peer."""
    own = found.freedom - assumed.runs
    if own <= 0:
        return None
    return math.sqrt(max(found.noise**2 * found.freedom - assumed.runs * assumed.sd**2, 0.0) / own)
