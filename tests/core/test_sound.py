"""The shape of stored records, as the models have it."""

from __future__ import annotations

from typing import Any

import pytest

from gpudebug.core.models import Verdict
from gpudebug.core.sound import verdict as is_verdict
from gpudebug.core.words import Status, Trend

WHOLE: dict[str, Any] = Verdict(
    rule="1",
    hypothesis=1,
    status=Status.VALIDATED,
    why="all gates pass",
    before=20.0,
    after=60.0,
    delta={"value": 40.0, "low": 39.0, "high": 41.0},  # type: ignore[arg-type]
    training="SUCCESS",
    loss=Trend.CONVERGING,
    gates=({"name": "delta", "value": "+40pp", "threshold": "20pp", "result": "pass"},),  # type: ignore[arg-type]
    runs=({"name": "0002-h1", "part": "trial", "evidence_sha256": "0"},),  # type: ignore[arg-type]
).model_dump(mode="json")


def test_what_the_model_writes_is_one() -> None:
    assert is_verdict(WHOLE)
    assert is_verdict({**WHOLE, "before": None, "delta": None, "of a later version": 1})


@pytest.mark.parametrize(
    "change",
    [
        {"hypothesis": "1"},
        {"hypothesis": True},
        {"status": "UNTESTED"},
        {"status": ["VALIDATED"]},
        {"before": "20%"},
        {"before": float("nan")},
        {"delta": 40},
        {"delta": {"low": 1.0}},
        {"gates": [{"name": "delta"}]},
        {"gates": {}},
        {"runs": ["0002-h1"]},
        {"notes": [1]},
    ],
)
def test_what_no_reader_could_use_is_none(change: dict[str, Any]) -> None:
    assert not is_verdict({**WHOLE, **change})


@pytest.mark.parametrize("key", ["hypothesis", "status", "why", "before", "delta", "gates"])
def test_a_key_that_readers_need_is_missing(key: str) -> None:
    assert not is_verdict({k: v for k, v in WHOLE.items() if k != key})


@pytest.mark.parametrize("other", [None, [], "text", 1, {}])
def test_another_value_is_none(other: object) -> None:
    assert not is_verdict(other)
