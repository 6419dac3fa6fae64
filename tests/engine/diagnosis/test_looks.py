"""What recorded looks say; that they are made, and read back, is in test_screen.py."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.campaigns import Campaign
from tests.support.powered import busy
from tests.support.trials import run

from gpudebug.engine.campaign.campaign import CampaignBaseline
from gpudebug.engine.campaign.load import load
from gpudebug.engine.diagnosis import looks
from gpudebug.engine.hypotheses.propose import propose


def test_without_a_look_nothing_is_known(waiting: Campaign) -> None:
    propose(waiting.folder, title="One", description="", method="", set_=["--lr=0.2"])
    loaded = load(waiting.folder)
    assert looks.newest(loaded) == {}
    assert looks.gains(loaded) == {}


@pytest.mark.parametrize(("devices", "gain"), [(None, 30.0), ("least", 60.0), ("working", 50.0)])
def test_a_look_is_held_against_the_figure_that_is_judged(
    waiting: Campaign, monkeypatch: pytest.MonkeyPatch, devices: str | None, gain: float
) -> None:
    """The look alone never waits, and shows no power of waiting: it is read on the baseline's scale."""
    loaded = load(waiting.folder)
    before, look = seen(30.0, 245.0, (150.0, 530.0)), seen(90.0, 435.0, (340.0, 530.0))
    loaded.baselines["workload"] = CampaignBaseline("workload", None, evidence=(before,), devices=devices)
    loaded.records["0009-look-h1"] = {"outcome": "COMPLETED"}
    monkeypatch.setattr(looks, "newest", lambda _: {1: "0009-look-h1"})
    monkeypatch.setattr(looks, "stored_record", lambda *_: look)
    assert looks.gains(loaded) == {1: pytest.approx(gain)}


def seen(least: float, mean_w: float, scale: tuple[float, float]) -> dict[str, Any]:
    """Two GPUs."""
    levels = {"waiting_w": scale[0], "working_w": scale[1]}
    devices = (busy(least, mean_w, **levels), busy(98, mean_w, 1, **levels))
    return run((least + 98) / 2, 5.0, devices=devices).model_dump(mode="json")
