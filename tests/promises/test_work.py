"""What got done is counted by more than the program that wants to look fast: hollow changes never pass."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import Campaign, make_campaign, make_replay_campaign, record
from tests.support.judged import disturbed, judged, measured_again
from tests.support.patches import write_patch

LOADER = "def fetch(n):\n    return [read(i) for i in n]\n"
TRAIN = """\
from loader import fetch

for step in range(75):
    learn(fetch([step]))
    print("step", step + 1, flush=True)
"""
SPINS = """\
import time

for step in range(75):
    until = time.monotonic() + 0.1
    while time.monotonic() < until:
        pass
    for part in range(4):
        print("step", 4 * step + part + 1, flush=True)
"""
TRIPLED = TRAIN.replace(
    '    print("step", step + 1, flush=True)',
    '    for part in range(3):\n        print("step", 3 * step + part + 1, flush=True)',
)
CACHED = "CACHE = {}\n\n\ndef fetch(n):\n    return [CACHE.get(i) or read(i) for i in n]\n"
PATCH = "hypotheses/patches/h.patch"


def played(folder: Path, *, command: str, trial: dict[str, Any]) -> Campaign:
    """A campaign whose trials are busier and print as `trial` says; nobody but the log tells of steps."""
    recordings = folder / "recordings"
    record(recordings, "0001-baseline-workload", util=30, rate=10)
    record(recordings, "0002-baseline-workload", util=31, rate=10, seed=1)
    for number in range(3, 9):
        record(recordings, f"{number:04d}-h1", **{"util": 75.0, "seed": number, **trial})
        record(recordings, f"{number + 10:04d}-baseline-workload", util=30, rate=10, seed=number)
    files = {"train.py": TRAIN, "loader.py": LOADER}
    campaign = make_replay_campaign(folder / "repo", recordings, files=files, command=command)
    campaign.json("next")
    return campaign


def tried(campaign: Campaign, files: dict[str, str]) -> Any:
    write_patch(campaign, PATCH, files)
    campaign.propose(f"--patch {PATCH}")
    return campaign.json("next")


def gate(answer: Any, name: str = "throughput") -> Any:
    return next(g for g in answer["gates"] if g["name"] == name)


@pytest.mark.parametrize("code", [SPINS, TRIPLED], ids=["spins and prints four", "prints each step as three"])
def test_a_change_of_what_is_printed_proves_no_speed_without_a_probe(tmp_path: Path, code: str) -> None:
    campaign = played(tmp_path, command="python train.py", trial={"rate": 40.0})
    answer = tried(campaign, {"train.py": code})
    assert answer["verdict"] == "INCONCLUSIVE", answer
    found = gate(answer)
    assert (found["result"], found["value"], found["source"]) == ("unknown", None, "log")
    assert "the change touches what does (train.py: " in found["unexplained"]
    assert 'gpudebug reopen 1 --because "WHY"' in answer["why"]
    assert campaign.json("verify")["ok"] is not False
    assert "only a VALIDATED one can be accepted" in campaign.run("accept", "1").expect(1).err


def test_steps_beyond_what_the_command_plans_prove_no_speed(tmp_path: Path) -> None:
    """Whatever the change touches: 400 steps are planned, and 1600 are printed."""
    command = "python train.py --steps=400"
    campaign = played(tmp_path, command=command, trial={"rate": 40.0})
    answer = tried(campaign, {"loader.py": CACHED})
    assert answer["verdict"] == "INCONCLUSIVE", answer
    assert gate(answer)["unexplained"].endswith("printed 1600 steps, and its command plans 400 steps")


def test_a_change_of_the_loader_is_validated_and_called_the_programs_own_word(tmp_path: Path) -> None:
    campaign = played(tmp_path, command="python train.py", trial={"rate": 25.0})
    answer = tried(campaign, {"loader.py": CACHED})
    assert answer["verdict"] == "VALIDATED", answer
    assert (gate(answer)["source"], gate(answer)["note"]) == ("log", "by the program's own word")
    (shown,) = campaign.json("status")["hypotheses"]
    assert shown["throughput_source"] == "log"
    assert "throughput by the program's own word" in campaign.run("status").out
    assert "by the program's own word" in campaign.run("show", "1").out
    assert "its throughput is by the program's own word" in campaign.run("accept", "1").expect(0).out


@pytest.mark.slow
def test_a_person_explains_counts_and_no_session_may(tmp_path: Path) -> None:
    campaign = played(tmp_path, command="python train.py", trial={"rate": 25.0})
    assert tried(campaign, {"train.py": TRAIN.replace("step + 1", "1 + step")})["verdict"] == "INCONCLUSIVE"
    words = ("reopen", "1", "--because", "it prints the same\x1b[2J number")
    refused = campaign.run(*words, env={"GPUDEBUG_SESSION": "a1"}).expect(1).err
    assert "cannot say --because: that is a person's word" in refused
    assert campaign.statuses() == ["INCONCLUSIVE"]
    campaign.run(*words).expect(0)
    answer = campaign.json("next")
    assert answer["verdict"] == "VALIDATED", answer
    assert answer["notes"][0].startswith("confirmed by a person: it prints the same")
    assert "\x1b" not in campaign.text
    assert "confirmed by a person: it prints the same" in campaign.text
    assert campaign.json("verify")["ok"] is True
    for path in (campaign.folder / ".git" / "gpudebug").rglob("confirmed.json"):
        path.unlink()
    found = campaign.json("verify", status=1)
    assert [p["field"] for p in found["problems"]] == ["confirmed"]


def test_a_word_on_another_change_confirms_nothing(tmp_path: Path) -> None:
    campaign = played(tmp_path, command="python train.py", trial={"rate": 25.0})
    tried(campaign, {"train.py": TRAIN.replace("step + 1", "1 + step")})
    campaign.run("reopen", "1", "--because", "the same number").expect(0)
    write_patch(campaign, PATCH, {"train.py": SPINS})
    assert campaign.json("next")["verdict"] == "INCONCLUSIVE"


def test_a_persons_word_without_counts_reopens_and_confirms_nothing(tmp_path: Path) -> None:
    campaign = played(tmp_path, command="python train.py", trial={"rate": 25.0})
    tried(campaign, {"loader.py": CACHED})
    answer = campaign.json("reopen", "1", "--because", "the data set was moved")
    assert (answer["was"], answer["why"]) == ("VALIDATED", "a person says: the data set was moved")
    assert "Earlier result (VALIDATED)" in campaign.text
    said = campaign.run("reopen", "1", "--because", "once more").expect(1).err
    assert "has no verdict to reopen, and no counts to confirm" in said
    assert not [note for note in campaign.json("next")["notes"] if "confirmed" in note]


TORCH = '''\
"""Waits for its samples, then learns; each step is printed once."""
import time

import torch

torch.set_num_threads(1)
torch.manual_seed(1)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
began, step = time.monotonic(), 0


def fetch():
    time.sleep(0.06)
    return torch.randn(16, 8)


while time.monotonic() - began < 6.5:
    batch = fetch()
    until = time.process_time() + 0.02
    while time.process_time() < until:
        pass
    optimizer.zero_grad()
    loss = (model(batch).squeeze() - batch.sum(1)).pow(2).mean()
    loss.backward()
    optimizer.step()
    step += 1
    print(f"step {step} loss {loss.item():.5f}", flush=True)
'''
# Nothing is learnt but once in a while: the time of the wait is burnt, and four steps are printed for one.
HOLLOW = TORCH.replace(
    "    time.sleep(0.06)\n",
    "    until = time.monotonic() + 0.06\n    while time.monotonic() < until:\n        pass\n",
).replace(
    '    step += 1\n    print(f"step {step} loss {loss.item():.5f}", flush=True)\n',
    "    for _ in range(4):\n        step += 1\n"
    '        print(f"step {step} loss {loss.item() * 0.99 ** step:.5f}", flush=True)\n',
)
# The optimizer "steps" as often as it is printed, on one batch.
STEPPED = HOLLOW.replace(
    "        step += 1\n", "        step += 1\n        if _:\n            optimizer.step()\n", 1
)
FASTER = TORCH.replace("time.sleep(0.06)", "time.sleep(0.005)")

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed")


@pytest.fixture(scope="module")
def probed_once(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    folder = tmp_path_factory.mktemp("work")
    campaign = make_campaign(
        folder / "repo", command=f"{sys.executable} train.py", files={"train.py": TORCH}, max_runs=2
    )
    campaign.json("next", env={"OMP_NUM_THREADS": "1"})
    return campaign


@needs_torch
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("code", "verdict", "said"),
    [
        pytest.param(
            HOLLOW,
            "INVALID",
            "steps of the log for each step of the optimizer in the trial",
            marks=pytest.mark.slow,
            id="prints four",
        ),
        pytest.param(
            STEPPED,
            "not validated",
            "backward passes for each step of the optimizer in the trial, 1 in the baseline",
            marks=pytest.mark.heavy,
            id="steps four times on one batch",
        ),
        pytest.param(FASTER, "VALIDATED", None, marks=pytest.mark.heavy, id="waits less"),
    ],
)
def test_the_optimizers_steps_are_held_against_the_log(
    probed_once: Campaign, tmp_path: Path, code: str, verdict: str, said: str | None
) -> None:
    from tests.support.campaigns import copied

    campaign = copied(probed_once, tmp_path / "repo")
    write_patch(campaign, PATCH, {"train.py": code})
    campaign.propose(f"--patch {PATCH}")
    options: dict[str, Any] = {"env": {"OMP_NUM_THREADS": "1"}, "timeout": 600}
    if verdict == "not validated":
        # An open verdict is the right one here, whoever else is on the host: it is not measured again.
        answer = campaign.json("next", **options)
        if answer["verdict"] == "INVALID" and disturbed(answer):
            answer = measured_again(campaign, 1, **options)
        assert answer["verdict"] in ("INCONCLUSIVE", "REJECTED"), json.dumps(answer, indent=1)
    else:
        answer = judged(campaign, **options)
        assert answer["verdict"] == verdict, json.dumps(answer, indent=1)
    assert (gate(answer)["unexplained"] is None) == (said is None)
    assert said is None or said in gate(answer)["unexplained"]
    assert campaign.json("verify")["ok"] is True
    if said is None:
        assert gate(answer)["source"] == "both"
