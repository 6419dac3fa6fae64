"""`criteria.learning`."""

from __future__ import annotations

import pytest

from gpudebug.core.config.learning import learning
from gpudebug.core.config.parser import load
from gpudebug.core.errors import ConfigError

HEAD = "workload: {command: python train.py}\n"


@pytest.mark.parametrize(
    ("value", "metric", "direction"),
    [
        ("loss", "loss", "lower"),
        ("reward", "reward", "higher"),
        ("return", "reward", "higher"),
        ({"metric": "reward", "direction": "lower"}, "reward", "lower"),
        ({"metric": "log:success", "direction": "higher"}, "log:success", "higher"),
    ],
)
def test_what_may_be_written(value: object, metric: str, direction: str) -> None:
    assert learning(value) == {"metric": metric, "direction": direction}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("accuracy", "expected loss, reward, log:NAME"),
        ("{metric: reward, direction: up}", "expected higher or lower"),
        ("log:success", "direction is missing"),
        ("{metric: log:success, direction: higher}", "log has no pattern success"),
        ("{metrics: reward}", "expected loss, reward"),
    ],
)
def test_what_may_not(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load(f"{HEAD}criteria: {{learning: {text}}}\n", "gpudebug.yaml")


def test_by_default_the_baseline_decides() -> None:
    assert load(HEAD, "gpudebug.yaml").criteria.learning == {"metric": "auto", "direction": ""}
