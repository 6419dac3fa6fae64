"""`baseline --aa`: the workload against itself gives the noise, and counts as neither baseline nor trial."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import (
    Campaign,
    commit_all,
    copied,
    killed_at_the_end,
    make_replay_campaign,
    record,
    wait_for,
)

CRASH = "step 1/9 loss 2.0\nTraceback (most recent call last):\nValueError: bad shape\n"
LONG = 2400.0
"""Seconds of a recording that does not end by itself while a test lasts."""


def make(folder: Path, *aa: float, last: float = 40.0, **more: Any) -> Campaign:
    """A campaign with A/A runs to come; the last but one takes `last` seconds."""
    recordings = folder / "recordings"
    record(recordings, "0001-baseline-workload", util=20, rate=10, seconds=40)
    for i, util in enumerate(aa):
        seconds = last if i == len(aa) - 2 else 40.0
        record(recordings, f"{i + 2:04}-aa", util=util, **{"rate": 10 + 0.1 * i, "seconds": seconds, **more})
    return make_replay_campaign(folder / "repo", recordings)


@pytest.fixture(scope="session")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Campaign, Any]:
    """A campaign that was new before its A/A, and the answer."""
    campaign = make(tmp_path_factory.mktemp("aa"), 20.5, 19.5, 20.1)
    return campaign, campaign.json("baseline", "--aa", "--runs", "2")


@pytest.fixture
def done(first: tuple[Campaign, Any], tmp_path: Path) -> Campaign:
    return copied(first[0], tmp_path / "repo")


def test_the_baseline_comes_first_and_the_noise_is_told(first: tuple[Campaign, Any]) -> None:
    campaign, answer = first
    assert [r["role"] for r in records(campaign)] == [*["baseline-workload"] * 2, "aa", "aa"]
    assert answer["notes"] == ["the baseline was recorded first: not recorded yet"]
    assert answer["baseline_runs"] == ["0001-baseline-workload", "0002-baseline-workload"]
    assert answer["runs"] == ["0003-aa", "0004-aa"]
    assert (answer["action"], answer["verdict"]) == ("recorded_aa", "REJECTED")
    low, high = answer["delta_ci"]
    assert low < answer["delta_pp"] < high
    assert answer["delta_pp"] == pytest.approx(0.0, abs=0.5)
    assert answer["throughput_ci"][0] < answer["throughput_ratio"] < answer["throughput_ci"][1]
    util, rate = answer["resolution"]["figures"]
    assert (util["runs"], rate["runs"]) == (4, 4)
    # 20, 20, 20.5 and 19.5.
    assert util["own_sd"] == pytest.approx(0.5, abs=0.2)
    assert 0 < util["told"] < util["passed"]
    assert rate["told"] > 1


def records(campaign: Campaign) -> list[Any]:
    return [
        json.loads((campaign.folder / "runs" / name / "run.json").read_text()) for name in campaign.runs()
    ]


def test_it_is_neither_baseline_nor_trial(done: Campaign) -> None:
    status = done.json("status")
    assert "aa" not in done.text
    assert status["baselines"]["workload"]["valid"]
    assert status["baselines"]["workload"]["runs"] == ["0001-baseline-workload", "0002-baseline-workload"]
    assert status["next"]["action"] == "propose"
    assert status["budget"]["hypotheses_used"] == 0
    held = sum(r["duration_s"] for r in records(done))
    assert status["budget"]["device_time_used_s"] == pytest.approx(held, abs=0.2)
    assert status["resolution"]["aa_runs"] == 2
    done.run("verify").expect(0)


def test_more_runs_are_added_and_the_text_says_what_they_tell(done: Campaign) -> None:
    said = done.run("baseline", "--aa").expect(0).out
    assert "A/A of workload: 3 runs against the 2 of the baseline, with nothing changed" in said
    assert re.search(r"^Found    gpu_util [+-]0\.\dpp \(95% CI ", said, flags=re.M)
    assert re.search(
        r"^Noise    [34]\.\dpp of gpu_util, .*\(mostly assumed: 5 runs, 3 of them A/A\)$", said, flags=re.M
    )
    assert re.search(
        r"^Detectable effect \(80 % power\): \d+\.\dpp of gpu_util, 1\.\d\dx of throughput", said, flags=re.M
    )
    assert re.search(r"^Verdict  REJECTED: ", said, flags=re.M)
    assert "a false verdict" not in said
    assert done.runs()[-1] == "0005-aa"


def test_other_code_wants_a_baseline_and_an_aa_of_its_own(done: Campaign) -> None:
    (done.folder / "train.py").write_text("# other code\n")
    commit_all(done.folder)
    assert done.json("status")["resolution"] is None
    answer = done.json("baseline", "--aa")
    assert answer["notes"] == ["the baseline was recorded first: tree changed since it was recorded"]
    assert answer["baseline_runs"] == ["0005-baseline-workload", "0006-baseline-workload"]
    assert answer["runs"] == ["0007-aa", "0008-aa", "0009-aa"]
    assert answer["resolution"]["aa_runs"] == 3


def test_a_difference_that_is_none_is_called_false(tmp_path: Path) -> None:
    campaign = make(tmp_path, 70.0, 70.4, rate=35)
    record(tmp_path / "recordings", "0009-aa", util=20, rate=10, seconds=40)
    said = campaign.run("baseline", "--aa").expect(0).out
    assert "Verdict  VALIDATED" in said
    assert "This is a false verdict: do not trust this campaign's verdicts on this machine." in said


def test_one_that_fails_is_said_and_not_counted(tmp_path: Path) -> None:
    campaign = make(tmp_path, 20.0, log=CRASH, exit_status=1)
    failed = campaign.run("baseline", "--aa").expect(1)
    assert "the workload itself does not complete" in failed.err
    assert "bad shape" in failed.err
    status = campaign.json("status")
    assert status["next"]["action"] == "propose"
    assert status["resolution"]["aa_runs"] == 0


@pytest.fixture(scope="session")
def original_slow(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """A campaign with a baseline and one A/A run; the second takes long, the third does not."""
    campaign = make(tmp_path_factory.mktemp("slow"), 20.5, 19.5, 20.1, last=LONG)
    campaign.json("baseline", "--aa", "--runs", "1")
    return campaign


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_cut_off_in_the_middle(original_slow: Campaign, tmp_path: Path, number: signal.Signals) -> None:
    campaign = copied(original_slow, tmp_path / "repo")
    process = campaign.start("baseline", "--aa", "--runs", "2")
    with killed_at_the_end(process):
        wait_for((campaign.folder / "runs" / "0004-aa" / "samples.csv").exists)
        assert "run 0004-aa is under way" in campaign.json("status")["next"]["why"]
        os.kill(process.pid, number)
        process.communicate(timeout=60)
    assert process.returncode == (130 if number is signal.SIGINT else -9)
    if number is signal.SIGKILL:
        assert campaign.json("next")["action"] == "recovered"
    status = campaign.json("status")
    assert status["next"]["action"] == "propose"
    assert status["resolution"]["aa_runs"] == 1
    assert (records(campaign)[3]["role"], records(campaign)[3]["outcome"]) == ("aa", "INTERRUPTED")
    # One of two is there already.
    assert campaign.json("baseline", "--aa", "--runs", "2")["runs"] == ["0003-aa", "0005-aa"]


def test_an_imported_baseline_has_no_like(tmp_path: Path) -> None:
    campaign = make(tmp_path)
    rows = "".join(f"{i / 2},{30 + i % 2},10,2048,81920\n" for i in range(1, 60))
    (tmp_path / "gpu.csv").write_text("elapsed,gpu_util,mem_util,mem_used_mb,mem_total_mb\n" + rows)
    campaign.json("baseline", "--import", str(tmp_path / "gpu.csv"))
    done = campaign.run("baseline", "--aa").expect(1)
    assert "imported" in done.err
    assert "gpudebug baseline workload, then gpudebug baseline --aa" in done.err
    assert campaign.runs() == ["0001-baseline-workload"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("reference", "--aa"), "runs the workload itself"),
        (("--aa", "--import", "x.csv"), "runs the workload itself"),
        (("--runs", "3"), "--runs goes with --aa"),
        (("--aa", "--runs", "0"), "--runs"),
    ],
)
def test_what_does_not_go_together(done: Campaign, words: tuple[str, ...], said: str) -> None:
    before = done.runs()
    assert said in done.run("baseline", *words).expect(2).err
    assert done.runs() == before


def test_a_run_without_a_window_makes_no_figure(tmp_path: Path) -> None:
    campaign = make(tmp_path, 20.0, seconds=1.0)
    answer = campaign.json("baseline", "--aa")
    assert (answer["verdict"], answer["difference"], answer["delta_ci"]) == ("INCONCLUSIVE", None, None)
    util = answer["resolution"]["figures"][0]
    assert util["runs"] == 2
    assert any("steady window" in line for line in answer["advice"])


def test_a_session_measures_the_base_whatever_lies_in_the_checkout(done: Campaign) -> None:
    (done.folder / "train.py").write_text("print('edited')\n")
    answer = done.json("baseline", "--aa", "--runs", "1", env={"GPUDEBUG_SESSION": "a"})
    assert answer["notes"] == []
    record = json.loads((done.folder / "runs" / answer["runs"][-1] / "run.json").read_text())
    assert Path(record["cwd"]).name == "base"
