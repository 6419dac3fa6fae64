"""What verdicts take for granted of programs, hosts and devices: one row each, read by name.

Noise counts until a campaign has shown its own, the rest holds throughout. Criteria, which a person chooses,
are settings and not here. docs/reference/assumptions.md is written from this table.
"""

from __future__ import annotations

from typing import NamedTuple


class Assumed(NamedTuple):
    """One figure; `by` is the part of `python -m tests.gpu` whose recording replaces it."""

    value: float
    unit: str
    meaning: str
    source: str
    by: str


_SEEN = "seen on CPU hosts: 2 to 5"
_JUDGED = "judgement"
_NVML = "NVML's documents"
_ROWS: dict[str, tuple[float, str, str, str, str]] = {
    "noise_points": (4.5, "pp", "noise of utilisation between runs", _SEEN, "campaign"),
    "noise_rate": (
        0.1,
        "log",
        "noise of a rate between runs",
        "54 field runs on a CPU: 0.1 to 0.16",
        "campaign",
    ),
    "noise_runs": (6, "runs", "weight of both", _JUDGED, ""),
    "within_points": (3.2, "pp", "what of it varies within a run of `long_s`", _JUDGED, "campaign"),
    "lone_points": (4, "pp", "noise of utilisation in the interval of one side", _SEEN, "campaign"),
    "lone_rate": (0.05, "log", "noise of a rate in the interval of one side", _JUDGED, "campaign"),
    "lone_runs": (4, "runs", "weight of both", _JUDGED, ""),
    "wander": (
        0.15,
        "noise^2",
        "variance that the level gains from run to run",
        "simulated: 0.1 is too little",
        "",
    ),
    "wander_runs": (10, "runs", "after which the level has wandered as far as it does", _JUDGED, ""),
    "long_s": (30, "s", "steady window from which a run counts fully", _JUDGED, "campaign"),
    "warmup_steps": (10, "steps", "steps that are not steady yet", _JUDGED, "why"),
    "warmup_share": (0.05, "of steps", "the same of many steps", _JUDGED, ""),
    "ramp_share": (1 / 3, "of steps", "longest rise to the level of a run", _JUDGED, ""),
    "ramp_level": (0.9, "of level", "what a rise is below on average", _JUDGED, "why"),
    "ramp_s": (4, "s", "time constant of a rise, simulated", _JUDGED, "why"),
    "flutter_points": (14, "pp", "change of utilisation within a run, simulated", _JUDGED, "why"),
    "flutter_s": (1.5, "s", "time constant of that, simulated", _JUDGED, "why"),
    "resolution": (1, "pp", "smallest utilisation that says something", _NVML, "doctor"),
    "averaged_s": (1, "s", "time that a driver averages power over", _NVML, "doctor"),
    "idle_points": (10, "%", "utilisation up to which a device may be idle", _JUDGED, "doctor"),
    "unused_mb": (700, "MB", "memory of a GPU that no process uses", "seen on large GPUs: 600", "doctor"),
    "power_apart": (0.25, "of power", "difference between waiting and working", _JUDGED, "doctor"),
    "working_span": (0.5, "of limit", "power of work above idle", _JUDGED, "doctor"),
    "working_times": (3, "x idle", "power of work if no limit is known", _JUDGED, "doctor"),
    "working_noise": (0.03, "of time", "noise of the working share between runs", _JUDGED, "campaign"),
    "work_alike": (1.15, "x", "busy time of a sample that is still the same", _JUDGED, "campaign"),
    "clock_apart": (0.1, "of clock", "difference of clocks that changes no step time", _JUDGED, "doctor"),
    "reward_apart": (0.15, "of rise", "noise of a final reward between runs", _JUDGED, ""),
    "loss_apart": (0.05, "of fall", "noise of a final loss between runs", "seen on small models", ""),
    "loss_level": (0.02, "of loss", "the same of a loss that does not fall", _JUDGED, ""),
    "loss_runs": (4, "runs", "weight of these three", _JUDGED, ""),
    "quality_apart": (
        0.03,
        "of value",
        "noise of a quality between runs",
        "derived: 90 % of 100 attempts",
        "",
    ),
    "sampler_core": (
        1,
        "% of a core",
        "cost of sampling at 10 Hz",
        "measured: docs/benchmarks.md",
        "sampler",
    ),
    "sampler_mb": (20, "MB", "memory of the sampler", "measured: docs/benchmarks.md", "sampler"),
}
TABLE = {name: Assumed(*row) for name, row in _ROWS.items()}


def assumed(name: str) -> float:
    """Return one figure of the table."""
    return TABLE[name].value
