"""The devices of runs as they are answered, on recordings of eight GPUs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import Campaign, make_replay_campaign, record
from tests.support.trials import run

from gpudebug.core.records import DeviceEvidence
from gpudebug.engine.run.devices import devices_in, run_devices

FAST = {"util": 30.0, "power_w": 300, "sm_clock_mhz": 1410, "temperature_c": 55, "throttle": "none"}
SLOW = {**FAST, "sm_clock_mhz": 900, "throttle": "sw_thermal", "temperature_c": 88}


def eight(util: float, one: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    gpus = [{**FAST, "util": util} for _ in range(8)]
    return [*gpus[:5], {**gpus[5], **(one or {})}, *gpus[6:]]


def judged(folder: Path) -> str:
    recordings = folder / "recordings"
    record(recordings, "0001-baseline-workload", gpus=eight(30.0))
    slow = {**SLOW, "util": 90.0}
    record(recordings, "0002-h1", gpus=eight(90.0, slow), rate=30)
    campaign = make_replay_campaign(folder / "repo", recordings)
    campaign.propose("--set --lr=0.2")
    campaign.json("next")
    campaign.json("next")
    return str(campaign.folder)


@pytest.fixture(scope="module")
def campaign(made_once: Callable[..., str]) -> Campaign:
    return Campaign(Path(made_once("eight-gpus", judged)))


def test_one_slow_card_in_the_trial_is_no_verdict_and_is_named(campaign: Campaign) -> None:
    (hypothesis,) = campaign.json("status")["hypotheses"]
    assert hypothesis["status"] == "INVALID"
    assert "clocks of GPU 5 1410 and 900 MHz" in hypothesis["why"]
    assert "GPU 5 throttled by sw_thermal 0% and 100% of the time" in hypothesis["why"]
    assert campaign.json("verify")["ok"] is True


def test_show_has_every_device_and_names_who_is_apart(campaign: Campaign) -> None:
    text = campaign.run("show", "1").expect(0).out
    assert "clock least 900 MHz (GPU 5), median 1410 MHz, most 1410 MHz (GPU 0); GPU 5 is apart" in text
    assert "GPU  util   p5..p95  power W  SM MHz" in text
    rows = [line.split() for line in text.splitlines() if line.split()[:1] in [[str(i)] for i in range(8)]]
    # The trial's, each with its clock.
    assert [(row[0], row[4]) for row in rows] == [(str(i), "900" if i == 5 else "1410") for i in range(8)]
    answer = campaign.json("show", "1")
    (one,) = answer["devices"]
    assert [d["throttled"] for d in one["devices"]] == [float(i == 5) for i in range(8)]
    assert [d["power_w"]["mean"] for d in one["devices"]] == [300.0] * 8
    assert one["devices"][0]["energy_by"] == "power"


def test_compare_shows_the_ends_of_both_sides(campaign: Campaign) -> None:
    runs = [str(campaign.folder / "runs" / name) for name in campaign.runs()[1:3]]
    text = campaign.run("compare", *runs).expect(0).out
    lines = [line.split() for line in text.splitlines()]
    assert ["least", "GPU"] in [line[:2] for line in lines]
    assert "  B: clock least 900 MHz (GPU 5)" in text
    # 8 GPUs of 300 W at 10 and at 30 steps a second.
    energy = next(line for line in lines if line[:3] == ["energy", "a", "step"])
    assert [float(energy[3]), float(energy[5])] == pytest.approx([240, 80], rel=0.02)
    assert energy[4::2] == ["J", "J"]
    assert [one["figure"] for one in campaign.json("compare", *runs)["b"]["across"]][:2] == [
        "gpu_util",
        "power_w",
    ]


def test_analyze_shows_a_row_for_each_device(campaign: Campaign) -> None:
    path = str(campaign.folder / "runs" / campaign.runs()[-1] / "samples.csv")
    text = campaign.run("analyze", path).expect(0).out
    assert len([line for line in text.splitlines() if "/" not in line and "%  " in line]) >= 8
    assert "throttled least 0% of the time (GPU 0)" in text
    assert "energy 80 J/step" in text


def test_a_run_with_one_device_has_no_table_and_what_is_broken_is_left_out() -> None:
    one = run().model_dump(mode="json")
    two = run(
        devices=(DeviceEvidence(index=0, uuid="a", name=""), DeviceEvidence(index=1, uuid="b", name=""))
    )
    stored = two.model_dump(mode="json")
    broken = {**stored, "devices": [{"index": "no"}, {}]}
    assert [(r.run, len(r.devices)) for r in run_devices([one, broken, stored, {"run": "x"}])] == [
        ("0001-x", 2)
    ]
    assert [d.uuid for d in devices_in(two)] == ["a", "b"]
