"""A session's leases count from its last command, whatever that was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.campaigns import Campaign

from gpudebug.edges.store import leases
from gpudebug.engine.campaign.renewal import renew

SINCE = "2026-11-21T10:00:00.000000+00:00"


def renewed(folder: Path, number: int) -> float:
    return leases.read(folder)[number].renewed.boottime_s


@pytest.fixture
def folder(recorded: Campaign) -> Path:
    """Leases of two sessions and a person, all from long ago."""
    folder = recorded.folder / "runs" / ".leases" / "test"
    for number, session in ((1, "a"), (2, "b"), (3, None)):
        leases.take(folder, number, session, SINCE)
        path = folder / f"h{number}.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"boottime_s": 1.0}))
    return folder


@pytest.mark.parametrize("command", [["status"], ["-C", ".", "status", "--json"], ["show", "1"]])
def test_every_command_of_a_session_renews_its_leases_alone(
    recorded: Campaign, folder: Path, command: list[str]
) -> None:
    recorded.run(*command, env={"GPUDEBUG_SESSION": "a"})
    assert [renewed(folder, n) > 1.0 for n in (1, 2, 3)] == [True, False, False]


def test_a_person_renews_nothing(recorded: Campaign, folder: Path) -> None:
    recorded.run("status")
    assert [renewed(folder, n) for n in (1, 2, 3)] == [1.0, 1.0, 1.0]


def test_outside_a_campaign_there_is_nothing_to_renew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUDEBUG_SESSION", "a")
    renew(tmp_path)
    assert list(tmp_path.iterdir()) == []
