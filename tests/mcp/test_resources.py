"""Which resources there are, and that none leads out of the campaign."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("mcp")

from tests.support.campaigns import make_campaign

from gpudebug.core.errors import UsageError
from gpudebug.mcp.resources import LISTED, PROGRESS, REPORT, TEMPLATES, listed, reader_of


def test_the_newest_runs_are_listed_after_progress_and_report(tmp_path: Path) -> None:
    campaign = make_campaign(tmp_path / "repo")
    for number in range(1, LISTED + 3):
        run = campaign.folder / "runs" / f"{number:04}-h1"
        run.mkdir(parents=True)
        (run / "evidence.json").write_text("{}")
    uris = [str(resource.uri) for resource in listed(campaign.folder)]
    assert uris[:3] == [PROGRESS, REPORT, f"gpudebug://runs/{LISTED + 2:04}-h1/evidence"]
    assert len(uris) == LISTED + 2
    assert reader_of("gpudebug://runs/0001-h1/evidence", campaign.folder)().text == "{}"
    assert [t.uri_template.format(run="0001-h1") for t in TEMPLATES] == ["gpudebug://runs/0001-h1/evidence"]


def test_without_a_campaign_there_is_nothing_to_read(tmp_path: Path) -> None:
    assert listed(tmp_path) == []


@pytest.mark.parametrize(
    "uri",
    [
        "gpudebug://runs/../evidence",
        "gpudebug://runs/0001-a/../../x/evidence",
        "gpudebug://runs//evidence",
        "gpudebug://runs/0001-a/train.log",
        "file:///etc/passwd",
        "",
        "gpudebug://runs/0001-" + "a" * 10_000 + "/evidence",
    ],
)
def test_what_is_no_resource_is_refused_shortly(uri: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no resource") as e:
        reader_of(uri, tmp_path)
    assert len(str(e.value)) < 400
