"""What a campaign is read from, and what reading it leaves alone."""

from __future__ import annotations

from pathlib import Path

from tests.support.campaigns import Campaign, make_replay_campaign

BY_HAND = """\
# GPU utilization debugging: by hand

## Baselines

### Baseline: workload
- **Command**: `python train.py`
- **GPU util**: 27.4%
- **Throughput**: 6.1 steps/s

## Hypotheses

### Hypothesis 1: Written by an agent
- **Status**: VALIDATED
- **Result**:
  - GPU util before: 27.4%
  - GPU util after: 99.0%
  - Improvement: +71.6pp

### Hypothesis 2: With runs that never were
- **Status**: VALIDATED
- **Result**:
  - GPU util after: 99.0%
  - Improvement: +71.6pp
  - Runs: runs/0042-h2
"""


def test_numbers_written_by_hand_are_unverified_and_never_compared_against(
    tmp_path: Path, recordings: Path
) -> None:
    campaign = make_replay_campaign(tmp_path / "repo", recordings, progress=BY_HAND)
    status = campaign.json("status")
    assert status["baselines"]["workload"]["verified"] is False
    assert status["baselines"]["workload"]["gpu_util"] is None
    assert status["next"]["action"] == "record_baseline"
    assert "no runs" in status["next"]["why"]
    for hypothesis in status["hypotheses"]:
        assert hypothesis["verified"] is False
        assert hypothesis["delta_pp"] is None
    assert status["budget"]["hypotheses_used"] == 2
    text = campaign.run("status").expect(0).out
    assert text.count("UNVERIFIED") == 3
    assert "UNVERIFIED +71.6pp" in text
    campaign.json("next")
    # A verdict written by hand counts as tested: nothing is solved, a new hypothesis is asked for.
    assert campaign.json("next", status=5)["action"] == "propose"
    campaign.config.write_text(campaign.config.read_text())
    after = campaign.text
    assert "27.4%" not in after.partition("## Hypotheses")[0]
    assert after.partition("## Hypotheses")[2] == BY_HAND.partition("## Hypotheses")[2]


def git_state(campaign: Campaign) -> dict[Path, bytes]:
    """All of .git but the objects, and what gpudebug keeps under a name of its own."""
    folder = campaign.folder / ".git"
    apart = (folder / "objects", folder / "refs" / "gpudebug", folder / "gpudebug")
    files = (p for p in folder.rglob("*") if p.is_file() and not any(p.is_relative_to(f) for f in apart))
    return {p: p.read_bytes() for p in files}


def test_a_dirty_tree_is_measured_and_never_touched(tmp_path: Path, recordings: Path) -> None:
    campaign = make_replay_campaign(tmp_path / "repo", recordings)
    (campaign.folder / "train.py").write_text("print('work in progress')\n")
    (campaign.folder / "notes.txt").write_text("mine\n")
    before = git_state(campaign)
    campaign.json("next")
    campaign.propose("--set --lr=0.2")
    campaign.json("next")
    campaign.json("status")
    assert git_state(campaign) == before
    assert (campaign.folder / "train.py").read_text() == "print('work in progress')\n"
    assert (campaign.folder / "notes.txt").read_text() == "mine\n"
