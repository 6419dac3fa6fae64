"""Proposals of several sessions at once, and sweeps; what may stand in one is in test_cli_hypotheses."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.campaigns import Campaign, make_campaign

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


def swept(campaign: Campaign, *words: str) -> list[tuple[int, str, str | None]]:
    campaign.json("propose", *words)
    return [
        (h.number, h.title, h.intervention) for h in parse(campaign.progress.read_bytes(), "p").hypotheses
    ]


def test_a_sweep_is_a_hypothesis_a_value_as_the_contract_spells_it(tmp_path: Path) -> None:
    command = "python3 train.py --denoising_steps=8"
    campaign = make_campaign(tmp_path / "repo", command=command)
    assert swept(campaign, "--sweep", "--denoising_steps=4,2,1") == [
        (1, "--denoising_steps=4", "--set --denoising_steps=4"),
        (2, "--denoising_steps=2", "--set --denoising_steps=2"),
        (3, "--denoising_steps=1", "--set --denoising_steps=1"),
    ]
    titled = ("--title", "Threads", "--method", "Fewer.", "--sweep=env:OMP_NUM_THREADS=1,2")
    assert swept(campaign, *titled)[3:] == [
        (4, "Threads: OMP_NUM_THREADS=1", "--env OMP_NUM_THREADS=1"),
        (5, "Threads: OMP_NUM_THREADS=2", "--env OMP_NUM_THREADS=2"),
    ]
    assert campaign.text.count("- **Test Method**: Fewer.") == 2


def test_what_a_sweep_need_not_test_is_named_and_the_rest_is_written(tmp_path: Path) -> None:
    campaign = make_campaign(tmp_path / "repo")
    campaign.propose("--set --work=0.5")
    answer = campaign.json("propose", "--sweep", "--work=0.2,0.5,0.9")
    assert [h["intervention"] for h in answer["hypotheses"]] == ["--set --work=0.9"]
    assert answer["notes"] == [
        "--work=0.2 is left out: the command has it already",
        "--work=0.5 is left out: it is hypothesis 1 already (UNTESTED)",
    ]
    before = campaign.progress.read_bytes()
    refused = campaign.run("propose", "--sweep", "--work=0.2,0.5").expect(1)
    assert "the command has it already" in refused.err
    assert "hypothesis 1 already" in refused.err
    assert campaign.progress.read_bytes() == before


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("--sweep", "--lr=1,2"), 1, "locks"),
        (("--sweep", "--work=0.3"), 1, "one value only"),
        (("--sweep", "--work=0.3,"), 1, "empty value"),
        (("--sweep", "--work=0.3,0.4", "--set", "--steps=5"), 2, "--sweep is the change itself"),
        ((), 2, "a hypothesis needs a title"),
    ],
)
def test_a_sweep_is_written_whole_or_not_at_all(
    tmp_path: Path, words: tuple[str, ...], status: int, said: str
) -> None:
    campaign = make_campaign(tmp_path / "repo", config="locked: [--lr]\n")
    assert said in campaign.run("propose", *words).expect(status).err
    assert not campaign.progress.exists()
