"""The settings of agents: written where there are none, never changed where there are, and checked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.campaigns import Campaign, make_campaign

from gpudebug.core.agents.setups import SETUPS
from gpudebug.core.errors import StoreError, UsageError
from gpudebug.edges import store
from gpudebug.engine.agents.setup_files import write
from gpudebug.engine.campaign.measured_code import look
from gpudebug.engine.tools.doctor import of_agent
from gpudebug.engine.tools.init import init


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    return make_campaign(tmp_path / "r")


def results(campaign: Campaign, name: str) -> dict[str, str]:
    return {check.name: check.result for check in of_agent(campaign.folder, name).checks}


@pytest.mark.parametrize("name", sorted(SETUPS))
def test_what_init_writes_doctor_finds(campaign: Campaign, name: str) -> None:
    before = results(campaign, name)
    assert before["instructions"] == "failed"
    assert all(before[file.path] == "failed" for file in SETUPS[name])
    assert not of_agent(campaign.folder, name).ok
    code = look(store.Workspace(campaign.folder), campaign.progress).tree
    answer = init(campaign.folder, command=None, agent=[name])
    assert {str(campaign.folder / file.path) for file in SETUPS[name]} <= set(answer.files)
    after = results(campaign, name)
    assert after["instructions"] == "ok"
    assert all(after[file.path] == "ok" for file in SETUPS[name])
    # No baseline is measured again because an agent was set up.
    assert look(store.Workspace(campaign.folder), campaign.progress).tree == code
    assert init(campaign.folder, command=None, agent=[name]).files == ()


def test_a_file_of_others_stays_and_what_to_add_is_printed(campaign: Campaign) -> None:
    path = campaign.folder / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text('{"model": "mine"}  // as I like it\n')
    before = path.read_bytes()
    notes = init(campaign.folder, command=None, agent=["claude"]).notes
    assert path.read_bytes() == before
    [note] = [note for note in notes if "stays as it is" in note]
    assert json.loads(note.partition("add to it: ")[2]) == SETUPS["claude"][0].wanted
    [check] = [c for c in of_agent(campaign.folder, "claude").checks if c.name == ".claude/settings.json"]
    assert check.result == "failed"
    assert check.next is not None
    assert check.next.startswith("add to it: {")


def test_a_session_grants_itself_nothing(campaign: Campaign) -> None:
    answer = init(campaign.folder, command=None, agent=["claude"], session="a1")
    assert [Path(file).name for file in answer.files] == ["CLAUDE.md"]
    assert sum("is for a person to write" in note for note in answer.notes) == 2
    assert not (campaign.folder / ".claude").exists()


def test_a_link_that_leads_out_is_refused(campaign: Campaign, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (campaign.folder / ".codex").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError):
        write(campaign.folder, ["codex"], None)
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert results(campaign, "codex")[".codex/config.toml"] == "failed"


def test_an_agent_that_is_none_is_a_usage_error(campaign: Campaign) -> None:
    with pytest.raises(UsageError, match="unknown agent 'emacs'"):
        of_agent(campaign.folder, "emacs")
    assert "leave the other options out" in campaign.run("doctor", "--agent", "claude", "--ask").expect(2).err
    assert campaign.json("doctor", "--agent", "claude", status=1)["ok"] is False
