"""The choice of what learning is judged by, among the figures that runs show."""

from __future__ import annotations

import pytest

from gpudebug.core.statistics.learning_units import (
    PRINTED_LOSS,
    LearningFigure,
    LearningOfRun,
    judged_by,
    pick,
    recorded,
)

REWARD = LearningFigure("reward", "ep_rew_mean", "the log")
LOSS = LearningFigure("loss", "train/loss", "metrics.csv")
OWN = LearningFigure("log:success", "log:success", "the log")
LOWER = "loss train/loss, from metrics.csv, lower is better"
NOTHING = LearningOfRun(False, ())


def printing(*figures: LearningFigure) -> LearningOfRun:
    return LearningOfRun(True, figures)


def test_a_reward_that_all_runs_have_comes_before_the_printed_loss() -> None:
    found = pick([printing(LOSS, REWARD), printing(REWARD)])
    assert found is not None
    assert (found.figure, found.direction, found.chosen) == (REWARD, "higher", True)
    assert pick([printing(REWARD), printing()]) is None


@pytest.mark.parametrize(
    ("runs", "configured", "loss", "text"),
    [
        ([printing(REWARD)], None, "converging", "reward ep_rew_mean, from the log, higher is better"),
        ([printing(REWARD)], None, "any", None),
        ([printing(LOSS)], None, "converging", PRINTED_LOSS),
        (
            [LearningOfRun(False, (LOSS,))],
            None,
            "converging",
            "loss train/loss, from metrics.csv, lower is better",
        ),
        ([NOTHING], None, "converging", None),
        ([], None, "converging", None),
        (
            [printing(OWN)],
            {"metric": "log:success", "direction": "lower"},
            "converging",
            "log:success, from the log, lower is better (set)",
        ),
        (
            [printing(REWARD)],
            {"metric": "log:success"},
            "converging",
            "log:success, which not all runs show (set)",
        ),
    ],
)
def test_what_it_is_judged_by(
    runs: list[LearningOfRun], configured: dict[str, str] | None, loss: str, text: str | None
) -> None:
    assert judged_by(runs, configured, loss) == text


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        (
            {"loss": {"points": 2}, "learning": [{**REWARD._asdict(), "points": 9}]},
            LearningOfRun(False, (REWARD,)),
        ),
        ({"loss": {"points": 3}}, printing()),
        ({"loss": None}, NOTHING),
    ],
)
def test_evidence_as_it_was_read(evidence: dict[str, object], expected: LearningOfRun) -> None:
    assert recorded(evidence) == expected
