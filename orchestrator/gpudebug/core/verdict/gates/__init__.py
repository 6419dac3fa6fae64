"""The gates of a verdict: what each one asks of baseline and trial, and what it found."""

from __future__ import annotations

from collections.abc import Callable

from gpudebug.core.records import Gate
from gpudebug.core.verdict.gates.case import (
    UNKNOWN,
    TrialCase,
    measure,
)
from gpudebug.core.verdict.gates.conduct import environment_gate, locked_gate, variable_gate
from gpudebug.core.verdict.gates.delta import delta_gate
from gpudebug.core.verdict.gates.device import device_gate
from gpudebug.core.verdict.gates.effect import effect_gate
from gpudebug.core.verdict.gates.figures import throughput_result, utilisations, values_of
from gpudebug.core.verdict.gates.outcome import (
    crowded_out,
    is_infrastructure,
    is_machinery,
    killed_by_host,
    loss_gate,
    outcome_gate,
    training_text,
    worst_trend,
)
from gpudebug.core.verdict.gates.parity import parity_gate
from gpudebug.core.verdict.gates.rates import mean, rates_of
from gpudebug.core.verdict.gates.setting import Criteria, Order, TrialSetting
from gpudebug.core.verdict.gates.side_work import side_work_gate
from gpudebug.core.verdict.gates.text import estimate_text, improvement_text
from gpudebug.core.verdict.gates.throughput import throughput_gate, work_gate
from gpudebug.core.verdict.gates.working import working_gate

__all__ = [
    "GATES",
    "UNKNOWN",
    "Criteria",
    "Order",
    "TrialCase",
    "TrialSetting",
    "crowded_out",
    "estimate_text",
    "improvement_text",
    "is_infrastructure",
    "is_machinery",
    "killed_by_host",
    "mean",
    "measure",
    "rates_of",
    "throughput_result",
    "training_text",
    "utilisations",
    "values_of",
    "worst_trend",
]

GATES: tuple[Callable[[TrialCase], Gate], ...] = (
    outcome_gate,
    loss_gate,
    parity_gate,
    delta_gate,
    throughput_gate,
    work_gate,
    working_gate,
    side_work_gate,
    locked_gate,
    variable_gate,
    effect_gate,
    device_gate,
    environment_gate,
)
