"""`diagnose --layer`: one run more that bounds a layer, of which no verdict takes notice."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import (
    Campaign,
    copied,
    killed_at_the_end,
    make_campaign,
    make_replay_campaign,
    record,
    wait_for,
)

from gpudebug.core.change.intervention import parse
from gpudebug.core.diagnosis.layer_flags import KnownCommand
from gpudebug.core.diagnosis.layers import LayerError
from gpudebug.core.errors import ConfigError, UsageError
from gpudebug.engine.campaign.load import load
from gpudebug.engine.diagnosis.layer_run import notes_on_locks, record_layer
from gpudebug.engine.diagnosis.layers import results

COMMAND = f"{sys.executable} train.py --lr=0.1 --work=0.2"
NEVER = "--eval_every=1000000000"
LONG = 2400.0
"""Seconds of a recording that does not end by itself while a test lasts."""

TRAINING = """
import argparse, time, torch
from torch.utils.data import DataLoader, Dataset
parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=4)
parser.add_argument("--steps", type=int, default=120)
options = parser.parse_args()
torch.set_num_threads(1)
class Remote(Dataset):
    def __len__(self): return 40 * options.batch_size
    def __getitem__(self, i):
        time.sleep(0.005)
        return {"x": torch.randn(16), "y": i % 2}
model = torch.nn.Linear(16, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = DataLoader(Remote(), batch_size=options.batch_size, num_workers=1, persistent_workers=True)
step = 0
while step < options.steps:
    for batch in loader:
        x, y = batch.pop("x"), batch.pop("y")
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        step += 1
        print(f"step {step}/{options.steps} loss {2 - step / 100:.4f}", flush=True)
print("epochs of", step // 3)
"""


def quietly(*_: object) -> None:
    """Takes no notice of a run under way."""


BASELINE = ["0001-baseline-workload", "0002-baseline-workload"]


def run_json(campaign: Campaign, name: str, file: str = "run.json") -> Any:
    return json.loads((campaign.folder / "runs" / name / file).read_text())


@pytest.fixture(scope="module")
def replayed_once(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """A baseline of recordings, and one layer test in it: without evaluation it trains 1.3 times as fast."""
    folder = tmp_path_factory.mktemp("layers")
    recordings = folder / "recordings"
    record(recordings, "0001-baseline-workload", util=20, rate=10)
    record(recordings, "0003-layer-quiet", util=26, rate=13)
    record(recordings, "0003-layer-double-batch", util=20, rate=10, seconds=LONG)
    campaign = make_replay_campaign(
        folder / "repo",
        recordings,
        command=f"{COMMAND} --eval_every=10 --batch_size=8",
        config="locked: [--batch_size]\nreference: {command: python train.py --lr=0.1 --batch_size=64}\n",
    )
    campaign.json("baseline", "workload")
    return campaign


@pytest.fixture(scope="module")
def quieted(replayed_once: Campaign, tmp_path_factory: pytest.TempPathFactory) -> tuple[Campaign, Any]:
    made = copied(replayed_once, tmp_path_factory.mktemp("quieted") / "repo")
    return made, made.json("diagnose", "--layer", "quiet")


@pytest.mark.parametrize(
    ("flag", "locked", "noted"),
    [
        ("--ims-per-batch", "--batch_size", True),
        ("--batch-size", "--batch_size", True),
        ("--batch-size", "--eval.batch_size", False),
    ],
)
def test_a_locked_batch_is_noted_by_whatever_name(flag: str, locked: str, noted: bool) -> None:
    command = KnownCommand(("python", "train.py", f"{flag}=8"), {}, None, None, None)
    notes = notes_on_locks(command, parse(f"--set {flag}=16"), [locked])
    assert notes == ((f"{locked} is locked: it is changed for this test alone",) if noted else ())


@pytest.mark.slow
def test_a_layer_test_is_a_sealed_run_of_its_own(quieted: tuple[Campaign, Any]) -> None:
    campaign, answer = quieted
    assert campaign.runs() == [*BASELINE, "0003-layer-quiet"]
    assert (answer["action"], answer["layer"], answer["run"]) == (
        "recorded_layer",
        "quiet",
        "0003-layer-quiet",
    )
    assert answer["changed"] == f"--set {NEVER}"
    assert answer["ratio"] == pytest.approx(1.3, rel=0.1)
    assert "goes into these" in answer["means"]
    kept = run_json(campaign, "0003-layer-quiet")
    assert (kept["role"], kept["outcome"], kept["hypothesis"]) == ("layer-quiet", "COMPLETED", None)
    assert kept["change"] == f"--set {NEVER}"
    assert NEVER in kept["argv"]
    assert (campaign.folder / "runs" / "0003-layer-quiet" / "manifest.json").exists()


@pytest.mark.slow
def test_it_is_no_hypothesis_and_its_time_counts(
    replayed_once: Campaign, quieted: tuple[Campaign, Any]
) -> None:
    campaign, answer = quieted
    assert campaign.text == replayed_once.text
    status = campaign.json("status")
    assert status["hypotheses"] == []
    assert status["baselines"]["workload"]["runs"] == BASELINE
    held = [run_json(campaign, name)["duration_s"] for name in campaign.runs()]
    assert status["budget"]["device_time_used_s"] == pytest.approx(sum(held), abs=0.1)
    assert answer["device_time_s"] == held[2]
    campaign.run("verify").expect(0)


@pytest.mark.slow
def test_a_diagnosis_finds_it_again(quieted: tuple[Campaign, Any]) -> None:
    campaign, answer = quieted
    told = campaign.json("diagnose")
    assert told["facts"]["layer_quiet_ratio"] == pytest.approx(answer["ratio"])
    assert told["layers"]["quiet"]["runs"] == ["0003-layer-quiet"]
    assert told["difference"]["lines"][0].startswith("program: ")
    flags = {f["name"]: (f["workload"], f["reference"]) for f in told["difference"]["flags"]}
    assert flags == {"work": ("0.2", None), "eval_every": ("10", None), "batch_size": ("8", "64")}
    said = campaign.run("diagnose").expect(0).out
    assert "Layer quiet: without logging, evaluation and saving" in said
    assert "\n  flag batch_size: 8, reference 64\n" in said


@pytest.mark.slow
def test_of_another_command_it_says_nothing(quieted: tuple[Campaign, Any], tmp_path: Path) -> None:
    campaign = copied(quieted[0], tmp_path / "repo")
    loaded = load(campaign.folder)
    assert list(results(loaded.setup, loaded.history)) == ["quiet"]
    campaign.config.write_text(campaign.config.read_text().replace("--lr=0.1 --work", "--lr=0.3 --work"))
    loaded = load(campaign.folder)
    assert results(loaded.setup, loaded.history) == {}


@pytest.mark.slow
def test_one_that_is_cut_off_is_none(replayed_once: Campaign, tmp_path: Path) -> None:
    campaign = copied(replayed_once, tmp_path / "repo")
    process = campaign.start("diagnose", "--layer", "double-batch")
    with killed_at_the_end(process):
        wait_for((campaign.folder / "runs" / "0003-layer-double-batch" / "samples.csv").exists)
        assert "run 0003-layer-double-batch is under way" in campaign.json("status")["next"]["why"]
        os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
    recovered = campaign.json("next")
    assert (recovered["action"], recovered["run"]) == ("recovered", "0003-layer-double-batch")
    assert run_json(campaign, "0003-layer-double-batch")["outcome"] == "INTERRUPTED"
    loaded = load(campaign.folder)
    assert results(loaded.setup, loaded.history) == {}
    assert campaign.text == replayed_once.text


@pytest.mark.parametrize(
    ("layer", "error", "said"),
    [
        ("half-batch", UsageError, "there is no layer test 'half-batch'"),
        ("cached-batch", LayerError, "the probe saw no training in the baseline"),
        ("quiet", LayerError, "no known flag"),
        ("double-batch", LayerError, "no flag of this command sets the batch size"),
    ],
)
def test_what_cannot_be_tested(recorded: Campaign, layer: str, error: type[Exception], said: str) -> None:
    before = recorded.runs()
    with pytest.raises(error, match=said):
        record_layer(recorded.folder, layer, quietly)
    assert recorded.runs() == before


def test_without_a_baseline_there_is_nothing_to_hold_it_against(campaign: Campaign) -> None:
    with pytest.raises(LayerError, match="valid baseline to compare with: not recorded yet") as raised:
        record_layer(campaign.folder, "quiet", quietly)
    assert raised.value.next == "gpudebug baseline workload"


def test_a_training_that_is_to_be_left_alone_is(recorded: Campaign) -> None:
    recorded.config.write_text(recorded.config.read_text() + "probe: false\n")
    recorded.pin()
    with pytest.raises((ConfigError, LayerError), match="probe is false"):
        record_layer(recorded.folder, "cached-batch", quietly)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--layer", "half"), "name one of cached-batch, quiet, double-batch"),
        (("3", "--layer", "quiet"), "--layer runs the workload itself"),
    ],
)
@pytest.mark.slow
def test_the_option_is_read_strictly(recorded: Campaign, words: tuple[str, ...], said: str) -> None:
    assert said in recorded.run("diagnose", *words).expect(2).err


@pytest.mark.heavy
def test_a_real_training_on_one_batch(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    campaign = make_campaign(
        tmp_path / "repo", command=f"{sys.executable} fit.py", files={"fit.py": TRAINING}
    )
    campaign.json("baseline")
    kept = run_json(campaign, "0001-baseline-workload", "evidence.json")["probe"]["facts"]
    assert kept["epochs"] == [40]
    cached = campaign.json("diagnose", "--layer", "cached-batch")
    # A step takes 20 ms of waiting and next to nothing else.
    assert cached["ratio"] > 2
    assert "is data wait" in cached["means"]
    run = run_json(campaign, cached["run"])
    assert (run["outcome"], run["exit_status"], run["leaked"], run["change"]) == ("COMPLETED", 0, 0, None)
    facts = run_json(campaign, cached["run"], "evidence.json")["probe"]["facts"]
    assert (facts["replay"]["layer"], facts["replay"]["batches"]) == ("cached_batch", 117)
    assert facts["epochs"] == [40]
    log = (campaign.folder / "runs" / cached["run"] / "train.log").read_text()
    assert log.splitlines()[-1] == "epochs of 40"

    told = campaign.json("diagnose")["facts"]
    assert told["layer_cached_batch_ratio"] == cached["ratio"]
