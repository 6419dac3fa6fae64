"""One session: the agent's command and environment, its transcript, what is made of its end."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import Campaign, environment

from gpudebug.core.campaign.loop_limits import Did
from gpudebug.core.errors import LaunchError, UsageError
from gpudebug.core.words import Outcome
from gpudebug.edges import store
from gpudebug.engine.agents import session as agentsession
from gpudebug.engine.agents.session import AgentCommand, Session, abandon, agent_of, begin, run, settle, state


@pytest.mark.parametrize(
    ("command", "argv", "variables"),
    [
        ("sh -c 'a | b'", ("sh", "-c", "a | b"), {}),
        ("A=1 B='x y' sh \\\n --flag", ("sh", "--flag"), {"A": "1", "B": "x y"}),
        ('sh "a b" c\\ d', ("sh", "a b", "c d"), {}),
    ],
)
def test_a_command_is_split_as_a_shell_would(
    tmp_path: Path, command: str, argv: tuple[str, ...], variables: dict[str, str]
) -> None:
    agent = agent_of(command, tmp_path, 60, os.environ)
    assert agent.argv == argv
    assert {k: agent.env[k] for k in variables} == variables


@pytest.mark.parametrize("command", ["", "  ", "A=1", "sh 'open", "sh $HOME", "sh > log", "sh # x"])
def test_what_only_a_shell_could_do_is_refused(tmp_path: Path, command: str) -> None:
    with pytest.raises(UsageError) as caught:
        agent_of(command, tmp_path, 60, os.environ)
    assert "--agent" in caught.value.message
    assert caught.value.next


def test_an_agent_that_is_not_there_is_known_before_anything_is_done(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="no-such-agent: command not found"):
        agent_of("no-such-agent", tmp_path, 60, os.environ)


def test_it_inherits_no_other_sessions_name_and_finds_gpudebug(tmp_path: Path) -> None:
    env = {"PATH": "/usr/bin:/bin", "CLAUDE_CODE_SESSION_ID": "x", "GPUDEBUG_SESSION": "y", "HOME": "/h"}
    agent = agent_of("sh", tmp_path, 60, env)
    assert set(agent.env) == {"PATH", "HOME"}
    beside = Path(sys.executable).parent
    expected = ["/usr/bin", "/bin", *([str(beside)] if (beside / "gpudebug").exists() else [])]
    assert agent.env["PATH"].split(":") == expected


@pytest.fixture
def remarks() -> list[str]:
    return []


def session_in(
    campaign: Campaign, agent: AgentCommand, remarks: list[str], name: str = "loop-20261121-1"
) -> Session:
    folder = store.Sessions(store.Workspace(campaign.folder)).new(name)
    return begin(folder, agent, [], campaign.folder, lambda _: None, remarks.append)


def agent_in(campaign: Campaign, statement: str, timeout: float = 60, **env: str) -> AgentCommand:
    argv = (sys.executable, "-c", statement)
    return AgentCommand(argv, {**environment(), **env}, campaign.folder, timeout)


def record_of(session: Session) -> dict[str, Any]:
    return dict(json.loads(session.folder.record.read_text()))


def test_what_it_says_is_kept_without_secrets_and_without_end(
    recorded: Campaign, remarks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agentsession, "MOST_TRANSCRIPT", 1000)
    agent = agent_in(
        recorded, "print(input(), 's3cret-value\\nGröße'); print('x' * 5000)", MY_TOKEN="s3cret-value"
    )
    session = session_in(recorded, agent, remarks)
    ended = run(session, agent, "do s3cret-value\n")
    assert (ended.outcome, record_of(session)["exit_status"]) == (Outcome.COMPLETED, 0)
    said = session.folder.transcript.read_text()
    assert said.startswith("do [redacted] [redacted]\nGröße\nxxx")
    assert said.endswith("x\n[the transcript is cut here]\n")
    assert 1000 <= len(said.encode()) < 1100
    assert session.folder.brief.read_text() == "do [redacted]\n"
    assert "end" not in record_of(session)


@pytest.mark.parametrize(
    ("finished", "verdict", "did"), [(True, None, Did.NOTHING), (False, None, Did.FAILED)]
)
def test_a_session_without_a_trace(
    recorded: Campaign, remarks: list[str], finished: bool, verdict: str | None, did: Did
) -> None:
    session = session_in(recorded, agent_in(recorded, ""), remarks)
    before = state(session.load().entries.document)
    assert settle(session, before, finished=finished) is did
    assert (record_of(session)["verdict"], record_of(session)["proposed"]) == (verdict, [])
    assert record_of(session)["end"]


def test_an_agent_that_failed_after_its_verdict_did_something(told: Campaign, remarks: list[str]) -> None:
    session = session_in(told, agent_in(told, ""), remarks)
    before = state(session.load().entries.document)
    told.json("next", env={"GPUDEBUG_SESSION": session.name})
    assert settle(session, before, finished=False) is Did.SOMETHING
    assert (record_of(session)["tested"], record_of(session)["verdict"]) == (2, "REJECTED")


def test_a_change_of_an_agent_that_failed_is_kept_and_not_tested(
    recorded: Campaign, remarks: list[str]
) -> None:
    session = session_in(recorded, agent_in(recorded, ""), remarks)
    env = {"GPUDEBUG_SESSION": session.name}
    recorded.propose("--code", "Half done")
    before = state(session.load().entries.document)
    worktree = Path(recorded.json("next", status=5, env=env)["worktree"])
    (worktree / "train.py").write_text("half = 1\n")
    abandon(session, stop=True)
    assert recorded.statuses() == ["UNTESTED"]
    assert record_of(session)["kept"] == "hypotheses/patches/h1-half-done.patch"
    assert (record_of(session)["outcome"], record_of(session)["released"]) == ("INTERRUPTED", 1)
    assert state(session.load().entries.document) == before
    assert not worktree.exists()
    assert any("its change is kept in hypotheses/patches/h1-half-done.patch" in line for line in remarks)
