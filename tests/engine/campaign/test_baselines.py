"""What makes a baseline count: its runs, its command, its code, its device."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest
from tests.support.campaigns import PROGRESS, SPEED, Campaign, commit_all


def rewrite(name: str, old: str, new: str) -> Callable[[Campaign], object]:
    def change(c: Campaign) -> None:
        path = c.folder / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    return change


STALE = {
    "a tracked file": (rewrite("train.py", "2.0 - 1.5", "2.0 - 1.4"), "tree"),
    "a new module beside it": (lambda c: (c.folder / "models.py").write_text("x = 1\n"), "tree"),
    "a deleted file": (lambda c: (c.folder / "helper.py").unlink(), "tree"),
    "the command": (rewrite("gpudebug.yaml", "--work=0.2", "--work=0.3"), "command"),
    "a variable": (rewrite("gpudebug.yaml", "  timeout: 60s", "  timeout: 60s\n  env: {A: b}"), "command"),
    "the device": (rewrite("gpudebug.yaml", f"@{SPEED}x", "@61x"), "device"),
}


def progress_committed(c: Campaign) -> None:
    commit_all(c.folder, "Progress so far")


def outputs_written(c: Campaign) -> None:
    for name in ("outputs/model.bin", "outputs/code/train.py", "wandb/run.log", "checkpoint.pt"):
        (c.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (c.folder / name).write_text("written by the training\n")


def committed_as_it_was(c: Campaign) -> None:
    (c.folder / "train.py").touch()
    commit_all(c.folder, "Nothing of the code")


STILL_VALID = {
    "the progress file committed": progress_committed,
    "outputs of the training": outputs_written,
    "a commit without a change": committed_as_it_was,
    "a goal in other words": rewrite("gpudebug.yaml", "Keep the device busy.", "Faster!"),
}


@pytest.mark.parametrize(("change", "what"), STALE.values(), ids=STALE)
def test_a_stale_baseline_is_recorded_again_and_says_why(
    recorded: Campaign, change: Callable[[Campaign], object], what: str
) -> None:
    change(recorded)
    status = recorded.json("status")
    assert status["next"]["action"] == "record_baseline"
    assert f"{what} changed since it was recorded" in status["next"]["why"]
    assert status["baselines"]["workload"]["valid"] is False
    assert "stale" in recorded.run("status").out
    recorded.pin()
    answer = recorded.json("next")
    assert (answer["action"], answer["role"]) == ("recorded_baseline", "workload")
    assert what in answer["why"]
    assert recorded.runs() == [f"000{number}-baseline-workload" for number in (1, 2, 3, 4)]
    assert recorded.json("status")["next"]["action"] == "propose"


@pytest.mark.parametrize("change", STILL_VALID.values(), ids=STILL_VALID)
def test_a_baseline_outlives_what_does_not_concern_it(
    recorded: Campaign, change: Callable[[Campaign], object]
) -> None:
    change(recorded)
    assert recorded.json("status")["next"]["action"] == "propose"


def test_figures_edited_after_the_fact_are_unverified(recorded: Campaign) -> None:
    recorded.propose("--set --lr=0.2")
    recorded.json("next")
    assert recorded.json("status")["hypotheses"][0]["verified"] is True
    rewrite(PROGRESS, "GPU util after: ", "GPU util after: 1")(recorded)
    assert recorded.json("status")["hypotheses"][0]["verified"] is False
    assert recorded.json("next", status=5)["action"] == "propose"


def test_without_its_run_folders_a_campaign_claims_nothing(recorded: Campaign) -> None:
    recorded.propose("--set --lr=0.2")
    recorded.json("next")
    shutil.rmtree(recorded.folder / "runs")
    status = recorded.json("status")
    assert status["hypotheses"][0]["verified"] is False
    assert status["next"]["action"] == "record_baseline"
    assert "is not here" in status["next"]["why"]


@pytest.mark.parametrize("name", ["run.json", "evidence.json"])
def test_a_run_folder_that_cannot_be_read_is_no_evidence(recorded: Campaign, name: str) -> None:
    (recorded.folder / "runs" / "0001-baseline-workload" / name).write_bytes(b"{\xff")
    done = recorded.run("status")
    assert done.status in (0, 1)
    assert "Traceback" not in done.err
    if done.status == 0:
        assert "record_baseline" in done.out
    else:
        assert name in done.err
