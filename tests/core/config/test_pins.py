"""Which settings bind a campaign, and how two values of one compare."""

from __future__ import annotations

from typing import Any

import pytest

from gpudebug.core import config
from gpudebug.core.config import pins
from gpudebug.core.config.pins import TABLE
from gpudebug.core.config.rules import Class


def loaded(text: str = "") -> dict[str, Any]:
    return pins.pinnable(config.load(f"campaign: test\nworkload: {{command: python train.py}}\n{text}", "x"))


def test_free_settings_are_not_pinned() -> None:
    free = {key for key, rule in TABLE.items() if rule.kind is Class.FREE}
    assert free == {"goal", "auto_propose", "expected", "context", "guidelines"}
    assert not free & loaded("goal: x\nguidelines: y\nexpected: {steps_per_s: {default: [1, 2]}}\n").keys()


def test_every_ordered_setting_says_which_way_is_weaker() -> None:
    for key, rule in TABLE.items():
        assert (rule.weaker is not None) == (rule.kind is Class.ORDERED), key
        assert rule.text


@pytest.mark.parametrize(
    ("key", "pinned", "weaker", "stricter"),
    [
        ("criteria.success", 20.0, 19.9, 21.0),
        ("criteria.failure", 10.0, 0.0, 11.0),
        ("criteria.loss", "converging", "any", None),
        ("criteria.throughput", "not_worse", "any", "better"),
        ("criteria.devices", "least", "working", None),
        ("target", 80.0, 60.0, 90.0),
        ("locked", ["--batch_size"], [], ["--batch_size", "--lr"]),
        ("protocol.max_runs", 6, 9, 3),
        ("budget.hypotheses", 20, 99, 5),
        ("budget.device_time", 7200.0, 9000.0, 60.0),
        ("probe", True, False, None),
        ("workload.timeout", 60.0, 90.0, 30.0),
        ("allow_env", ["A"], ["A", "B"], []),
        ("allow_flags", {"torchrun": ["--a"]}, {"torchrun": ["--a", "--b"]}, {}),
    ],
)
def test_ordered_settings_are_weaker_one_way_only(key: str, pinned: Any, weaker: Any, stricter: Any) -> None:
    (down,) = pins.differences({key: weaker}, {key: pinned})
    assert down.weaker is True
    assert down.text.endswith("(weaker)")
    if stricter is not None:
        (up,) = pins.differences({key: stricter}, {key: pinned})
        assert up.weaker is False


def test_a_campaign_that_was_pinned_before_there_was_a_choice_of_devices_is_judged_by_the_mean() -> None:
    assert "criteria.devices" not in loaded("criteria: {devices: mean}\n")
    (other,) = pins.differences(loaded("criteria: {devices: least}\n"), loaded())
    assert other.text == "criteria.devices is least, pinned is not set (weaker)"
    assert pins.weaker_terms({"criteria": {"devices": None}}, loaded("criteria: {devices: least}\n"))


def test_a_time_s_target_is_weaker_if_it_is_longer() -> None:
    bar = {"target": 1.0, "direction": "lower"}
    assert [d.weaker for d in pins.differences({**bar, "target": 2.0}, bar)] == [True]
    assert [d.weaker for d in pins.differences({**bar, "target": 0.5}, bar)] == [False]


def test_what_was_resolved_may_grow() -> None:
    assert pins.differences({"resolved.device": "cpu"}, {}) == ()
    assert pins.differences({}, {"resolved.device": "cpu"}) == ()
    assert len(pins.differences({"resolved.device": "cpu"}, {"resolved.device": "nvml"})) == 1


def test_a_setting_of_a_later_version_is_compared() -> None:
    (found,) = pins.differences({"later": 1}, {})
    assert found.text == "later is 1, pinned is not set"


def test_a_variable_that_differs_is_named() -> None:
    (found,) = pins.differences({"workload.env": {"A": "1", "B": "2"}}, {"workload.env": {"A": "1"}})
    assert found.text == "workload.env.B is 2, pinned is not set"


def test_terms_are_weaker_by_what_they_keep() -> None:
    bar = loaded("target: 50\nlocked: [--lr]\n")
    terms = {
        "metric": "gpu_util",
        "direction": "higher",
        "locked": ["--lr"],
        "criteria": {"success": 20.0, "failure": 10.0, "loss": "converging", "throughput": "better"},
        "protocol": {"interval": 0.2, "max_runs": 6, "warmup": None},
    }
    assert pins.weaker_terms(terms, bar) == ()
    lower = {**terms, "criteria": {**terms["criteria"], "success": 1}, "locked": []}  # type: ignore[dict-item]
    assert [d.key for d in pins.weaker_terms(lower, bar)] == ["criteria.success", "locked"]
    other = {**terms, "metric": "steps_per_s"}
    assert [d.key for d in pins.weaker_terms(other, bar)] == ["metric"]
    stricter = {**terms, "criteria": {**terms["criteria"], "success": 40}}  # type: ignore[dict-item]
    assert pins.weaker_terms(stricter, bar) == ()


@pytest.mark.parametrize("value", ["20", [], {}, {"a": 1}])
def test_terms_that_gpudebug_does_not_write_are_weaker(value: Any) -> None:
    terms = {"criteria": {"success": value}, "protocol": value, "locked": value}
    assert "criteria.success" in [d.key for d in pins.weaker_terms(terms, loaded())]


def test_terms_of_nothing_are_not_compared() -> None:
    terms = {"criteria": {"success": None}, "protocol": None, "locked": None}
    assert pins.weaker_terms(terms, loaded()) == ()


def test_the_digest_does_not_depend_on_the_order_of_keys() -> None:
    assert pins.digest({"a": 1, "b": 2}) == pins.digest({"b": 2, "a": 1})
    assert pins.digest({"a": 1}) != pins.digest({"a": 2})


LONG = " ".join(f"--policy.name_{n}={n}" for n in range(40))


@pytest.mark.parametrize(
    ("value", "pinned", "said"),
    [
        (f"lerobot-train {LONG} --z=1", f"lerobot-train {LONG} --z=2", "is … --z=1, pinned is … --z=2"),
        (f"a {LONG}", f"a {LONG} --z=2", "is the same without, pinned is … --z=2"),
        (f"a {LONG} --z=2 --w", f"a {LONG} --w", "is … --z=2 …, pinned is the same without"),
        (f"a=1 {LONG} b=1", f"a=2 {LONG} b=2", "is a=1 … b=1, pinned is a=2 … b=2"),
        ("x" * 300 + "1", "x" * 300 + "2", f"is …{'x' * 20}1, pinned is …{'x' * 20}2"),
        ("a b", "a c", "is a b, pinned is a c"),
    ],
)
def test_of_two_long_texts_the_words_that_differ_are_shown(value: str, pinned: str, said: str) -> None:
    (found,) = pins.differences({"workload.command": value}, {"workload.command": pinned})
    assert found.text == f"workload.command {said}"
