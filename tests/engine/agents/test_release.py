"""A claim that is given back: the hypothesis is free, and what was done under it is kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.campaigns import Campaign


@pytest.fixture
def claimed(recorded: Campaign) -> tuple[Campaign, Path]:
    """A campaign in which session a writes the change of hypothesis 1."""
    recorded.propose("--code", "The helper is slow")
    answer = recorded.json("next", status=5, env={"GPUDEBUG_SESSION": "a"})
    return recorded, Path(answer["worktree"])


def test_the_work_is_kept_as_a_patch(claimed: tuple[Campaign, Path]) -> None:
    campaign, worktree = claimed
    (worktree / "helper.py").write_text("y = 2\n")
    answer = campaign.json("release", "1", env={"GPUDEBUG_SESSION": "a"})
    assert "+y = 2" in (campaign.folder / answer["kept"]).read_text()
    assert campaign.statuses() == ["UNTESTED"]
    assert not worktree.exists()


def test_a_person_gives_back_anybodys(claimed: tuple[Campaign, Path]) -> None:
    campaign, _ = claimed
    assert campaign.json("release", "1")["kept"] is None
    assert campaign.json("release", "1", status=2)["error"]["message"].endswith(
        "is UNTESTED: no session holds it"
    )
    assert "there is no hypothesis 7" in campaign.json("release", "7", status=2)["error"]["message"]


def test_a_claim_to_implement_is_given_back_while_another_is_tested(
    claimed: tuple[Campaign, Path], tmp_path: Path
) -> None:
    campaign, _ = claimed
    campaign.propose("--set --lr=0.2", "Another")
    process = campaign.start("next", env={"GPUDEBUG_SESSION": "b"})
    while not list((campaign.folder / "runs").glob("*-h2")):
        assert process.poll() is None
    assert campaign.json("release", "1", env={"GPUDEBUG_SESSION": "a"})["action"] == "released"
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert campaign.statuses()[0] == "UNTESTED"
