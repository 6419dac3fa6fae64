"""Where another objective begins."""

from __future__ import annotations

import pytest
from tests.support.excerpts import course

from gpudebug.core.trainlog import LogReader
from gpudebug.core.trainlog.objectives import Objectives

LOSSES = course("falls", 2.0, 0.0, "objectives")[:12]


def steps(losses: list[float], first: int = 0) -> str:
    return "".join(f"step {first + i} loss {loss:.4f}\n" for i, loss in enumerate(losses))


def trend(text: str) -> tuple[str, str | None]:
    reader = LogReader()
    reader.feed(text.encode())
    found = reader.summary()
    return str(found.trend), found.objective


@pytest.mark.parametrize(
    "line",
    [
        "===== Stage 2: full resolution =====",
        "Entering phase two",
        "Switching to the next curriculum level",
        "INFO changing loss function to focal",
        "Unfreezing the backbone",
        "curriculum_step: 3",
    ],
)
def test_the_loss_is_judged_by_what_follows(line: str) -> None:
    higher = [9 * loss for loss in LOSSES]
    assert trend(f"{steps(LOSSES)}{line}\n{steps(higher, 12)}") == ("CONVERGING", line)
    assert trend(steps(LOSSES) + steps(higher, 12)) == ("DIVERGING", None)


def test_few_values_of_the_new_one_leave_the_old_verdict() -> None:
    assert trend(f"{steps(LOSSES)}Stage 2\n{steps([40.0, 60.0], 12)}")[0] == "CONVERGING"


def test_one_that_diverges_in_its_second_stage_is_told() -> None:
    assert trend(f"{steps(LOSSES)}Stage 2\n{steps(LOSSES[::-1], 12)}")[0] == "DIVERGING"


def test_a_stage_in_each_line() -> None:
    text = "".join(
        f"stage {1 + i // 12} | step {i} | loss {loss:.4f}\n"
        for i, loss in enumerate([*LOSSES, *(9 * loss for loss in LOSSES)])
    )
    assert trend(text)[0] == "CONVERGING"


@pytest.mark.parametrize(
    "line",
    [
        "ZeRO stage 2 enabled",
        "zero_optimization: stage: 3",
        "Stage 1 begins",
        "the learning rate will change in phase 2",
        "saving to runs/stage2/model.pt",
        "val phase: loss 2.1",
    ],
)
def test_other_lines(line: str) -> None:
    assert not Objectives().read(line.encode(), begun=True)


def test_before_training_nothing_changes() -> None:
    assert not Objectives().read(b"Stage 2", begun=False)
