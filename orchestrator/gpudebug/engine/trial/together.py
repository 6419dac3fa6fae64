"""What the accepted changes are worth together: today's baseline against the one before the first of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpudebug.core.errors import GpudebugError
from gpudebug.core.records import Estimate
from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.metrics import Metric
from gpudebug.core.verdict.combined import Combined, combined
from gpudebug.engine.campaign.campaign import Loaded
from gpudebug.engine.campaign.files import read_config
from gpudebug.engine.campaign.load import identity
from gpudebug.engine.run.environment import differences, recorded
from gpudebug.engine.run.measure import Measured
from gpudebug.engine.run.prepare import stored_run
from gpudebug.engine.trial.judge import evidence_of


@dataclass(frozen=True)
class Together:
    """The combined figure; `why` says why it is unknown, `notes` what else it holds beside the changes."""

    metric: Metric
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    found: Combined | None = None
    why: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def delta(self) -> Estimate | None:
        return self.found.delta if self.found else None

    @property
    def text(self) -> str:
        """`GPU util 20.0% to 60.0%: +40.0pp (95% CI …)`, in the campaign's metric."""
        if self.found is None:
            return numbers.UNKNOWN
        f, delta = self.found, _dumped(self.delta)
        if self.metric.points:
            change = f"GPU util {numbers.percent(f.before)} to {numbers.percent(f.after)}"
            return f"{change}: {numbers.points(delta)}"
        values = {
            "metric": self.metric.name,
            "metric_before": f.metric_before,
            "metric_after": f.metric_after,
        }
        return f"{numbers.metric_change(values)}: {numbers.factor(delta)}"

    @property
    def throughput(self) -> str | None:
        """`10 to 30 steps/s: 3.00x (95% CI …)`; None if no ratio is known."""
        if self.found is None or self.found.ratio is None:
            return None
        f = self.found
        change = numbers.throughput_change(f.throughput_before, f.throughput_after, f.unit)
        return f"{change}: {numbers.factor(_dumped(f.ratio))}"

    @property
    def runs_before(self) -> str:
        return _counted(self.before)

    @property
    def runs_after(self) -> str:
        return _counted(self.after)

    def as_json(self) -> dict[str, Any]:
        f = self.found
        return {
            "metric": self.metric.name,
            "delta": _dumped(self.delta),
            "throughput_ratio": _dumped(f.ratio) if f else None,
            "before": f.before if f else None,
            "after": f.after if f else None,
            "metric_before": f.metric_before if f else None,
            "metric_after": f.metric_after if f else None,
            "text": self.text if f else None,
            "throughput": self.throughput,
            "why": self.why,
            "notes": list(self.notes),
            "runs_before": list(self.before),
            "runs_after": list(self.after),
        }


def together(loaded: Loaded, first: dict[str, Any]) -> Together:
    """The contrast of the baseline's runs that the `first` accepted verdict used and those of today's."""
    before = tuple(r["name"] for r in first["runs"] if r["part"] == "baseline")
    after = loaded.baselines["workload"].runs
    made = Together(loaded.metric, before, after)
    if set(before) & set(after):
        return _unknown(made, "the baseline of today is the one before the first acceptance")
    try:
        runs = [[stored_run(loaded.workspace, name) for name in names] for names in (before, after)]
    except GpudebugError as e:
        return _unknown(made, f"{e.file}: {e.message}")
    other = list(dict.fromkeys(_other(loaded, *runs)))
    if other:
        return _unknown(
            made, f"the two baselines were measured in different surroundings: {'; '.join(other)}"
        )
    found = combined(loaded.metric, evidence_of(runs[0]), evidence_of(runs[1]))
    if found.delta is None:
        return _unknown(made, f"a run lacks {loaded.metric.name}")
    return Together(loaded.metric, before, after, found, notes=tuple(_notes(loaded, runs[0])))


def _unknown(made: Together, why: str) -> Together:
    return Together(made.metric, made.before, made.after, why=why)


def _other(loaded: Loaded, before: Sequence[Measured], after: Sequence[Measured]) -> list[str]:
    """What differs in the surroundings, but for what the accepted changes themselves set."""
    set_ = frozenset(name for step in loaded.stack for name in step.intervention.names)
    now = [replace(recorded(m.record), meant=set_) for m in after]
    return [d for m in before for each in now for d in differences(recorded(m.record), each)]


def _notes(loaded: Loaded, before: Sequence[Measured]) -> list[str]:
    """What has changed beside what was accepted, and is in the combined figure with it."""
    then = before[0].record.identity
    notes = []
    if then.get("tree") != loaded.code.tree:
        notes.append("the checkout's own code has changed in between: the combined figure includes that")
    plain = read_config(loaded.workspace)
    if then.get("command") != identity(loaded.workspace, plain, plain.workload, "")["command"]:
        notes.append("the command in gpudebug.yaml has changed in between: the combined figure includes that")
    return notes


def _dumped(estimate: Estimate | None) -> dict[str, Any] | None:
    return estimate.model_dump(mode="json") if estimate else None


def _counted(names: Sequence[str]) -> str:
    shown = ", ".join(f"runs/{name}" for name in names)
    return f"{len(names)} run{'s' if len(names) != 1 else ''} ({shown})"
