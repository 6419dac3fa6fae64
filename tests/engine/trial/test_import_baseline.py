"""`gpudebug baseline --import`: runs completed under the seed's monitor, and what is no such run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.support import monitors
from tests.support.campaigns import Campaign, contents, make_replay_campaign, record

from gpudebug.core.samples.row import COLUMNS

HEADER = "elapsed,gpu_util,mem_util,mem_used_mb,mem_total_mb\n"
ROWS = "".join(f"{i * 0.5:.1f},{15 + i % 3},10,1000,16000\n" for i in range(1, 41))
LOG = "".join(f"step {i}/200 loss {2 - i / 150:.4f}\n" for i in range(1, 201))


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    record(tmp_path / "recordings", "0001-baseline-workload")
    record(tmp_path / "recordings", "0002-h1", util=60, rate=30)
    made = make_replay_campaign(tmp_path / "repo", tmp_path / "recordings")
    made.pin()
    (made.folder / "seed.csv").write_text(HEADER + ROWS)
    (made.folder / "train.log").write_text(LOG)
    return made


def test_no_session_imports_a_baseline(campaign: Campaign) -> None:
    before = contents(campaign.folder)
    words = ("baseline", "workload", "--import", "seed.csv", "--log", "train.log")
    error = campaign.json(*words, status=1, env={"GPUDEBUG_SESSION": "a"})["error"]
    assert (error["code"], error["next"]) == ("import", "gpudebug baseline measures one; a person can import")
    assert contents(campaign.folder) == before


def test_a_seed_run_becomes_the_baseline(campaign: Campaign) -> None:
    answer = campaign.json("baseline", "workload", "--import", "seed.csv", "--log", "train.log")
    assert answer["action"] == "recorded_baseline"
    baseline = campaign.json("status")["baselines"]["workload"]
    assert baseline["valid"]
    assert baseline["verified"]
    assert baseline["gpu_util"] == pytest.approx(16, abs=0.5)
    assert baseline["loss"] == "CONVERGING"
    assert campaign.runs() == ["0001-baseline-workload"]
    assert (campaign.folder / "runs" / "0001-baseline-workload" / "manifest.json").exists()
    assert campaign.text.startswith("# GPU utilization debugging: test\n")
    campaign.propose("--set --lr=0.2")
    tested = campaign.json("next")
    assert tested["action"] == "tested"
    # Between the imported 16 % and the 20 % of the run that was made beside the trial.
    assert 16 < float(tested["figures"]["gpu util before"].partition("%")[0]) < 20
    assert tested["verdict"] in ("VALIDATED", "INCONCLUSIVE")


def test_it_works_from_a_folder_below(campaign: Campaign) -> None:
    below = campaign.folder / "old"
    below.mkdir()
    (below / "seed.csv").write_text(HEADER + ROWS)
    done = Campaign(below).run("baseline", "--import", "seed.csv", "--json").expect(0)
    assert done.json["role"] == "workload"


def test_without_a_log_nothing_tells_how_it_ended(campaign: Campaign) -> None:
    answer = campaign.json("baseline", "workload", "--import", "seed.csv")
    assert answer["action"] == "recorded_baseline"
    assert "- **Training**: UNKNOWN - imported without a log" in campaign.text
    assert "SUCCESS" not in campaign.text
    assert campaign.json("verify")["ok"]


REFUSED = {
    "missing samples": (("--import", "nothing.csv"), "nothing.csv", 1),
    "a log for samples": (("--import", "train.log"), "samples CSV", 1),
    "no rows": (("--import", "header.csv"), "no sample", 1),
    "a FIFO": (("--import", "fifo"), "not a regular file", 1),
    "a missing log": (("--import", "seed.csv", "--log", "nothing.log"), "nothing.log", 1),
    "no reference": (("reference", "--import", "seed.csv"), "reference", 2),
}


@pytest.mark.parametrize(("words", "said", "status"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_completed_run_is_refused(
    campaign: Campaign, words: tuple[str, ...], said: str, status: int
) -> None:
    (campaign.folder / "header.csv").write_text(HEADER)
    os.mkfifo(campaign.folder / "fifo")
    campaign.run("status").expect(0)
    before = {k: v for k, v in contents(campaign.folder).items() if not k.startswith("runs")}
    done = campaign.run("baseline", *words).expect(status)
    (line,) = done.err.splitlines()
    assert said in line
    assert "; next: " in line
    assert {k: v for k, v in contents(campaign.folder).items() if not k.startswith("runs")} == before
    assert campaign.runs() == []


def test_a_run_that_failed_is_no_baseline(campaign: Campaign) -> None:
    (campaign.folder / "failed.log").write_text(
        "step 1 loss 1\nTraceback (most recent call last):\nKeyError: 1\n"
    )
    done = campaign.run("baseline", "--import", "seed.csv", "--log", "failed.log").expect(1)
    assert "failed (" in done.err.splitlines()[-1]
    assert campaign.json("status")["baselines"]["workload"]["valid"] is False


def test_a_secret_in_an_imported_log_stays_in_the_log(campaign: Campaign) -> None:
    token = "hf_" + "Zz9" * 12
    (campaign.folder / "train.log").write_text(f"using token {token}\n{LOG}")
    done = campaign.run("baseline", "--import", "seed.csv", "--log", "train.log", "--json").expect(0)
    assert token not in done.out + done.err + campaign.text
    run = campaign.folder / "runs" / "0001-baseline-workload"
    assert [p.name for p in run.iterdir() if p.is_file() and token in p.read_text()] == ["train.log"]


def test_another_monitors_recording_becomes_a_baseline(campaign: Campaign) -> None:
    (campaign.folder / "smi.csv").write_text(monitors.query(60, 1))
    answer = campaign.json("baseline", "--import", "smi.csv", "--log", "train.log")
    assert answer["action"] == "recorded_baseline"
    assert campaign.json("status")["baselines"]["workload"]["gpu_util"] == pytest.approx(20)
    samples = (campaign.folder / "runs" / "0001-baseline-workload" / "samples.csv").read_text()
    assert samples.startswith(",".join(COLUMNS) + "\n")
    assert campaign.json("verify")["ok"]


def test_of_two_runs_one_is_imported_by_name(campaign: Campaign) -> None:
    at = lambda t, _: monitors.Shown(60)  # noqa: E731
    text = monitors.query(60, 1) + monitors.query(60, 1, header=False, start=300, at=at)
    (campaign.folder / "two.csv").write_text(text)
    (line,) = campaign.run("baseline", "--import", "two.csv").expect(1).err.splitlines()
    assert "holds 2 runs (1: 0.0 to 59.0 s; 2: 300.0 to 359.0 s); next: say which one: --run N" in line
    assert campaign.runs() == []
    campaign.json("baseline", "--import", "two.csv", "--run", "2")
    assert campaign.json("status")["baselines"]["workload"]["gpu_util"] == pytest.approx(60)


def test_what_is_binary_is_not_imported(campaign: Campaign) -> None:
    (campaign.folder / "model.pt").write_bytes(b"PK\x03\x04" + bytes(30) + b"archive/data.pkl")
    for words in (("--import", "model.pt"), ("--import", "seed.csv", "--log", "model.pt")):
        (line,) = campaign.run("baseline", *words).expect(1).err.splitlines()
        assert "is a PyTorch checkpoint (zip), not text" in line
    assert campaign.runs() == []
    assert "--run goes with --import" in campaign.run("baseline", "--run", "1").expect(2).err
