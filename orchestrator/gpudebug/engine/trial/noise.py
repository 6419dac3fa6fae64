"""The noise floor of a campaign: how runs of one unchanged command vary around their level.

`status` asks for it, so nothing here imports the records' classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from gpudebug.core.answers.status import DetectableFigure, GoalRuns, Resolution
from gpudebug.core.campaign.decide import Campaign
from gpudebug.core.config import Config
from gpudebug.core.errors import GpudebugError
from gpudebug.core.statistics.level import (
    HELD,
    POINTS,
    RATIOS,
    SHORT,
    Seen,
    follow,
    places,
    relative_variance,
)
from gpudebug.core.statistics.metrics import Metric
from gpudebug.core.verdict.turns import Ahead, NextRun, own_sd, planned
from gpudebug.core.words import ended_as_planned
from gpudebug.edges import store
from gpudebug.edges.store import run_number
from gpudebug.engine.campaign.allocations import allocation_of_run
from gpudebug.engine.campaign.campaign import History, Records, Setup
from gpudebug.engine.campaign.files import record_of
from gpudebug.engine.campaign.judged import Facts, judged

AA = "aa"
"""The role of a run of the unchanged workload that is held against its own baseline."""
GAIN = 1.05
"""A gain in throughput that a person would want to see."""


def _since(setup: Setup, history: History, role: str) -> list[str]:
    """Sealed runs of the workload as it is now, made as `role` since its baseline was recorded."""
    listed = history.baselines["workload"].runs
    # Of another node a run says nothing of the noise on this one.
    places = {allocation_of_run(history.records[name]) for name in listed if name in history.records}
    newest = max((run_number(name) for name in listed), default=0)
    return [
        name
        for name, record in history.records.items()
        if (record.get("role"), record.get("campaign")) == (role, setup.config.campaign)
        and ended_as_planned(record.get("outcome"))
        and record.get("identity") == history.identities["workload"]
        and run_number(name) > newest
        and allocation_of_run(record) in places
        and setup.workspace.run(name).sealed
    ]


class _Run(NamedTuple):
    """An unchanged run in its place; `aa` of an A/A, which is no part of a trial's baseline."""

    place: int
    facts: Facts
    aa: bool
    variance: float


class _Plan(NamedTuple):
    """The runs of a trial as far as device time allows; `seconds` is what one takes, if that is known."""

    steps: list[NextRun]
    variance: float
    seconds: float | None


def floor(setup: Setup, history: History, campaign: Campaign) -> Resolution | None:
    """Return which effects a trial can detect, of the campaign's metric and of throughput; None without a
    valid baseline."""
    baseline = history.baselines["workload"]
    if baseline.why is not None or not baseline.evidence:
        return None
    aa = _evidence(setup.workspace, _since(setup, history, AA))
    # Without a hypothesis, they are of a recording that was cut off.
    made = _since(setup, history, "baseline-workload")
    beside = [name for name in made if history.records[name].get("hypothesis") is not None]
    fresh = [
        e for e in _evidence(setup.workspace, beside) if not (e.get("conditions") or {}).get("foreign_procs")
    ]
    recorded = [{**e, "run": name} for name, e in zip(baseline.runs, baseline.evidence, strict=True)]
    runs = _in_order(setup.config, history.records, [*recorded, *fresh], aa)
    seconds, config, metric = _seconds(history.records, runs), setup.config, setup.metric
    variance = math.fsum(run.variance for run in runs) / len(runs)
    wanted = list(planned(config.protocol.max_runs * (2 if variance > SHORT else 1)))
    left = _left(campaign, seconds)
    plan = _Plan(list(islice(wanted, left)), variance, seconds)
    goal, failure = (metric.threshold(float(v)) for v in (config.criteria.success, config.criteria.failure))
    return Resolution(
        baseline_runs=len(baseline.evidence),
        fresh_runs=len(fresh),
        aa_runs=len(aa),
        max_runs=config.protocol.max_runs,
        left=left,
        limited=left is not None and left < len(wanted),
        figures=(
            _figure(metric, _values(runs, _scaled(metric)), plan, goal, failure),
            _figure(Metric("throughput"), _values(runs, _rate(runs)), plan, math.log(GAIN), None),
        ),
    )


def _in_order(config: Config, records: Records, before: Sequence[Facts], aa: Sequence[Facts]) -> list[_Run]:
    """Return all of them, oldest first, with the utilisation that the campaign is judged by."""
    found = judged(config.criteria.devices, [*before, *aa])
    marked = [(e, place >= len(before)) for place, e in enumerate(found)]
    marked.sort(key=lambda one: run_number(str(one[0]["run"])))
    known = [records[str(e["run"])] for e, _ in marked]
    starts = [datetime.fromisoformat(str(r["start"])).timestamp() for r in known]
    at = places(starts, [float(r.get("duration_s") or 0.0) for r in known], HELD)
    return [_Run(place, e, aa, _variance(e)) for place, (e, aa) in zip(at, marked, strict=True)]


def _variance(evidence: Facts) -> float:
    window = evidence.get("window")
    return relative_variance(window["end_s"] - window["start_s"] if window else None)


def _values(runs: Sequence[_Run], value: Callable[[Facts], float | None]) -> list[tuple[_Run, Seen]]:
    """Return the runs that have the figure, as what the level is followed by."""
    known = [(run, found) for run in runs if (found := value(run.facts)) is not None]
    return [(run, Seen(run.place, False, found, None, run.variance)) for run, found in known]


def _scaled(metric: Metric) -> Callable[[Facts], float | None]:
    def value(evidence: Facts) -> float | None:
        found = metric.recorded(evidence)
        return None if found is None else metric.scale(found)

    return value


def _evidence(workspace: store.Workspace, names: Sequence[str]) -> list[Facts]:
    """evidence.json of those runs that have a readable one, under the names of their folders."""
    found: list[Facts] = []
    for name in names:
        try:
            found.append({**record_of(workspace.run(name), "evidence.json"), "run": name})
        except (GpudebugError, TypeError, ValueError):
            continue
    return found


def _seconds(records: Records, runs: Sequence[_Run]) -> float | None:
    """Return how long one run takes, on average; None if no record has it."""
    known = [s for run in runs if (s := records[str(run.facts["run"])].get("duration_s"))]
    return sum(known) / len(known) if known else None


def _left(campaign: Campaign, seconds: float | None) -> int | None:
    c = campaign
    if seconds is None or c.device_time_budget is None:
        return None
    return max(0, int((c.device_time_budget - c.device_time) / seconds))


def _figure(
    metric: Metric, values: Sequence[tuple[_Run, Seen]], plan: _Plan, goal: float, failure: float | None
) -> DetectableFigure:
    """`goal` is what is to be confirmed, on the metric's scale: above `failure`, above 0 without one."""
    assumed = POINTS if metric.points else RATIOS
    noise = follow([seen for _, seen in values], assumed) if values else None
    before = [seen for run, seen in values if not run.aa]
    ahead = Ahead(before, noise.noise, assumed, plan.variance) if noise and before else None
    away = goal - (failure or 0.0)
    told = ahead.detectable_effect(plan.steps) if ahead else None
    passed = ahead.smallest_passed(plan.steps, goal, failure) if ahead and failure is not None else None
    return DetectableFigure(
        figure=metric.name,
        unit="pp" if metric.points else "x",
        sd=noise.noise if noise else None,
        own_sd=own_sd(noise, assumed) if noise else None,
        runs=len(values),
        told=None if told is None else metric.improvement(told),
        passed=None if passed is None else metric.improvement(passed),
        goal=metric.improvement(goal),
        goal_runs=_goal_runs(ahead, away, plan.seconds) if ahead and away > 0 else None,
    )


def _goal_runs(ahead: Ahead, away: float, seconds: float | None) -> GoalRuns | None:
    """Return the fewest runs for an effect; None: more than any trial would make."""
    runs = ahead.runs_for(away)
    if runs is None:
        return None
    time = None if seconds is None else round(runs.total * seconds, 1)
    return GoalRuns(total=runs.total, trial=runs.trial, baseline=runs.baseline, device_time_s=time)


def _rate(runs: Sequence[_Run]) -> Callable[[Facts], float | None]:
    """Return the logarithm of what a log counts a second; of no run if not all count the same."""
    alike = len({found[0] for run in runs if (found := _counted(run.facts))}) == 1

    def value(evidence: Facts) -> float | None:
        found = _counted(evidence)
        return math.log(found[1]) if found and alike else None

    return value


def _counted(evidence: Facts) -> tuple[str, float] | None:
    unit = evidence.get("step_unit") or "step"
    rate = evidence.get("progress_per_s") or (evidence.get("steps_per_s") if unit == "step" else None)
    return (unit, float(rate)) if rate else None
