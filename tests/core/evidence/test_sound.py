"""The shape of records, and numbers that nothing measures."""

from __future__ import annotations

from typing import Any

import pytest

from gpudebug.core.evidence import sound
from gpudebug.core.records import Evidence

VERDICT: dict[str, Any] = {
    "hypothesis": 1,
    "status": "VALIDATED",
    "why": "delta",
    "before": 20.0,
    "after": None,
    "delta": {"value": 1.0, "low": None, "high": 2},
    "training": "SUCCESS",
    "loss": "CONVERGING",
    "gates": [{"name": "loss", "value": "x", "threshold": "y", "result": "pass", "note": None}],
    "runs": [{"name": "0001-h1", "part": "trial", "fresh": False}],
    "notes": [],
}


def nested(depth: int) -> Any:
    return [nested(depth - 1)] if depth else 1


@pytest.mark.parametrize("value", [float("nan"), float("-inf"), 10**19, [{"a": float("inf")}], nested(60)])
def test_what_nothing_measures_is_not_plain(value: Any) -> None:
    assert not sound.plain(value)


def test_what_is_measured_is_plain() -> None:
    assert sound.plain({"a": [1, 2.5, None, "NaN", True], "b": nested(20)})


WRONG: dict[str, Any] = {
    "hypothesis": True,
    "status": "GREAT",
    "why": None,
    "before": "20",
    "delta": {"low": 1.0},
    "gates": [{"name": "loss"}],
    "runs": {},
    "notes": [1],
    "metric": None,
    "terms": [],
}


def test_a_verdict_of_ours_is_sound() -> None:
    assert sound.verdict(VERDICT)
    assert not sound.verdict([VERDICT])


@pytest.mark.parametrize("key", WRONG)
def test_a_verdict_with_another_type_is_none(key: str) -> None:
    assert not sound.verdict({**VERDICT, key: WRONG[key]})


def test_an_endless_loss_is_evidence_all_the_same() -> None:
    assert sound.evidence({"utilisation": 20.0, "loss": {"last": float("nan")}})
    assert not sound.evidence({"utilisation": float("nan")})
    assert not sound.evidence({"devices": {}})
    assert not sound.evidence({"devices": [{"uuid": []}]})


@pytest.mark.parametrize("key", ["hypothesis", "status", "why", "before", "delta", "gates", "notes"])
def test_a_verdict_without_a_key_that_readers_need_is_none(key: str) -> None:
    assert not sound.verdict({k: v for k, v in VERDICT.items() if k != key})


def test_a_gate_without_its_note_is_none() -> None:
    (gate,) = VERDICT["gates"]
    assert not sound.verdict({**VERDICT, "gates": [{k: v for k, v in gate.items() if k != "note"}]})
    assert not sound.verdict({**VERDICT, "gates": [{**gate, "note": 1}]})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("role", ["baseline-workload"]),
        ("outcome", {}),
        ("hypothesis", True),
        ("duration_s", "1"),
        ("identity", {"tree": []}),
        ("identity", []),
        ("identity", None),
        ("devices", [{"uuid": "u"}]),
        ("devices", [{"uuid": ["u"], "name": "n"}]),
        ("devices", [{"uuid": "u", "name": "n", "memory_total_mb": "1"}]),
        ("cpu_quota", "2"),
        ("rewritten", [1]),
        ("uncounted", []),
        ("devices", None),
    ],
)
def test_a_run_whose_record_is_of_another_type_is_none(key: str, value: Any) -> None:
    ours = {"role": "workload", "hypothesis": 1, "duration_s": 2.5, "identity": {"tree": "t"}, "devices": []}
    assert sound.run(ours)
    assert not sound.run({**ours, key: value})


PHASE = {"name": "ppo", "by": "log", "start_s": 1.0, "end_s": 9.0, "seconds": 8.0, "stretches": 1}


def test_every_key_of_evidence_is_looked_at() -> None:
    others = {"devices", "spark", "work", "work_notes", "learning", "learning_notes", "ranks", "phases"}
    assert sound.NUMBERS | sound.TEXTS | sound.OBJECTS | others == set(Evidence.model_fields)


@pytest.mark.parametrize("key", ["failure", "probe", "steps", "run"])
def test_evidence_with_another_type_is_none(key: str) -> None:
    assert not sound.evidence({key: [[]]})


@pytest.mark.parametrize(
    "found",
    [
        {"loss": {"points": "41"}},
        {"loss": {"advice": {}}},
        {"conditions": {"throttle": "sw_power_cap"}},
        {"conditions": {"throttle": {"sw_power_cap": None}}},
        {"window": {"start_s": "1", "end_s": 2.0}},
        {"window": {"end_s": 2.0}},
        {"phases": [{"name": "ppo", "by": "log"}]},
        {"phases": [{**PHASE, "seconds": "9"}]},
        {"phases": [{**PHASE, "utilisation": "9"}]},
        {"stacks": {"training": []}},
        {"stacks": {"training": {"seconds": "3"}}},
        {"stacks": {"training": {"seconds": 3, "stacks": {}}}},
        {"stacks": {"training": {"seconds": 3, "stacks": [["data", [], 1, 2.0]]}}},
        {"stacks": {"training": {"seconds": 3, "stacks": [["data", [], 1, 2.0, None]]}}},
    ],
)
def test_what_is_added_up_is_looked_at(found: dict[str, Any]) -> None:
    assert sound.evidence({"loss": {"points": 41}, "stacks": {"training": {"seconds": 3, "stacks": []}}})
    assert sound.evidence({"phases": [PHASE], "conditions": {"throttle": {"sw_power_cap": 0.2}}})
    assert not sound.evidence(found)


@pytest.mark.parametrize("change", [{"l#ow": 1.0}, {"level": "1"}, {"place": None}, {"run": 3}])
def test_a_course_has_its_points_keys_alone(change: dict[str, Any]) -> None:
    point = {"run": "0003-h1", "part": "trial", "place": 1, "value": 1.0, "level": 1.0, "low": 0.5, "high": 2}
    assert sound._course([point])
    assert not sound._course([{**point, **change}])
    assert not sound._course({})
