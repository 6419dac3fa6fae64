"""Runs of a fixed number of steps that a faster trial makes too short: by how much both sides grow."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from gpudebug.core.records import Evidence, Verdict
from gpudebug.core.samples.window import MIN_RUN_WINDOW_S, WARMUP_SHARE, WARMUP_STEPS, is_short
from gpudebug.core.statistics.metrics import Metric
from gpudebug.core.verdict.gates import Criteria, window_total
from gpudebug.core.words import Outcome, Result, Status, WorkName

MOST = 64
"""No run is made more times as long than this."""
TRIAL_RUNS = 3
"""A lengthened trial has its `min_window` after so many runs."""
MARGIN = 1.2
"""A window that is planned so much longer than the least one is long enough on another run, too."""
GREW = 1.3
"""A run that a flag was to double, and that is not so much longer, is not as long as that flag says."""
TIMEOUT_SHARE = 0.9
_SHORTEST = 0.25
_PASSES = re.compile(r"epochs$", re.I)
_OF_ROLLOUT = re.compile(r"(?:^|[-.])n(?:um)?[-_]epochs$", re.I)
# The last is how Stable-Baselines3 spells its timesteps.
_SPENT = re.compile(r"(?:timesteps|frames|^-n)$", re.I)


def too_short(verdict: Verdict, criteria: Criteria, after: Sequence[Evidence]) -> bool:
    """Whether a trial is undecided because its runs are too short, however many are made.

    So is one that met another load than the baseline: longer runs have a baseline of their own beside them.
    """
    delta = next(g.result for g in verdict.gates if g.name == "delta")
    undecided = verdict.status is Status.INCONCLUSIVE or _met_another_load(verdict, after)
    if not undecided or delta is not Result.UNKNOWN or not after:
        return False
    if Metric(criteria.metric).name.startswith("latency"):
        return False
    if any(e.window is None or is_short(e.window) for e in after):
        return all(e.window is not None or "too short" in (e.window_reason or "") for e in after)
    return window_total(after) / len(after) * criteria.max_runs < criteria.min_window


def _met_another_load(verdict: Verdict, after: Sequence[Evidence]) -> bool:
    """Whether strangers on the cores, and nothing else, made the trial INVALID."""
    failing = {g.name for g in verdict.gates if g.result is Result.FAIL}
    stranger = any(e.conditions.foreign_procs for e in after)
    ended = next(g.result for g in verdict.gates if g.name == "outcome") is not Result.UNKNOWN
    return verdict.status is Status.INVALID and failing == {"device_to_itself"} and ended and not stranger


def factor(criteria: Criteria, window_s: float) -> int | None:
    """The smallest power of two by which a run of the trial, with a window of `window_s`, has to grow; None
    if that is more than `MOST`."""
    runs = min(TRIAL_RUNS, criteria.max_runs)
    wanted = MARGIN * max(MIN_RUN_WINDOW_S, criteria.min_window / runs)
    exponent = max(1, math.ceil(math.log2(wanted / max(window_s, _SHORTEST))))
    return 2**exponent if 2**exponent <= MOST else None


def window_of_short(run: Evidence, before: Sequence[Evidence]) -> float:
    """Seconds of steady window of a run that may be too short to have one, as far as its rate shows.

    Without a rate, what is left of its time if start-up takes as long as in the baseline.
    """
    if run.window is not None:
        return run.window.duration_s
    rate, steps = run.progress_per_s or run.steps_per_s, run.steps
    if rate and steps:
        return max(0.0, (steps - max(WARMUP_STEPS, WARMUP_SHARE * steps)) / rate)
    known = [e.duration_s - e.window.duration_s for e in before if e.duration_s and e.window]
    return max(0.0, (run.duration_s or 0.0) - (sum(known) / len(known) if known else 0.0))


def holds(before: Sequence[Evidence], min_window: float, max_runs: int) -> float | None:
    """How many times as fast a trial of these baseline runs may be and still have its windows.

    None if they were ended by gpudebug, so that a faster trial makes more steps in the same time, or if a
    run has no window.
    """
    if not before or any(e.window is None or e.outcome is Outcome.ENDED_BY_PLAN for e in before):
        return None
    window = window_total(before) / len(before)
    return max(1.0, min(window / MIN_RUN_WINDOW_S, window * max_runs / min_window))


def counts_length(name: str, value: int, before: Sequence[Evidence]) -> bool:
    """Whether a flag is how long the baseline's runs were: by its name if it counts epochs, or what their
    environments did; else if they made as many steps, or do not say.

    The `n_epochs` of runs with environments are not: they may be passes over one rollout, as PPO's are.
    """
    if _PASSES.search(name):
        return not (_OF_ROLLOUT.search(name) and any(map(_in_environments, before)))
    if _SPENT.search(name) and all(map(_in_environments, before)):
        return True
    made = [steps for e in before if (steps := e.total_steps or e.steps)]
    return all(abs(steps - value) <= 0.1 * value + 1 for steps in made)


def _in_environments(e: Evidence) -> bool:
    return any(one.unit == WorkName.ENVIRONMENT_STEPS for one in e.work)
