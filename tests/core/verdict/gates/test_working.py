"""Utilisation that rises by waiting alone is hollow."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.powered import side
from tests.support.trials import criteria, gate, run, verdict

from gpudebug.core.records import Evidence
from gpudebug.core.verdict.judge import TrialSetting, judge
from gpudebug.core.words import Result, Status

BEFORE = side(40, 5.0, 340.0, 341.0, 342.0, 340.0)


@pytest.mark.parametrize(
    ("after", "result", "status"),
    [
        (side(90, 5.0, 200.0, 201.0), Result.FAIL, Status.REJECTED),
        (side(90, 11.0, 500.0, 501.0), Result.PASS, Status.VALIDATED),
        (side(90, 11.0, 300.0, 301.0), Result.PASS, Status.VALIDATED),
    ],
)
def test_busier_without_more_work_is_hollow(after: list[Evidence], result: Result, status: Status) -> None:
    found = verdict(BEFORE, after)
    assert gate(found, "working_share").result is result
    assert found.status is status
    assert found.hollow is (result is Result.FAIL)


def test_it_is_hollow_where_throughput_is_not_judged() -> None:
    found = verdict(BEFORE, side(90, 5.0, 200.0, 201.0), throughput="any")
    assert gate(found, "throughput").result is Result.SKIPPED
    assert (found.status, found.hollow) == (Status.REJECTED, True)
    assert gate(found, "working_share").value == "50% to 13% of the time"


def test_it_is_never_validated_if_work_is_unknown() -> None:
    found = verdict(BEFORE, side(90, None, 200.0, 201.0), throughput="any")
    assert gate(found, "working_share").result is Result.UNKNOWN
    assert found.status is not Status.VALIDATED


@pytest.mark.parametrize("lacking", [{"scale": None}, {}])
def test_it_is_skipped_where_power_is_missing(lacking: dict[str, Any]) -> None:
    after = side(90, 11.0, 500.0, **lacking) if lacking else [run(90, 11.0)]
    found = gate(verdict(BEFORE, after), "working_share")
    assert found.result is Result.SKIPPED
    assert found.note is not None


def test_earlier_rules_do_not_ask_it() -> None:
    found = judge(1, criteria(), BEFORE, side(90, 11.0, 500.0), TrialSetting(), rule="4")
    assert "working_share" not in [g.name for g in found.gates]
