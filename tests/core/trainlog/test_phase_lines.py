"""Lines that name a phase: what is one in a program's own words, and what the user's expressions find."""

from __future__ import annotations

import pytest

from gpudebug.core.errors import ConfigError
from gpudebug.core.trainlog.phase_lines import PhaseLines, declared_in, phase_in
from gpudebug.core.trainlog.reader import LogReader
from gpudebug.core.words import Trend

NAMED = {
    "step=3 phase=supervised loss=2.0": "supervised",
    "Phase: PPO step 12 loss 0.3": "PPO",
    "=== Phase: PPO ===": "PPO",
    '{"step": 3, "stage": "ppo", "loss": 2}': "ppo",
    "| phase | ppo |": "ppo",
    "training_phase='distill'": "distill",
    "Starting the PPO phase": "PPO",
    "switching to ppo stage at step 500": "ppo",
    "Beginning evaluation phase": "evaluation",
    "--- Supervised phase ---": "Supervised",
    "Entering stage 2 of the curriculum": "stage 2",
    "curriculum level 3": "curriculum level 3",
}
UNNAMED = [
    "Phase: loading the data set",
    "phase=val loss=3.0",
    "the next phase begins",
    "backward phase 12 ms",
    "stage=None",
    "phase shift 0.3",
    "phase transition in 3 steps",
    "if phase=ppo",
]


@pytest.mark.parametrize(("line", "name"), [*NAMED.items(), *((line, None) for line in UNNAMED)])
def test_a_line_names_a_phase_only_where_nothing_else_can_be_meant(line: str, name: str | None) -> None:
    reader = LogReader()
    reader.feed(f"{line}\n".encode(), 1.0)
    assert [one.name for one in reader.summary().phases] == ([name] if name else [])
    assert name is None or phase_in(line.encode()) == name


@pytest.mark.parametrize(
    ("matching", "current", "begins"),
    [
        (["supervised", "ppo"], None, "supervised"),
        (["supervised", "ppo"], "supervised", "ppo"),
        (["supervised"], "ppo", "supervised"),
        ([], "ppo", None),
    ],
)
def test_a_line_that_names_two_begins_the_later_one(
    matching: list[str], current: str | None, begins: str | None
) -> None:
    assert declared_in(matching, current, ("supervised", "ppo")) == begins


def test_the_users_expressions_alone_count_and_a_new_phase_is_a_new_objective() -> None:
    reader = LogReader({"phase:supervised": "teacher on", "phase:ppo": "teacher off"})
    lines = ["teacher on", *(f"step {n} loss {20 / n:.3f} phase=warm" for n in range(1, 20))]
    lines += ["teacher off", *(f"step {n} loss {900 / n:.3f}" for n in range(20, 60))]
    for t, line in enumerate(lines):
        reader.feed(f"{line}\n".encode(), float(t))
    found = reader.summary()
    assert [(one.name, one.start_s) for one in found.phases] == [("supervised", 0.0), ("ppo", 20.0)]
    assert found.objective == "teacher off"
    assert found.trend is Trend.CONVERGING


def test_stretches_are_told_apart_whatever_the_case_of_their_letters() -> None:
    found = PhaseLines()
    assert [found.take(name, float(t)) for t, name in enumerate(["PPO", "ppo", "eval", "Ppo"])] == [
        True,
        False,
        True,
        False,
    ]
    assert [(one.name, one.start_s, one.last_s, one.lines) for one in found.stretches] == [
        ("PPO", 0.0, 1.0, 2),
        ("eval", 2.0, 2.0, 1),
        ("PPO", 3.0, 3.0, 1),
    ]


def test_a_phases_expression_needs_no_group_and_one_without_bound_is_refused() -> None:
    with pytest.raises(ConfigError, match="phase:ppo"):
        LogReader({"phase:ppo": "(a*)*b"})
