"""Utilisation that rises by waiting alone is hollow."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.trials import criteria, gate, run, verdict

from gpudebug.core.records import DeviceEvidence, Evidence, Spread
from gpudebug.core.verdict.gates.working import on_one_scale
from gpudebug.core.verdict.judge import TrialSetting, judge
from gpudebug.core.words import Result, Status


def device(
    mean_w: float | None, scale: tuple[float, float] | None = (150.0, 530.0), index: int = 0
) -> DeviceEvidence:
    share = None if scale is None or mean_w is None else (mean_w - scale[0]) / (scale[1] - scale[0])
    return DeviceEvidence(
        index=index,
        uuid=f"GPU-{index}",
        name="H100",
        power_w=Spread(mean=mean_w, p5=mean_w, p50=mean_w, p95=mean_w) if mean_w is not None else None,
        working=share,
        waiting_w=scale[0] if scale else None,
        working_w=scale[1] if scale else None,
        working_reason=None if scale else "no reading of power",
    )


def side(utilisation: float, rate: float | None, *powers: float, **more: Any) -> list[Evidence]:
    """A run for each mean power in W."""
    return [
        run(utilisation + n / 4, rate, devices=(device(power, **more),), working_reason=None)
        for n, power in enumerate(powers)
    ]


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


def test_runs_are_read_on_the_widest_scale_of_their_device() -> None:
    """A run that hardly ever works shows 340 W at most: by itself it would seem to work half of the time."""
    hardly, often = side(90, 5.0, 245.0, scale=(150.0, 340.0)), side(90, 5.0, 435.0)
    assert on_one_scale([*hardly, *often]) == pytest.approx([0.25, 0.75])


def test_one_device_without_power_makes_the_run_unknown() -> None:
    both = run(90, 5.0, devices=(device(500.0), device(None, None, index=1)))
    assert on_one_scale([both]) == [None]
