"""A campaign of 0.1.0 whose progress file is changed by one test and whole again for the next."""

from __future__ import annotations

import pytest
from tests.support.old_campaign import OldCampaign, restore


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[OldCampaign, str]:
    campaign = restore(tmp_path_factory.mktemp("kept") / "campaign")
    return campaign, campaign.text


@pytest.fixture
def sound(kept: tuple[OldCampaign, str]) -> OldCampaign:
    """One campaign for all: only its progress file is changed, and put back."""
    campaign, text = kept
    campaign.progress.write_text(text, encoding="utf-8")
    return campaign
