"""What recorded looks say; that they are made, and read back, is in test_screen.py."""

from __future__ import annotations

from tests.support.campaigns import Campaign

from gpudebug.engine.campaign.load import load
from gpudebug.engine.diagnosis import looks
from gpudebug.engine.hypotheses.propose import propose


def test_without_a_look_nothing_is_known(waiting: Campaign) -> None:
    propose(waiting.folder, title="One", description="", method="", set_=["--lr=0.2"])
    loaded = load(waiting.folder)
    assert looks.newest(loaded) == {}
    assert looks.gains(loaded) == {}
