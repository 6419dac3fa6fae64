"""A baseline's figures as its entry in the progress file shows them, derived from its runs."""

from __future__ import annotations

from collections.abc import Sequence

from gpudebug.core.answers.status import WorkFigure
from gpudebug.core.config import Config
from gpudebug.core.records import Evidence, LearningUnit
from gpudebug.core.statistics import intervals, numbers
from gpudebug.core.statistics.metrics import Metric
from gpudebug.core.statistics.units import AUTO, JUDGED
from gpudebug.core.verdict.gates.figures import mean, rates_of
from gpudebug.core.verdict.gates.outcome import training_text, worst_trend
from gpudebug.core.verdict.work import choose, choose_learning, learning_text, rate, text, worst
from gpudebug.core.words import counted
from gpudebug.engine.run.job import MeasuredRun


def entry_fields(
    role: str,
    runs: Sequence[MeasuredRun],
    metric: Metric,
    work: str = AUTO,
    learning: LearningUnit | None = None,
) -> dict[str, object]:
    """The values that the entry's template shows, as text; another metric than utilisation has its own.

    `work` is the unit of work that is set, or `auto`; `learning` is what learning is judged by, None for the
    loss that the log prints.
    """
    evidence = [m.evidence for m in runs]
    own = {} if metric.points else {"metric": f"{metric.name} {metric_text(metric, evidence)}"}
    unit = work_text(evidence, work)
    own |= {"work": unit} if unit is not None else {}
    return {
        **own,
        "role": role,
        "command": runs[0].record.command,
        "gpu_util": utilisation_text(evidence),
        "throughput": throughput_text(evidence),
        "training": training_text(evidence),
        "loss": trend_of(evidence, learning) + (JUDGED + learning_text(learning) if learning else ""),
        "runs": [m.folder.name for m in runs],
    }


def work_text(runs: Sequence[Evidence], configured: str) -> str | None:
    """`environment steps, from total_timesteps, 512 a second`; None if the runs count nothing in common.

    A unit that is set is named whether they count it or not: an entry says what it is by.
    """
    unit, found = choose(runs, configured), work_of(runs, configured)
    rate_text = f", {numbers.number(found.per_s)} a second" if found is not None else ""
    return text(unit) + rate_text if unit is not None else None


def work_of(runs: Sequence[Evidence], configured: str) -> WorkFigure | None:
    """Return the unit of work that is chosen from these runs, with their mean rate."""
    unit = choose(runs, configured)
    if unit is None or not unit.source:
        return None
    known = [value for e in runs if (value := rate(e, unit.unit, unit.source)) is not None]
    return WorkFigure(unit=unit.unit, per_s=mean(known), source=unit.source)


def throughput_text(runs: list[Evidence]) -> str:
    """Return the mean over runs of what their logs count a second."""
    rates = rates_of(runs)
    value = mean(rates.before)
    return numbers.UNKNOWN if value is None else numbers.rate(value, rates.unit)


def utilisation_text(runs: list[Evidence]) -> str:
    """Return the mean over runs with its interval and their count, or why it is unknown."""
    values = [e.utilisation for e in runs if e.utilisation is not None]
    if not values:
        reason = next((r for e in runs for r in (e.window_reason, *(d.reason for d in e.devices)) if r), None)
        return f"{numbers.UNKNOWN} ({reason})" if reason else numbers.UNKNOWN
    errors = [e.standard_error for e in runs if e.standard_error is not None]
    interval = intervals.mean_interval(values, within=sum(errors) / len(errors) if errors else 0.0)
    count = counted(len(values), "run")
    return f"{interval.value:.1f}% (95% CI {interval.low:.1f} to {interval.high:.1f}, {count})"


def metric_text(metric: Metric, runs: list[Evidence]) -> str:
    """The campaign's metric as its mean over runs with its interval and their count, or why it is unknown."""
    if metric.points:
        return utilisation_text(runs)
    values = [v for e in runs if (v := metric.value(e)) is not None]
    if not values:
        return f"{numbers.UNKNOWN} ({_absent(metric, runs)})"
    count = counted(len(values), "run")
    mean = metric.mean(values)
    interval = numbers.bounds(metric, mean, metric.bounds(values))
    return f"{numbers.figure(metric, mean)} (95% CI {interval}, {count})"


def _absent(metric: Metric, runs: list[Evidence]) -> str:
    reasons = [e.window_reason for e in runs if e.window_reason and not metric.latency]
    return next(iter(reasons), metric.absent(*runs))


def learning_of(config: Config, runs: Sequence[MeasuredRun]) -> LearningUnit | None:
    """Return what learning is judged by; None for the loss that the log prints, and if it is not judged."""
    if config.criteria.loss == "any":
        return None
    return choose_learning([m.evidence for m in runs], config.criteria.learning)


def trend_of(runs: Sequence[Evidence], learning: LearningUnit | None) -> str:
    """Return the worst trend of what learning is judged by."""
    return str(worst(runs, learning) if learning is not None else worst_trend(runs))
