"""Which resources and prompts there are, and that no resource leads out of the campaign."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("mcp")

from mcp_types import TextContent
from tests.support.campaigns import make_campaign

from gpudebug.core.errors import UsageError
from gpudebug.mcp.resources import LISTED, PROGRESS, REPORT, TEMPLATES, listed, prompt, prompts, reader_of
from gpudebug.mcp.tools import TOOLS


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


def test_each_prompt_names_tools_that_every_client_has() -> None:
    tools = {tool.name for tool in TOOLS}
    for shown in prompts():
        found = prompt(shown.name)
        assert found is not None
        (message,) = found.messages
        assert isinstance(message.content, TextContent) and message.role == "user"
        text = message.content.text
        assert "`gpudebug " not in text and "exit status" not in text
        called = set(re.findall(r"[Cc]all `([a-z]+)`", text))
        assert called and called <= tools
        assert len(text) < 1200


def test_another_name_is_no_prompt() -> None:
    assert prompt("x") is None
