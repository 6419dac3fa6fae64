"""What one glance at a campaign's data shows."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.campaign_data import GPU, a_gain, a_hypothesis, a_step, campaign_data, empty_data

from gpudebug.core.campaign import overview

CLAIMED: dict[str, Any] = {"verified": False, "claimed": "+50pp"}
SAID = {
    "nothing": (empty_data(), "no baseline is measured yet"),
    "a baseline": (campaign_data(), "gpu_util 20.0%, no hypothesis is tested yet"),
    "nothing works": (
        campaign_data(a_hypothesis(1, "REJECTED", 1.0), a_hypothesis(2, "UNTESTED")),
        "gpu_util 20.0%, none of the hypotheses tested is VALIDATED",
    ),
    "one works": (
        campaign_data(a_hypothesis(1, delta=30.0), a_hypothesis(2, delta=40.0)),
        "gpu_util 20.0%, +40.0pp with hypothesis 2",
    ),
    "accepted": (
        campaign_data(a_hypothesis(1, accepted=1), gain=a_gain(20.0, 61.5, a_step(1, 20.0, 60.0))),
        "gpu_util 20.0% to 61.5% with 1 accepted change",
    ),
    "not measured since": (
        campaign_data(gain=a_gain(20.0, None, a_step(1, 20.0, 60.0), a_step(2, 60.0, 70.0))),
        "gpu_util 20.0% before 2 accepted changes, not measured together yet",
    ),
    "a rate": (
        campaign_data(
            a_hypothesis(1, delta=None, improvement=1.5, improvement_ci=[1.4, 1.6]),
            gain=a_gain(10.0, 10.0, metric="steps_per_s", unit="steps/s"),
        ),
        "steps_per_s 10 steps/s, 1.50x with hypothesis 1",
    ),
}


@pytest.mark.parametrize(("data", "said"), SAID.values(), ids=SAID)
def test_where_a_campaign_stands(data: dict[str, Any], said: str) -> None:
    assert overview.headline(data) == said


def test_an_effect_that_nobody_measured_is_none() -> None:
    crashed = a_hypothesis(1, "REJECTED", None)
    claimed = a_hypothesis(2, "VALIDATED", None, **CLAIMED)
    assert overview.effect(crashed) is None
    assert overview.effect_text(crashed) == "unknown"
    assert overview.effect_text(claimed) == "UNVERIFIED +50pp"
    assert overview.best([crashed, claimed]) is None


def test_an_effect_with_and_without_its_interval() -> None:
    assert overview.effect_text(a_hypothesis(1)) == "+40.0pp (95% CI +38.0 to +42.0)"
    assert overview.effect_text(a_hypothesis(1, delta_ci=None)) == "+40.0pp"
    assert overview.effect_text(a_hypothesis(1, delta_ci=[None, None])) == "+40.0pp"


def test_the_rows_that_tell_most_stay_in_their_order() -> None:
    made = [a_hypothesis(n, "REJECTED", float(n)) for n in range(1, 101)]
    made[4] = a_hypothesis(5, delta=20.0)
    made[2] = a_hypothesis(3, delta=20.0, accepted=1)
    made[6] = a_hypothesis(7, "UNTESTED")
    assert [h["number"] for h in overview.rows(made, 4)] == [3, 5, 99, 100]
    assert len(overview.rows(made, 200)) == 99


def test_a_tally_names_what_there_is() -> None:
    assert overview.tally([]) == "No hypothesis yet"
    made = [a_hypothesis(1, "UNTESTED"), a_hypothesis(2), a_hypothesis(3, "INVALID"), a_hypothesis(4)]
    assert overview.tally(made) == "2 VALIDATED, 1 INVALID, 1 UNTESTED"


def test_a_processor_is_never_shown_as_a_gpu() -> None:
    several = campaign_data(devices=("GPU-0", "GPU-1"))
    assert (overview.device(several), overview.utilisation(several)) == (f"2 x {GPU}", "gpu_util")
    waiting = empty_data()
    waiting["status"]["device"] = {"setting": "cpu:2", "devices": []}
    assert overview.stand_in(waiting)
    alone = campaign_data(devices=("CPU",))
    assert overview.device(alone).startswith("CPU stand-in, ")
    assert overview.utilisation(alone) == "gpu_util of the CPU stand-in"
    assert overview.device(empty_data()) == "no device used yet"
