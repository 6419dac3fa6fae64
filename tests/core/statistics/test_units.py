"""The choice of a unit of work among what runs count."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.statistics.units import (
    AUTO,
    PRINTED_LOSS,
    CountedRate,
    LearningFigure,
    LearningOfRun,
    judged_by,
    learning_set_in,
    pick,
    pick_learning,
    recorded,
    recorded_learning,
    text,
)

ENV = CountedRate("environment steps", "total_timesteps", 500.0)
FPS = CountedRate("environment steps", "printed fps", 480.0)
STEPS = CountedRate("optimizer steps", "the probe", 20.0)
OWN = CountedRate("log:turns", "turns", 3.0)
CANDIDATES = st.lists(st.sampled_from([ENV, FPS, STEPS, OWN]), max_size=4, unique=True)


def test_the_first_that_all_runs_have() -> None:
    found = pick([[ENV, FPS, STEPS], [FPS, STEPS]])
    assert found is not None
    assert (found.unit, found.source, found.rates) == ("environment steps", "printed fps", (480.0, 480.0))


def test_a_unit_that_is_set_is_never_another_one() -> None:
    assert pick([[ENV, STEPS], [STEPS]], "environment steps") is None
    found = pick([[ENV, STEPS], [ENV, STEPS]], "optimizer steps")
    assert found is not None
    assert found.source == "the probe"


def test_an_own_pattern_is_taken_only_if_it_is_asked_for() -> None:
    assert pick([[OWN], [OWN]]) is None
    assert pick([[ENV, OWN]], "log:turns") is not None


@given(st.lists(CANDIDATES, max_size=4))
def test_what_is_picked_is_in_every_run(runs: list[list[CountedRate]]) -> None:
    found = pick(runs, AUTO)
    if found is None:
        assert not runs or not [one for one in runs[0] if one != OWN and all(one in run for run in runs)]
    else:
        assert all((found.unit, found.source) in [one[:2] for one in run] for run in runs)


def test_the_texts() -> None:
    assert text("tokens", "num_tokens") == "tokens, from num_tokens"
    assert text("tokens", "num_tokens", chosen=False) == "tokens, from num_tokens (set)"
    assert recorded({}) == []


REWARD = LearningFigure("reward", "ep_rew_mean", "the log")
LOSS = LearningFigure("loss", "train/loss", "metrics.csv")
OWN_LOSS = LearningFigure("log:success", "log:success", "the log")
LOWER = "loss train/loss, from metrics.csv, lower is better"
NOTHING = LearningOfRun(False, ())


def printing(*figures: LearningFigure) -> LearningOfRun:
    return LearningOfRun(True, figures)


def test_a_reward_that_all_runs_have_comes_before_the_printed_loss() -> None:
    found = pick_learning([printing(LOSS, REWARD), printing(REWARD)])
    assert found is not None
    assert (found.figure, found.direction, found.chosen) == (REWARD, "higher", True)
    assert pick_learning([printing(REWARD), printing()]) is None


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
            [printing(OWN_LOSS)],
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
    assert recorded_learning(evidence) == expected


@pytest.mark.parametrize(
    ("figure", "configured"),
    [
        (("reward", "ep_rew_mean", "the log"), {"metric": "reward"}),
        (("reward", "eval reward", "progress.csv"), {"metric": "reward", "direction": "lower"}),
        (("loss", "training loss", "backward()"), {"metric": "loss", "direction": "lower"}),
        (
            ("log:success rate", "success rate", "the log"),
            {"metric": "log:success rate", "direction": "higher"},
        ),
        (("log:other", "other", "the log"), {"metric": "log:success", "direction": "higher"}),
        (("loss", "training loss", "backward()"), None),
    ],
)
def test_what_was_set_is_read_again_of_what_is_said_of_it(
    figure: tuple[str, str, str], configured: dict[str, str] | None
) -> None:
    runs = [LearningOfRun(False, (LearningFigure(*figure),))]
    found = pick_learning(runs, configured)
    assert found is not None
    again = pick_learning(runs, learning_set_in(found.text))
    # A figure that a run lacks has no direction that counts.
    assert again is not None and (again.figure, again.chosen) == (found.figure, found.chosen)
    assert again.direction == found.direction or not found.figure.source
