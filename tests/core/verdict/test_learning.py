"""What learning is judged by: chosen once, and its course."""

from __future__ import annotations

import pytest
from tests.support.trials import run

from gpudebug.core.records import Evidence, LearningSeries, LearningUnit, LossEvidence
from gpudebug.core.verdict.learning import choose, text, trend, worst
from gpudebug.core.words import Trend

REWARD = LearningUnit(metric="reward", name="ep_rew_mean", source="the log")


def rewards(*values: float, metric: str = "reward", finite: bool = True, step: float = 100) -> LearningSeries:
    return LearningSeries(
        metric=metric,
        name="ep_rew_mean" if metric == "reward" else metric,
        source="the log",
        points=len(values),
        first=values[0],
        last=values[-1],
        finite=finite,
        over="total_timesteps",
        curve=tuple((step * (n + 1), v) for n, v in enumerate(values)),
    )


def learning(*series: LearningSeries, printed: int = 20) -> Evidence:
    return run(learning=series, loss=LossEvidence(name="loss", trend=Trend.PLATEAU, points=printed))


def test_a_reward_stands_before_the_loss() -> None:
    assert choose([learning(rewards(1, 2, 3))] * 2) == REWARD
    assert text(REWARD) == "reward ep_rew_mean, from the log, higher is better"
    assert text(None) == "the loss that the log prints"


def test_without_a_reward_in_all_runs_it_is_the_printed_loss() -> None:
    assert choose([learning(rewards(1, 2, 3)), learning()]) is None
    assert choose([]) is None


def test_a_loss_that_only_files_hold_is_taken_if_none_is_printed() -> None:
    loss = rewards(3, 2, 1, metric="loss")
    assert choose([learning(loss)]) is None
    found = choose([learning(loss, printed=0)])
    assert found is not None
    assert (found.metric, found.direction) == ("loss", "lower")


def test_one_that_is_set_is_never_replaced() -> None:
    found = choose([learning(rewards(1, 2, 3))], {"metric": "log:success", "direction": "higher"})
    assert found is not None
    assert (found.source, found.chosen) == ("", False)
    assert worst([learning(rewards(1, 2, 3))], found) is Trend.UNKNOWN
    assert choose([learning(rewards(1, 2, 3))], {"metric": "loss", "direction": "lower"}) is None


@pytest.mark.parametrize(
    ("series", "direction", "expected"),
    [
        (rewards(1, 5, 9, 20), "higher", Trend.CONVERGING),
        (rewards(-1300, -1290, -1310), "higher", Trend.PLATEAU),
        (rewards(-1300, -700, -200), "higher", Trend.CONVERGING),
        (rewards(20, 9, 5, 1), "higher", Trend.DIVERGING),
        (rewards(20, 9, 5, 1), "lower", Trend.CONVERGING),
        (rewards(1, 2, 3, finite=False), "higher", Trend.NAN),
        (rewards(1, 2), "higher", Trend.UNKNOWN),
        (None, "higher", Trend.UNKNOWN),
    ],
)
def test_the_course(series: LearningSeries | None, direction: str, expected: Trend) -> None:
    assert trend(series, direction) is expected
