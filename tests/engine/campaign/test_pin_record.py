"""The pinned settings as they are read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.campaigns import Campaign, copied, make_campaign

from gpudebug.engine.campaign import pin_record
from gpudebug.engine.campaign.load import load


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    return make_campaign(tmp_path / "repo")


def test_a_copy_elsewhere_keeps_its_pin(campaign: Campaign, tmp_path: Path) -> None:
    campaign.pin()
    assert copied(campaign, tmp_path / "copy").json("settings")["differences"] == []


def test_the_pin_has_a_format(campaign: Campaign) -> None:
    campaign.pin()
    assert json.loads(load(campaign.folder).setup.compared.file.read_text())["format"] == pin_record.FORMAT
