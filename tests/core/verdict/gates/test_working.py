"""Utilisation that rises by waiting alone is hollow."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.powered import side
from tests.support.trials import criteria, gate, run, verdict

from gpudebug.core.records import Evidence
from gpudebug.core.verdict.judge import TrialSetting
from gpudebug.core.verdict.protocol import NextRun, next_step
from gpudebug.core.words import Result, Status

BEFORE = side(40, 5.0, 340.0, 341.0, 342.0, 340.0)


@pytest.mark.parametrize(
    ("after", "result", "status"),
    [
        (side(90, 4.5, 200.0, 201.0), Result.FAIL, Status.REJECTED),
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
    found = verdict(BEFORE, side(90, 4.5, 200.0, 201.0), throughput="any")
    assert gate(found, "throughput").result is Result.SKIPPED
    assert (found.status, found.hollow) == (Status.REJECTED, True)
    assert gate(found, "working_share").value == "50% to 13% of the time"


SLIGHTLY = side(65, 5.35, 317.0, 318.0)


def test_it_is_open_while_throughput_is_undecided() -> None:
    """1.07x within noise: neither hollow nor a gain, and more runs decide it."""
    found = verdict(BEFORE, SLIGHTLY)
    assert {gate(found, name).result for name in ("throughput", "working_share")} == {Result.UNKNOWN}
    assert (found.status, found.hollow) == (Status.INCONCLUSIVE, False)
    assert next_step(found, criteria(), BEFORE, SLIGHTLY, TrialSetting()) is NextRun.TRIAL


def test_more_runs_of_it_are_made_where_throughput_is_not_judged() -> None:
    """Nothing else is open: the rate that is 1.07x may yet turn out to be a gain."""
    found = verdict(BEFORE, SLIGHTLY, throughput="any", success=15)
    judged = criteria(throughput="any", success=15)
    assert next_step(found, judged, BEFORE, SLIGHTLY, TrialSetting()) is NextRun.TRIAL


def test_no_run_tells_work_that_is_not_counted() -> None:
    after = side(65, None, 317.0, 318.0)
    found = verdict(BEFORE, after, throughput="any")
    assert gate(found, "working_share").result is Result.UNKNOWN
    judged = criteria(throughput="any")
    assert next_step(found, judged, BEFORE, after, TrialSetting()) is NextRun.DONE


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
