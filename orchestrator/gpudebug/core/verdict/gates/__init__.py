"""The gates of a verdict: what each one asks of baseline and trial, and what it found."""

from __future__ import annotations

from collections.abc import Callable

from gpudebug.core.records import Gate
from gpudebug.core.verdict.gates.case import (
    UNKNOWN,
    Criteria,
    TrialCase,
    TrialSetting,
    mean,
    measure,
    rates_of,
    utilisations,
    values_of,
)
from gpudebug.core.verdict.gates.conduct import environment_gate, locked_gate, variable_gate
from gpudebug.core.verdict.gates.delta import delta_gate, short_window, window_total
from gpudebug.core.verdict.gates.device import device_gate
from gpudebug.core.verdict.gates.effect import effect_gate
from gpudebug.core.verdict.gates.outcome import (
    is_infrastructure,
    loss_gate,
    outcome_gate,
    training_text,
    worst_trend,
)
from gpudebug.core.verdict.gates.parity import parity_gate
from gpudebug.core.verdict.gates.text import estimate_text, improvement_text
from gpudebug.core.verdict.gates.throughput import throughput_gate, throughput_result, work_gate

__all__ = [
    "GATES",
    "UNKNOWN",
    "Criteria",
    "TrialCase",
    "TrialSetting",
    "estimate_text",
    "improvement_text",
    "is_infrastructure",
    "mean",
    "measure",
    "rates_of",
    "short_window",
    "throughput_result",
    "training_text",
    "utilisations",
    "values_of",
    "window_total",
    "worst_trend",
]

GATES: tuple[Callable[[TrialCase], Gate], ...] = (
    outcome_gate,
    loss_gate,
    parity_gate,
    delta_gate,
    throughput_gate,
    work_gate,
    locked_gate,
    variable_gate,
    effect_gate,
    device_gate,
    environment_gate,
)
