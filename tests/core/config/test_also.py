"""`criteria.also`: what may be written, what it means, and how the figures are read from the log."""

from __future__ import annotations

from typing import Any

import pytest

from gpudebug.core.config import load
from gpudebug.core.config.also import also, patterns, usual_direction
from gpudebug.core.config.pins import rule_of
from gpudebug.core.errors import ConfigError
from gpudebug.core.trainlog.reader import LogReader

SMALL = "workload: {command: python infer.py}\nmetric: latency_p50\n"


def test_the_short_form_is_complete() -> None:
    config = load(SMALL + "criteria: {also: {log:success_rate: not_worse}}\n", "gpudebug.yaml")
    assert config.criteria.also == {"log:success_rate": {"direction": "higher", "not_worse": 1.03}}


@pytest.mark.parametrize("margin", ["1.02", "1.02x"])
def test_direction_and_margin_may_be_set(margin: str) -> None:
    text = f"criteria: {{also: {{log:mse: {{direction: lower, not_worse: {margin}}}}}}}\n"
    config = load(SMALL + text, "gpudebug.yaml")
    assert config.criteria.also == {"log:mse": {"direction": "lower", "not_worse": 1.02}}


@pytest.mark.parametrize(
    ("metric", "direction"),
    [
        ("log:success_rate", "higher"),
        ("log:val_loss", "lower"),
        ("log:mse", "lower"),
        ("log:word_error", "lower"),
        ("log:collisions", "lower"),
        ("latency_p99", "lower"),
        ("joules_per_step", "lower"),
        ("section:decode", "lower"),
        ("steps_per_s", "higher"),
    ],
)
def test_which_way_is_better_follows_from_the_name(metric: str, direction: str) -> None:
    assert usual_direction(metric) == direction


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("also: [log:x]", "criteria.also: expected a mapping such as {log:success_rate: not_worse}"),
        ("also: {success_rate: not_worse}", "success_rate: expected one of gpu_util"),
        ("also: {log:x: better}", "log:x: expected not_worse, or {direction: lower, not_worse: 1.05x}"),
        ("also: {log:x: {worse: 2}}", "log:x: expected not_worse"),
        ("also: {log:x: {direction: up}}", "log:x: direction: expected higher or lower, found 'up'"),
        ("also: {log:x: {not_worse: 0.5x}}", "log:x: not_worse: expected a ratio such as 1.05x"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_line(text: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(SMALL + f"criteria:\n  {text}\n", "gpudebug.yaml")
    assert says in caught.value.message
    assert caught.value.line == 4


@pytest.mark.parametrize(
    "line",
    ["success_rate: 0.93", "success_rate=0.93", "{'success_rate': 0.93}", "eval: success_rate = 9.3e-1 (93)"],
)
def test_a_figure_is_read_without_a_pattern(line: str) -> None:
    found = patterns({}, {"log:success_rate": {}})
    reader = LogReader(found)
    reader.feed(f"{line}\nnot_success_rates: 0.5\n".encode())
    (point,) = reader.summary().extra["success_rate"]
    assert point.value == pytest.approx(0.93)


def test_a_pattern_of_ones_own_counts() -> None:
    assert patterns({"x": "X(?P<value>.)"}, {"log:x": {}, "latency_p99": {}}) == {"x": "X(?P<value>.)"}


BAR = {"log:x": {"direction": "higher", "not_worse": 1.03}}


@pytest.mark.parametrize(
    ("value", "weaker"),
    [
        (None, True),
        (BAR, False),
        ({"log:x": {"direction": "higher", "not_worse": 1.01}}, False),
        ({"log:x": {"direction": "higher", "not_worse": 1.2}}, True),
        ({"log:x": {"direction": "lower", "not_worse": 1.03}}, True),
        ({**BAR, "log:y": {"direction": "higher", "not_worse": 1.5}}, False),
    ],
)
def test_less_to_keep_is_weaker(value: Any, weaker: bool) -> None:
    rule = rule_of("criteria.also")
    assert rule.weaker is not None
    assert rule.weaker(value, BAR) is weaker


def test_nothing_is_nothing() -> None:
    assert also(None) is None
    assert load(SMALL, "gpudebug.yaml").criteria.also is None
