"""Proposals of several sessions at once; what may stand in one is in test_cli_hypotheses."""

from __future__ import annotations

from pathlib import Path

from tests.support.campaigns import make_campaign

from gpudebug.core.progress import parse


def test_proposals_at_the_same_moment_all_get_a_number_of_their_own(tmp_path: Path) -> None:
    campaign = make_campaign(tmp_path / "repo")
    processes = [
        campaign.start("propose", "--title", f"Cause {n}", "--set", f"--work=0.{n}") for n in range(3, 9)
    ]
    for process in processes:
        _, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
    entries = parse(campaign.progress.read_bytes(), "progress.md").hypotheses
    assert [e.number for e in entries] == [1, 2, 3, 4, 5, 6]
    assert {e.title for e in entries} == {f"Cause {n}" for n in range(3, 9)}
    assert campaign.text.count("# GPU utilization debugging") == 1


def test_of_the_same_proposals_at_the_same_moment_one_is_taken(tmp_path: Path) -> None:
    campaign = make_campaign(tmp_path / "repo")
    processes = [campaign.start("propose", "--title", f"By {n}", "--set", "--work=0.9") for n in range(5)]
    statuses = []
    for process in processes:
        process.communicate(timeout=60)
        statuses.append(process.returncode)
    assert sorted(statuses) == [0, 1, 1, 1, 1]
    assert len(parse(campaign.progress.read_bytes(), "progress.md").hypotheses) == 1
