"""The noise floor of a campaign: the spread between its runs of one unchanged command.

`status` asks for it, so nothing here imports the records' classes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from gpudebug.core.answers.noise import DetectableFigure, GoalRuns, Resolution
from gpudebug.core.errors import GpudebugError
from gpudebug.core.statistics import intervals, resolution
from gpudebug.core.statistics.contrast import most_fresh
from gpudebug.core.statistics.metrics import Metric
from gpudebug.core.statistics.resolution import Noise, Plan
from gpudebug.core.words import ended_as_planned
from gpudebug.edges.store import run_number
from gpudebug.engine.campaign.allocations import allocation_of_run
from gpudebug.engine.campaign.campaign import Loaded
from gpudebug.engine.campaign.files import record_of
from gpudebug.engine.campaign.judged import Facts, judged

AA = "aa"
"""The role of a run of the unchanged workload that is held against its own baseline."""
GAIN = 1.05
"""A gain in throughput that a person would want to see."""


def _since(loaded: Loaded, role: str) -> list[str]:
    """Sealed runs of the workload as it is now, made as `role` since its baseline was recorded."""
    listed = loaded.baselines["workload"].runs
    # Of another node a run says nothing of the noise on this one.
    places = {allocation_of_run(loaded.records[name]) for name in listed if name in loaded.records}
    newest = max((run_number(name) for name in listed), default=0)
    return [
        name
        for name, record in loaded.records.items()
        if (record.get("role"), record.get("campaign")) == (role, loaded.config.campaign)
        and ended_as_planned(record.get("outcome"))
        and record.get("identity") == loaded.identities["workload"]
        and not record.get("lengthened")
        and run_number(name) > newest
        and allocation_of_run(record) in places
        and loaded.workspace.run(name).sealed
    ]


def floor(loaded: Loaded) -> Resolution | None:
    """Which effects a trial can detect, of the campaign's metric and of throughput; None without a valid
    baseline."""
    baseline = loaded.baselines["workload"]
    if baseline.why is not None or not baseline.evidence:
        return None
    aa = _since(loaded, AA)
    # Without a hypothesis, they are of a recording that was cut off.
    made = _since(loaded, "baseline-workload")
    beside = [name for name in made if loaded.records[name].get("hypothesis") is not None]
    fresh = [e for e in _evidence(loaded, beside) if not (e.get("conditions") or {}).get("foreign_procs")]
    groups = _judged(loaded, [baseline.evidence, fresh, _evidence(loaded, aa)])
    seconds = _seconds(loaded, (*baseline.runs, *beside, *aa))
    config = loaded.config
    recorded, max_runs = len(baseline.evidence), config.protocol.max_runs
    plan = Plan(recorded, max_runs, _left(loaded, seconds), len(fresh))
    metric = loaded.metric
    criteria = [metric.threshold(float(v)) for v in (config.criteria.success, config.criteria.failure)]
    figures = (
        _metric(metric, groups, plan, criteria[0], criteria[1], seconds),
        _throughput(groups, plan, seconds),
    )
    return Resolution(
        baseline_runs=recorded,
        fresh_runs=len(fresh),
        aa_runs=len(aa),
        max_runs=max_runs,
        left=plan.left,
        limited=plan.left is not None and plan.left < _most(plan),
        figures=figures,
    )


def _judged(loaded: Loaded, groups: Sequence[Sequence[Facts]]) -> list[list[Facts]]:
    """The groups with the utilisation that the campaign is judged by, all on one scale."""
    found = iter(judged(loaded.config.criteria.devices, [e for group in groups for e in group]))
    return [[next(found) for _ in group] for group in groups]


def _most(plan: Plan) -> int:
    """How many runs a trial may want at most."""
    return plan.max_runs + max(0, most_fresh(plan.max_runs, plan.recorded) - plan.fresh)


def _evidence(loaded: Loaded, names: Sequence[str]) -> list[Facts]:
    """evidence.json of those runs that have a readable one."""
    found: list[Facts] = []
    for name in names:
        try:
            found.append(dict(record_of(loaded.workspace.run(name), "evidence.json")))
        except (GpudebugError, TypeError, ValueError):
            continue
    return found


def _seconds(loaded: Loaded, names: Sequence[str]) -> float | None:
    """How long one run takes, on average; None if no record has it."""
    known = [s for name in names if (s := loaded.records[name].get("duration_s"))]
    return sum(known) / len(known) if known else None


def _left(loaded: Loaded, seconds: float | None) -> int | None:
    c = loaded.campaign
    if seconds is None or c.device_time_budget is None:
        return None
    return max(0, int((c.device_time_budget - c.device_time) / seconds))


def _metric(
    metric: Metric,
    groups: Sequence[Sequence[Facts]],
    plan: Plan,
    success: float,
    failure: float,
    seconds: float | None,
) -> DetectableFigure:
    values = [[metric.scale(v) for e in g if (v := metric.recorded(e)) is not None] for g in groups]
    prior = intervals.UTILISATION_PRIOR if metric.points else intervals.RATE_PRIOR
    found = resolution.noise(values, prior, _typical_error(groups) if metric.points else 0.0)
    passed = resolution.smallest_passed(found, plan, success, failure) if found else None
    return _figure(metric, found, plan, seconds, goal=success, away=success - failure, passed=passed)


def _throughput(groups: Sequence[Sequence[Facts]], plan: Plan, seconds: float | None) -> DetectableFigure:
    metric = Metric("throughput")
    found = resolution.noise(_rates(groups), intervals.RATE_PRIOR)
    return _figure(metric, found, plan, seconds, goal=math.log(GAIN), away=math.log(GAIN), passed=None)


def _figure(
    metric: Metric,
    found: Noise | None,
    plan: Plan,
    seconds: float | None,
    *,
    goal: float,
    away: float,
    passed: float | None,
) -> DetectableFigure:
    """`goal` and `passed` on the metric's scale; `away` from the goal is what it must differ from."""
    detectable = resolution.detectable_effect(found, plan) if found else None
    return DetectableFigure(
        figure=metric.name,
        unit="pp" if metric.points else "x",
        sd=found.sd if found else None,
        own_sd=found.own_sd if found else None,
        runs=found.runs if found else 0,
        told=None if detectable is None else metric.improvement(detectable),
        passed=None if passed is None else metric.improvement(passed),
        goal=metric.improvement(goal),
        goal_runs=_goal_runs(found, plan, away, seconds) if found and away > 0 else None,
    )


def _goal_runs(found: Noise, plan: Plan, away: float, seconds: float | None) -> GoalRuns | None:
    """The fewest runs for an effect; None: more than any trial would make."""
    runs = resolution.runs_for(found, plan, away)
    if runs is None:
        return None
    time = None if seconds is None else round(runs.total * seconds, 1)
    return GoalRuns(total=runs.total, trial=runs.trial, baseline=runs.baseline, device_time_s=time)


def _typical_error(groups: Sequence[Sequence[Facts]]) -> float:
    """Root mean square of the runs' own standard errors, in pp."""
    errors = [float(e["standard_error"]) for g in groups for e in g if e.get("standard_error") is not None]
    return math.sqrt(math.fsum(e * e for e in errors) / len(errors)) if errors else 0.0


def _rates(groups: Sequence[Sequence[Facts]]) -> list[list[float]]:
    """Logarithms of what the logs count a second; none if not all count the same."""
    rates = [[_rate(e) for e in g] for g in groups]
    units = {rate[0] for group in rates for rate in group if rate}
    return [[math.log(rate[1]) for rate in group if rate] for group in rates] if len(units) == 1 else []


def _rate(evidence: Facts) -> tuple[str, float] | None:
    unit = evidence.get("step_unit") or "step"
    rate = evidence.get("progress_per_s") or (evidence.get("steps_per_s") if unit == "step" else None)
    return (unit, float(rate)) if rate else None
