"""Files of a campaign for those who have no shell."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.campaigns import PROGRESS, make_campaign

from gpudebug.core.errors import GpudebugError
from gpudebug.engine.status.texts import evidence_text, progress_text


def test_progress_file_and_evidence_are_read_as_they_are(tmp_path: Path) -> None:
    campaign = make_campaign(tmp_path / "repo", progress="# GPU utilization debugging: test\n\n- é\n")
    run = campaign.folder / "runs" / "0001-a"
    run.mkdir(parents=True)
    (run / "evidence.json").write_text('{"x": 1}')
    assert progress_text(campaign.folder) == campaign.text
    assert evidence_text(campaign.folder, "0001-a") == '{"x": 1}'


def test_a_link_out_of_the_campaign_is_not_followed(tmp_path: Path) -> None:
    campaign = make_campaign(tmp_path / "repo")
    (tmp_path / "secret").write_text("x")
    for path, read in (
        (
            campaign.folder / "runs" / "0001-a" / "evidence.json",
            lambda: evidence_text(campaign.folder, "0001-a"),
        ),
        (campaign.folder / PROGRESS, lambda: progress_text(campaign.folder)),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(tmp_path / "secret")
        with pytest.raises(GpudebugError):
            read()
