"""What probe, log and devices say of one run, held against each other: notes for people."""

from __future__ import annotations

from collections.abc import Sequence

from gpudebug.core.inside.probe.processes import ProbeRecord
from gpudebug.core.records import DeviceInfo, ProbeEvidence
from gpudebug.core.statistics import numbers

APART = 0.10
"""Rates of log and probe further apart than this do not tell of the same thing."""
MOST_TIMES = 128
# Rates over the same window are known to a few percent, and beyond this 15 times cannot be told from 16.
_NEAR, _NEAR_WHOLE = 0.05, 0.15


def notes(probe: ProbeEvidence, log_rate: float | None, devices: Sequence[DeviceInfo]) -> tuple[str, ...]:
    """Return what does not fit together. `log_rate` is steps per second by the arrival of the log's lines."""
    found = [
        _rates(probe, log_rate),
        _device(probe, devices),
        f"the probe switched itself off: {probe.off}" if probe.off else None,
    ]
    return tuple(note for note in found if note)


def nodes(record: ProbeRecord | None) -> tuple[str, ...]:
    """Return which nodes have a training of their own beside the one that is looked at."""
    others = record.elsewhere if record else ()
    if record is None or record.main is None or not others:
        return ()
    names = ", ".join(dict.fromkeys(process.node or "another node" for process in others))
    has = f"{names} trained, too, with the ranks of {record.main.node or 'this node'}"
    return (f"{has}, which alone is looked at: without one rendezvous, each node trains on its own",)


def _rates(probe: ProbeEvidence, log_rate: float | None) -> str | None:
    own = probe.steps_per_s
    if not own or not log_rate or abs(log_rate / own - 1) <= APART:
        return None
    if times := factor(log_rate / own):
        return f"the log counts {times} steps for each step of the optimizer{_why(probe, times)}"
    if times := factor(own / log_rate):
        return f"the optimizer steps {times} times for each step of the log"
    text = f"{numbers.number(log_rate)} steps/s by the log, {numbers.number(own)} by the optimizer's steps"
    return f"{text}: they count different things, or the log was not followed well"


def factor(ratio: float) -> int | None:
    """Return the whole number above 1 that a ratio of rates is, as well as such rates are known."""
    whole = round(ratio)
    near = abs(ratio - whole) <= min(_NEAR * whole, _NEAR_WHOLE)
    return whole if 1 < whole <= MOST_TIMES and near else None


def _why(probe: ProbeEvidence, times: int) -> str:
    if probe.backwards_per_step and round(probe.backwards_per_step) == times:
        return f": gradients are accumulated over {times} backward passes"
    optimizers = probe.facts.get("optimizers")
    if isinstance(optimizers, list) and len(optimizers) == times:
        return f": there are {times} optimizers"
    return ""


def _device(probe: ProbeEvidence, devices: Sequence[DeviceInfo]) -> str | None:
    if probe.facts.get("device") != "cpu" or all(d.kind != "nvml" for d in devices):
        return None
    return "the training runs on the CPU, and a GPU is sampled"
