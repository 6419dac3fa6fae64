"""What a campaign is judged by: a metric's value of one run, its unit, and how two values are compared.

Utilisation is compared in percentage points. Every other metric is compared as a ratio, on the log scale,
turned so that above 1 is better: trial over baseline for what should be high, baseline over trial for what
should be low.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpudebug.core.statistics import intervals

GPU_UTIL = "gpu_util"
LOG = "log:"
SECTION = "section:"

_FIELDS = {
    GPU_UTIL: ("utilisation", "%"),
    "steps_per_s": ("steps_per_s", "steps/s"),
    "samples_per_s": ("samples_per_s", "samples/s"),
    "step_time_p50": ("step_time_p50_s", "s"),
    "step_time_p95": ("step_time_p95_s", "s"),
    "latency_p50": ("latency_p50_s", "s"),
    "latency_p95": ("latency_p95_s", "s"),
    "latency_p99": ("latency_p99_s", "s"),
    "joules_per_step": ("joules_per_step", "J"),
}
LATENCY = "latency_"
WORK = "work_per_s"
JOULES = "joules_per_step"
_STEPS = frozenset({"steps_per_s", "step_time_p50", "step_time_p95", JOULES})
_ABSENT = {
    GPU_UTIL: "no utilisation was measured",
    "steps_per_s": "no step rate in the log, none from the probe; set `log: {step: …}` in gpudebug.yaml "
    "to say where steps are",
    "samples_per_s": "no samples per second, no batch size in the log, none from the probe; "
    "print `samples/s` or `batch size: N`",
    "step_time_p50": "fewer than 5 step times in the log, fewer from the probe; "
    "print each step's `step_time: 0.12s`, or use metric: steps_per_s",
    "step_time_p95": "fewer than 20 step times in the log, fewer from the probe; "
    "print each step's `step_time: 0.12s`, or use metric: steps_per_s",
    WORK: "the runs count no unit of work in common; name one with `work:` in gpudebug.yaml",
    "latency_p50": "no latencies in the log; print each one with its unit, as `latency: 12.3 ms`",
    "latency_p95": "fewer than 20 latencies in the log; print each one with its unit, as `latency: 12.3 ms`",
    JOULES: "a device reports neither energy nor power, or no steps are known; use metric: steps_per_s",
    "latency_p99": "fewer than 100 latencies in the log; print each one with its unit, as `latency: 12.3 ms`",
}
# Of the sections that a run did record, this many are named.
_NAMED = 6
_LARGEST_LOG = 700.0
"""Beyond this `math.exp` overflows."""


@dataclass(frozen=True, slots=True)
class Metric:
    """`name` as gpudebug.yaml gives it; `lower` says that less is better.

    `work` is the unit of work that `work_per_s` is of, and its source; the first one for what is empty.
    """

    name: str = GPU_UTIL
    lower: bool = False
    work: tuple[str, str] = ("", "")

    @property
    def points(self) -> bool:
        """Whether a difference is in percentage points; else it is a ratio."""
        return self.name == GPU_UTIL

    @property
    def unit(self) -> str:
        """Of its values: `%`, `steps/s`, `samples/s`, `s`, `J`; empty for the user's own."""
        if self.name == WORK:
            return f"{self.work[0]}/s" if self.work[0] else ""
        if self.name.startswith(SECTION):
            return "s"
        return _FIELDS[self.name][1] if self.name in _FIELDS else ""

    @property
    def latency(self) -> bool:
        """Whether it is a percentile of latencies, which are evidence without a utilisation window."""
        return self.name.startswith(LATENCY)

    def error(self, evidence: Any) -> float:
        """Standard error of a percentile of latencies within one run, on the scale of `scale`; else 0."""
        found = evidence.latency if self.latency else None
        return getattr(found, f"{self.name.removeprefix(LATENCY)}_error", None) or 0.0

    @property
    def by_steps(self) -> bool:
        """Whether its values are those of a step, which is another thing if the batch differs."""
        return self.name in _STEPS

    @property
    def throughput(self) -> bool:
        """Whether it is itself how much gets done a second."""
        return self.name in ("steps_per_s", "samples_per_s", WORK)

    def value(self, evidence: object) -> float | None:
        """Return the metric of one run's Evidence; None if the run did not yield it, or what has no ratio."""
        return self._read(lambda field: getattr(evidence, field))

    def recorded(self, facts: Mapping[str, Any]) -> float | None:
        """As `value`, from evidence.json as it was read."""
        return self._read(facts.get)

    def _read(self, get: Any) -> float | None:
        if self.name.startswith(LOG):
            found = (get("logged") or {}).get(self.name.removeprefix(LOG))
        elif self.name.startswith(SECTION):
            found = _sections(get("sections")).get(self.name.removeprefix(SECTION))
        elif self.name == WORK:
            found = _work(get("work") or (), *self.work)
        else:
            found = get(_FIELDS[self.name][0]) if self.name in _FIELDS else None
        if isinstance(found, bool) or not isinstance(found, (int, float)) or not math.isfinite(found):
            return None
        return float(found) if self.points or found > 0 else None

    def absent(self, *runs: object) -> str:
        """Return why a run may lack it, and what to do. `runs` are Evidence of those that may."""
        if self.name.startswith(LOG):
            name = self.name.removeprefix(LOG)
            return f"`log: {{{name}: …}}` in gpudebug.yaml matched no positive number in the steady window"
        if self.name.startswith(SECTION):
            return _without_section(self.name.removeprefix(SECTION), runs)
        return _ABSENT.get(self.name, "no such metric")

    def scale(self, value: float) -> float:
        """A run's value on the scale on which runs are compared: more is better, differences add up."""
        if self.points:
            return value
        return -math.log(value) if self.lower else math.log(value)

    def unscaled(self, value: float) -> float:
        """Return the value of a run that stands there on that scale."""
        if self.points:
            return value
        return math.exp(min(-value if self.lower else value, _LARGEST_LOG))

    def shifted(self, value: float, difference: float) -> float:
        """Return the value that differs from this one by so much on that scale."""
        return value + difference if self.points else self.unscaled(self.scale(value) + difference)

    def threshold(self, value: float) -> float:
        """A threshold of `criteria` on the scale of the difference: as it is in pp, the log of a ratio."""
        return value if self.points else math.log(value)

    def improvement(self, difference: float) -> float:
        """Return a difference on that scale as people say it: in pp, or a ratio above 1 if it is better."""
        return difference if self.points else math.exp(min(difference, _LARGEST_LOG))

    def mean(self, values: Sequence[float]) -> float | None:
        """Of one value a run: arithmetic in percent, geometric of what has ratios. None of nothing."""
        if not values:
            return None
        if self.points:
            return math.fsum(values) / len(values)
        return math.exp(math.fsum(map(math.log, values)) / len(values))

    def bounds(self, values: Sequence[float]) -> tuple[float, float]:
        """Return the 95 % interval of the geometric mean, from the spread between runs."""
        logs = [math.log(v) for v in values]
        sd, df = intervals.pooled([logs], intervals.RATE_PRIOR)
        half = intervals.t_quantile(0.5 + intervals.CONFIDENCE / 2, df) * sd / math.sqrt(len(logs))
        middle = math.fsum(logs) / len(logs)
        return math.exp(middle - half), math.exp(middle + half)

    def target(self, reference: float, failure: float) -> float:
        """Return the value that is as good as the reference, less `failure` (pp, or a ratio)."""
        if self.points:
            return reference - failure
        return reference * failure if self.lower else reference / failure

    def reached(self, value: float, target: float) -> bool:
        return value <= target if self.lower else value >= target


def _work(rates: Sequence[Any], unit: str, source: str) -> float | None:
    """The first rate of this unit and source, of WorkRates or their JSON; own patterns only by their name."""
    for one in rates:
        fields = one if isinstance(one, Mapping) else one.model_dump()
        if fields["unit"] != unit if unit else fields["unit"].startswith(LOG):
            continue
        if source in ("", fields["source"]):
            return float(fields["per_s"])
    return None


def _sections(evidence: Any) -> dict[str, float]:
    """Mean seconds a call by name, of a SectionsEvidence or its JSON."""
    if evidence is None:
        return {}
    if isinstance(evidence, Mapping):
        return {s["name"]: s["mean_s"] for s in evidence.get("sections", ())}
    return {s.name: s.mean_s for s in evidence.sections}


def _without_section(name: str, runs: Sequence[object]) -> str:
    """Return what the run that lacks the section recorded instead, and how the section is added."""
    reports = [s for run in runs if (s := getattr(run, "sections", None)) is not None]
    lacking = next((s for s in reports if name not in _sections(s)), None)
    names = list(_sections(lacking))
    add = f'put `with gpudebug.profile_section("{name}"):` around its code'
    if lacking is None:
        return f"the training recorded no sections; {add}"
    if not names:
        return f"the training recorded no sections ({'; '.join(lacking.notes) or 'none was entered'}); {add}"
    shown = ", ".join(names[:_NAMED]) + (
        f" and {lacking.count - _NAMED} more" if lacking.count > _NAMED else ""
    )
    if lacking.count > len(names):
        add += f", or it is not among the {len(names)} that took the most time"
    return f"no section {name!r} was recorded, but {shown}; {add}"


UTILISATION = Metric()
