"""The utilisation that a campaign is judged by, from evidence.json as it was read."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.powered import busy
from tests.support.trials import run

from gpudebug.core.statistics.metrics import Metric
from gpudebug.engine.campaign.campaign import CampaignBaseline
from gpudebug.engine.campaign.judged import judged, mean_of


def facts(least: float, mean_w: float = 245.0) -> dict[str, Any]:
    """Two GPUs, of which the first is the least busy one."""
    devices = (busy(least, mean_w), busy(98, mean_w, 1))
    return run((least + 98) / 2, 5.0, devices=devices).model_dump(mode="json")


RUNS = (facts(30.0), facts(32.0))


@pytest.mark.parametrize(("devices", "figure"), [(None, 64.5), ("least", 31.0), ("working", 25.0)])
def test_a_baseline_has_the_figure_that_is_judged(devices: str | None, figure: float) -> None:
    baseline = CampaignBaseline("workload", None, evidence=RUNS, devices=devices)
    assert baseline.figure(Metric()) == pytest.approx(figure)
    assert baseline.utilisation == 64.5
    assert baseline.figure(Metric("steps_per_s")) == pytest.approx(5.0)


def test_the_mean_is_as_it_was_read() -> None:
    assert judged(None, RUNS) == list(RUNS)


def test_what_is_no_evidence_has_no_figure_and_keeps_its_place() -> None:
    broken = {**RUNS[0], "devices": [{"index": "x"}]}
    first, second = judged("least", [broken, RUNS[1]])
    assert (first["utilisation"], second["utilisation"]) == (None, 32.0)
    assert mean_of(Metric(), [first, second]) == 32.0
