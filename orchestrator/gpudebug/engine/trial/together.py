"""What the accepted changes are worth together: today's baseline against the one before the first of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from gpudebug.core.answers.hypotheses import CombinedGain
from gpudebug.core.errors import GpudebugError
from gpudebug.core.records import Estimate
from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.metrics import Metric
from gpudebug.core.verdict.combined import Combined, combined
from gpudebug.engine.campaign.campaign import Loaded
from gpudebug.engine.campaign.files import read_config
from gpudebug.engine.campaign.load import identity
from gpudebug.engine.run.environment import differences, recorded
from gpudebug.engine.run.job import MeasuredRun
from gpudebug.engine.run.prepare import stored_run
from gpudebug.engine.trial.judge import evidence_of


def together(loaded: Loaded, first: dict[str, Any]) -> CombinedGain:
    """The contrast of the baseline's runs that the `first` accepted verdict used and those of today's."""
    before = tuple(r["name"] for r in first["runs"] if r["part"] == "baseline")
    after = loaded.baselines["workload"].runs
    metric = loaded.metric
    gain = partial(CombinedGain, metric=metric.name, runs_before=before, runs_after=after)
    if set(before) & set(after):
        return gain(why="the baseline of today is the one before the first acceptance")
    try:
        runs = [[stored_run(loaded.workspace, name) for name in names] for names in (before, after)]
    except GpudebugError as e:
        return gain(why=f"{e.file}: {e.message}")
    other = list(dict.fromkeys(_other(loaded, *runs)))
    if other:
        return gain(why=f"the two baselines were measured in different surroundings: {'; '.join(other)}")
    found = combined(metric, evidence_of(runs[0]), evidence_of(runs[1]))
    if found.delta is None:
        return gain(why=f"a run lacks {metric.name}")
    return gain(
        delta=found.delta,
        throughput_ratio=found.ratio,
        before=found.before,
        after=found.after,
        metric_before=found.metric_before,
        metric_after=found.metric_after,
        text=_text(metric, found, found.delta),
        throughput=_throughput(found),
        notes=tuple(_notes(loaded, runs[0])),
    )


def _text(metric: Metric, found: Combined, delta: Estimate) -> str:
    """`GPU util 20.0% to 60.0%: +40.0pp (95% CI …)`, in the campaign's metric."""
    if metric.points:
        change = f"GPU util {numbers.percent(found.before)} to {numbers.percent(found.after)}"
        return f"{change}: {numbers.points(delta.model_dump())}"
    values = {
        "metric": metric.name,
        "metric_before": found.metric_before,
        "metric_after": found.metric_after,
    }
    return f"{numbers.metric_change(values)}: {numbers.factor(delta.model_dump())}"


def _throughput(found: Combined) -> str | None:
    """`10 to 30 steps/s: 3.00x (95% CI …)`; None if no ratio is known."""
    if found.ratio is None:
        return None
    change = numbers.throughput_change(found.throughput_before, found.throughput_after, found.unit)
    return f"{change}: {numbers.factor(found.ratio.model_dump())}"


def _other(loaded: Loaded, before: Sequence[MeasuredRun], after: Sequence[MeasuredRun]) -> list[str]:
    """What differs in the surroundings, but for what the accepted changes themselves set."""
    set_ = frozenset(name for step in loaded.stack for name in step.intervention.names)
    now = [replace(recorded(m.record), meant=set_) for m in after]
    return [d for m in before for each in now for d in differences(recorded(m.record), each)]


def _notes(loaded: Loaded, before: Sequence[MeasuredRun]) -> list[str]:
    """What has changed beside what was accepted, and is in the combined figure with it."""
    then = before[0].record.identity
    notes = []
    if then.get("tree") != loaded.code.tree:
        notes.append("the checkout's own code has changed in between: the combined figure includes that")
    plain = read_config(loaded.workspace)
    if then.get("command") != identity(loaded.workspace, plain, plain.workload, "")["command"]:
        notes.append("the command in gpudebug.yaml has changed in between: the combined figure includes that")
    return notes
