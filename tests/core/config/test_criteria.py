"""`criteria.also`: what may be written, what it means, and how the figures are read from the log."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.config.criteria import (
    DEFAULT,
    FAULT,
    Rating,
    learning,
    patterns,
    rating,
    row_for,
    rows,
    usual_direction,
)
from gpudebug.core.config.parser import load
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
        ("also: {success_rate: not_worse}", "criteria.also: expected one of gpu_util"),
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
    assert load(SMALL, "gpudebug.yaml").criteria.also is None


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


RANGES = {
    "NVIDIA A100": (1500.0, 2500.0),
    "NVIDIA A100-SXM4-80GB": (1800.0, 2600.0),
    "Tesla V100": (800.0, 1200.0),
    DEFAULT: (150.0, 250.0),
}


@pytest.mark.parametrize(
    ("devices", "row"),
    [
        (["NVIDIA A100"], "NVIDIA A100"),
        (["NVIDIA A100-PCIE-40GB"], "NVIDIA A100"),
        (["NVIDIA A100-SXM4-80GB"], "NVIDIA A100-SXM4-80GB"),
        (["nvidia a100-sxm4-80gb"], "NVIDIA A100-SXM4-80GB"),
        (["Tesla V100-SXM2-16GB", "NVIDIA A100"], "Tesla V100"),
        (["NVIDIA H200", "Tesla V100"], "Tesla V100"),
        (["NVIDIA H200"], DEFAULT),
        (["a default GPU"], DEFAULT),
        ([], DEFAULT),
    ],
)
def test_a_row_is_found_by_name_then_part_of_it_then_default(devices: list[str], row: str) -> None:
    assert row_for(RANGES, devices) == row


def test_without_a_default_an_unknown_device_has_no_row() -> None:
    ranges = {"Tesla V100": (800.0, 1200.0)}
    assert row_for(ranges, ["NVIDIA H200"]) is None
    assert rows({"steps_per_s": ranges}, ["NVIDIA H200"], [{"steps_per_s": 5.0}]) == []


OF_CONFIGURATIONS = {
    "V100": (1.0, 2.0),
    "V100 / ppo": (2000.0, 3000.0),
    "V100 / supervised teacher": (800.0, 1200.0),
    "default / ppo": (5.0, 6.0),
    "default": (3.0, 4.0),
}


@pytest.mark.parametrize(
    ("device", "command", "row"),
    [
        ("Tesla V100-SXM2", "python train.py --algo=PPO", "V100 / ppo"),
        ("Tesla V100-SXM2", "python supervised.py --teacher=nim", "V100 / supervised teacher"),
        ("Tesla V100-SXM2", "python supervised.py", "V100"),
        ("NVIDIA H200", "python ppo.py", "default / ppo"),
        ("NVIDIA H200", "python train.py", "default"),
    ],
)
def test_a_row_of_the_configuration_goes_first(device: str, command: str, row: str) -> None:
    assert row_for(OF_CONFIGURATIONS, [device], command) == row
    (found,) = rows({"steps_per_s": OF_CONFIGURATIONS}, [device], [{"steps_per_s": 2500.0}], command)
    assert (found["device"], found["range"]) == (row, list(OF_CONFIGURATIONS[row]))


def test_each_phase_has_its_own_row_whatever_words_the_command_has() -> None:
    """`supervised_to_ppo` has the words of both; a row of a phase is for that phase alone."""
    phases = [{"name": "supervised", "steps_per_s": 900.0}, {"name": "PPO", "steps_per_s": 900.0}]
    facts = {"steps_per_s": 950.0, "phases": phases}
    table = {"steps_per_s": {key: span for key, span in OF_CONFIGURATIONS.items() if "teacher" not in key}}
    table["steps_per_s"]["V100 / supervised"] = (800.0, 1200.0)
    command, declared = "python supervised_to_ppo.py", ["supervised", "ppo", "distill"]
    found = rows(table, ["Tesla V100"], [facts], command, declared)
    assert [(row["phase"], row["device"], row["standing"]) for row in found] == [
        (None, "V100", "above"),
        ("supervised", "V100 / supervised", "within"),
        ("PPO", "V100 / ppo", "faulty"),
    ]
    table["steps_per_s"]["V100 / distill"] = (1.0, 2.0)
    (row,) = (
        row for row in rows(table, ["Tesla V100"], [facts], command, declared) if row["phase"] == "distill"
    )
    assert (row["measured"], row["note"]) == (None, "the runs did not come to phase distill")


@pytest.mark.parametrize(
    ("figure", "measured", "standing"),
    [
        ("steps_per_s", 74.9, Rating.FAULTY),
        ("steps_per_s", 75.0, Rating.BELOW),
        ("steps_per_s", 149.9, Rating.BELOW),
        ("steps_per_s", 150.0, Rating.WITHIN),
        ("steps_per_s", 250.0, Rating.WITHIN),
        ("steps_per_s", 250.1, Rating.ABOVE),
        ("steps_per_s", 0.0, Rating.FAULTY),
        ("steps_per_s", None, Rating.UNKNOWN),
        # Of a time, the upper bound is the worse end: twice as long is half as good.
        ("step_time_p50", 500.1, Rating.FAULTY),
        ("step_time_p50", 499.9, Rating.BELOW),
        ("step_time_p50", 200.0, Rating.WITHIN),
        ("latency_p50", 149.0, Rating.ABOVE),
        ("latency_p50", 0.0, Rating.ABOVE),
        ("joules_per_step", 300.0, Rating.BELOW),
    ],
)
def test_standing(figure: str, measured: float | None, standing: Rating) -> None:
    assert rating(figure, 150.0, 250.0, measured) is standing


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0, 1e6), st.booleans())
def test_more_of_a_figure_never_stands_worse(a: float, b: float, bound: float, less_is_better: bool) -> None:
    order = [Rating.FAULTY, Rating.BELOW, Rating.WITHIN, Rating.ABOVE]
    figure = "latency_p50" if less_is_better else "steps_per_s"
    low, high = sorted((a, b))
    ranks = [order.index(rating(figure, bound, 2 * bound, value)) for value in (low, high)]
    assert ranks == sorted(ranks, reverse=less_is_better)


@pytest.mark.parametrize(
    ("figure", "runs", "measured", "said"),
    [
        (
            "steps_per_s",
            [{"steps_per_s": 60.0}, {"steps_per_s": 60.0}],
            60.0,
            f"less than half of what is expected: {FAULT}",
        ),
        ("steps_per_s", [{"steps_per_s": 200.0}, {"steps_per_s": None}], 200.0, None),
        ("samples_per_s", [{"samples_per_s": 100.0}], 100.0, None),
        ("gpu_util", [{"utilisation": 160.0}], 160.0, None),
        ("latency_p50", [{"latency_p50_s": 501.0}], 501.0, f"more than twice what is expected: {FAULT}"),
        ("log:fps", [{"logged": {"fps": 170.0}}], 170.0, None),
        ("steps_per_s", [{"steps_per_s": None}], None, "no step rate in the log"),
        ("steps_per_s", [], None, "not measured yet"),
        ("SPS", [{"steps_per_s": 200.0}], None, "no metric has this name; there are gpu_util, steps_per_s"),
    ],
)
def test_what_is_told(
    figure: str, runs: list[dict[str, Any]], measured: float | None, said: str | None
) -> None:
    (row,) = rows({figure: RANGES}, ["CPU"], runs)
    assert (row["figure"], row["device"], row["range"]) == (figure, DEFAULT, [150.0, 250.0])
    assert row["measured"] == pytest.approx(measured)
    assert row["note"] == said or (said and row["note"].startswith(said))
