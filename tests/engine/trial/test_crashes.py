"""Code of a change that crashes: mended once under the same claim, then REJECTED."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import Campaign, copied, make_replay_campaign, record

from gpudebug.edges.store.folders import LEASES

LOG = "step 1/10 loss 2.0\nTraceback (most recent call last):\n  File x\nValueError: readers must be even\n"
TITLE = "The loader reads one file at a time"


def session(name: str) -> dict[str, Any]:
    return {"env": {"GPUDEBUG_SESSION": name}}


def campaign_of(folder: Path, *outcomes: bool) -> Campaign:
    """A campaign with its baseline, whose trial's runs crash (False) or not, in this order."""
    recordings = folder / "recordings"
    record(recordings, "0001-baseline-workload", util=20, rate=10)
    for n, well in enumerate(outcomes, 3):
        ending: dict[str, Any] = {} if well else {"log": LOG, "seconds": 3, "exit_status": 1}
        record(recordings, f"{n:04}-h1", util=60, rate=30, **ending)
    made = make_replay_campaign(folder / "repo", recordings, files={"data.py": "READERS = 1\n"})
    made.json("next")
    return made


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Campaign]:
    twice = campaign_of(tmp_path_factory.mktemp("twice"), False, False)
    mended = campaign_of(tmp_path_factory.mktemp("mended"), False, True)
    for made in (twice, mended):
        made.propose("--code", TITLE)
    return {"twice": twice, "mended": mended}


@pytest.fixture
def twice(originals: dict[str, Campaign], tmp_path: Path) -> Campaign:
    return copied(originals["twice"], tmp_path / "code")


@pytest.fixture
def mended(originals: dict[str, Campaign], tmp_path: Path) -> Campaign:
    return copied(originals["mended"], tmp_path / "code")


def write(campaign: Campaign, text: str, name: str = "a") -> Path:
    worktree = Path(campaign.json("next", status=5, **session(name))["worktree"])
    (worktree / "data.py").write_text(text)
    return worktree


def verdict_in(campaign: Campaign, run: str) -> Any:
    return json.loads((campaign.folder / "runs" / run / "verdict.json").read_text())


def test_the_first_crash_is_to_be_mended_and_the_second_is_the_verdict(twice: Campaign) -> None:
    worktree = write(twice, "READERS = 3\n")
    claim = next(line for line in twice.text.splitlines() if "TESTING" in line)
    answer = twice.json("next", status=5, **session("a"))
    assert (answer["action"], answer["hypothesis"], answer["worktree"]) == ("implement", 1, str(worktree))
    assert "crashed in run 0003-h1 (exception): ValueError: readers must be even" in answer["why"]
    assert "failure class exception" in answer["brief"]
    assert "ValueError: readers must be even" in answer["brief"]
    assert "Mend the crash of 0003-h1" in answer["brief"]
    assert claim in twice.text.splitlines()
    assert (worktree / "data.py").read_text() == "READERS = 3\n"
    assert not (twice.folder / "runs" / "0003-h1" / "verdict.json").exists()
    (worktree / "data.py").write_text("READERS = 5\n")
    answer = twice.json("next", **session("a"))
    assert (answer["verdict"], answer["why"][:32]) == ("REJECTED", "outcome: CRASHED (exception): Va")
    assert "Runs: runs/0003-h1, runs/0004-h1" in twice.text
    parts = [(r["name"], r["part"]) for r in verdict_in(twice, "0004-h1")["runs"]]
    assert parts[-2:] == [("0003-h1", "crash"), ("0004-h1", "trial")]
    assert "the change crashed in run 0003-h1 (exception) before" in answer["notes"]
    assert twice.json("verify")["ok"] is True
    assert twice.json("next", status=7, **session("a"))["session_done"] is True


def test_what_was_mended_gets_its_verdict(mended: Campaign) -> None:
    worktree = write(mended, "READERS = 3\n")
    mended.json("next", status=5, **session("a"))
    (worktree / "data.py").write_text("READERS = 8\n")
    assert mended.json("next", **session("a"))["verdict"] == "VALIDATED"
    assert "runs/0003-h1, runs/0004-h1" in mended.text
    verdict = verdict_in(mended, mended.runs()[-1])
    assert [r["part"] for r in verdict["runs"]].count("crash") == 1
    patch = mended.json("show", "1")["intervention"].removeprefix("--patch ")
    assert "+READERS = 8" in (mended.folder / patch).read_text()
    assert mended.json("verify")["ok"] is True


def test_another_session_does_not_begin_at_nought(twice: Campaign) -> None:
    write(twice, "READERS = 3\n")
    twice.json("next", status=5, **session("a"))
    kept = twice.json("release", "1", **session("a"))["kept"]
    assert "+READERS = 3" in (twice.folder / kept).read_text()
    worktree = Path(twice.json("next", status=5, **session("b"))["worktree"])
    (worktree / "data.py").write_text("READERS = 7\n")
    answer = twice.json("next", **session("b"))
    assert answer["verdict"] == "REJECTED"
    assert "Runs: runs/0003-h1, runs/0004-h1" in twice.text
    assert twice.json("verify")["ok"] is True


def test_a_kill_before_the_answer_asks_all_the_same(twice: Campaign) -> None:
    """As a kill right after the crashed run was sealed leaves it: its patch named, TESTING under no lease."""
    write(twice, "READERS = 3\n")
    twice.json("next", status=5, **session("a"))
    shutil.rmtree(twice.folder / "runs" / LEASES)
    patch = next((twice.folder / "hypotheses" / "patches").iterdir()).relative_to(twice.folder)
    twice.progress.write_text(twice.text.replace("--code", f"--patch {patch}"))
    recovered = twice.json("next")
    assert recovered["action"] == "recovered"
    answer = twice.json("next", status=5, **session("b"))
    assert (answer["action"], answer["hypothesis"]) == ("implement", 1)
    assert "crashed in run 0003-h1" in answer["why"]
    assert len(twice.runs()) == 3
    assert twice.json("next", **session("b"))["verdict"] == "REJECTED"


def test_a_persons_patch_is_mended_where_it_lies(tmp_path: Path) -> None:
    campaign = campaign_of(tmp_path, False, True)
    patch = campaign.folder / "hypotheses" / "patches" / "mine.patch"
    patch.parent.mkdir(parents=True, exist_ok=True)
    text = "--- a/data.py\n+++ b/data.py\n@@ -1 +1 @@\n-READERS = 1\n+READERS = 3\n"
    patch.write_text(text)
    campaign.propose("--patch hypotheses/patches/mine.patch")
    answer = campaign.json("next", status=5)
    assert (answer["action"], answer["worktree"]) == ("implement", None)
    assert str(patch) in answer["files"]
    assert "Mend the patch of hypothesis 1, `hypotheses/patches/mine.patch`" in answer["brief"]
    assert campaign.statuses() == ["TESTING"]
    patch.write_text(text.replace("3", "8"))
    assert campaign.json("next")["verdict"] == "VALIDATED"
    assert campaign.json("verify")["ok"] is True


def test_a_flag_that_crashes_is_rejected_at_once(tmp_path: Path) -> None:
    campaign = campaign_of(tmp_path, False)
    campaign.propose("--set --lr=0.2")
    assert campaign.json("next")["verdict"] == "REJECTED"


def test_a_loss_that_code_makes_nan_is_mended_once_too(tmp_path: Path) -> None:
    recordings = tmp_path / "recordings"
    record(recordings, "0001-baseline-workload", util=20, rate=10)
    for number in (3, 4):
        record(
            recordings, f"{number:04}-h1", util=60, rate=30, losses=lambda share: "nan" if share > 0.3 else 2
        )
    campaign = make_replay_campaign(tmp_path / "repo", recordings, files={"data.py": "READERS = 1\n"})
    campaign.json("next")
    campaign.propose("--code", TITLE)
    worktree = write(campaign, "READERS = 3\n")
    answer = campaign.json("next", status=5, **session("a"))
    assert answer["why"] == "hypothesis 1 is still yours: its code made the loss NaN in run 0003-h1"
    assert "Mend what makes the loss NaN, see the log of 0003-h1" in answer["brief"]
    (worktree / "data.py").write_text("READERS = 5\n")
    answer = campaign.json("next", **session("a"))
    assert (answer["verdict"], answer["why"]) == ("REJECTED", "loss: NAN")
    assert "the change made the loss NaN in run 0003-h1 before" in answer["notes"]
    assert campaign.json("verify")["ok"] is True
