"""The gates of a verdict: what each one asks of baseline and trial, and what its failure means."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import NamedTuple

from gpudebug.core.records import Gate
from gpudebug.core.verdict.gates.case import TrialCase
from gpudebug.core.verdict.gates.conduct import (
    device_gate,
    effect_gate,
    environment_gate,
    locked_gate,
    side_work_gate,
    variable_gate,
)
from gpudebug.core.verdict.gates.delta import delta_gate
from gpudebug.core.verdict.gates.learning import parity_gate
from gpudebug.core.verdict.gates.outcome import loss_gate, outcome_gate
from gpudebug.core.verdict.gates.throughput import throughput_gate, work_gate, working_gate

RULE = "6"
"""The rule of a verdict; one of another rule was never part of a release, and is not derived again."""


class IfFailed(Enum):
    """What the failure of a gate means, in the order in which it decides; an unknown gate is INCONCLUSIVE."""

    SPOILT = auto()
    """INVALID: something else than the hypothesis was measured."""
    REFUSED = auto()
    """REJECTED: the change is no good, whatever it gains."""
    NO_GAIN = auto()
    NO_SIDE_WORK = auto()
    HOLLOW = auto()
    """REJECTED if the metric is better: the gain is none."""


class GateRule(NamedTuple):
    """One gate. `spoilt` names what was measured instead; `narrowed`: more runs may decide it."""

    ask: Callable[[TrialCase], Gate]
    if_failed: IfFailed
    spoilt: str = ""
    narrowed: bool = False


GATES = {
    "outcome": GateRule(outcome_gate, IfFailed.REFUSED),
    "loss": GateRule(loss_gate, IfFailed.REFUSED),
    "loss_parity": GateRule(parity_gate, IfFailed.REFUSED, narrowed=True),
    "delta": GateRule(delta_gate, IfFailed.NO_GAIN, narrowed=True),
    "throughput": GateRule(throughput_gate, IfFailed.HOLLOW, narrowed=True),
    "work_conserved": GateRule(work_gate, IfFailed.HOLLOW, narrowed=True),
    "working_share": GateRule(working_gate, IfFailed.HOLLOW, narrowed=True),
    "side_work": GateRule(side_work_gate, IfFailed.NO_SIDE_WORK),
    "locked_knobs": GateRule(locked_gate, IfFailed.REFUSED),
    "one_variable": GateRule(variable_gate, IfFailed.REFUSED),
    "change_in_effect": GateRule(effect_gate, IfFailed.SPOILT, "the change was not in effect"),
    "device_to_itself": GateRule(device_gate, IfFailed.SPOILT, "the device was shared"),
    "environment_parity": GateRule(environment_gate, IfFailed.SPOILT, "environment differs"),
}
"""Every gate by its name, in the order of the output."""


def named(if_failed: IfFailed) -> list[str]:
    """Return the gates whose failure means this."""
    return [name for name, rule in GATES.items() if rule.if_failed is if_failed]
