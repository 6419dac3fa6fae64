"""Short looks at hypotheses that wait alike: real runs of a training that waits more or less."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.campaigns import Campaign, commit_all, make_campaign

from gpudebug.core.campaign.decide import decide
from gpudebug.engine.campaign.load import load
from gpudebug.engine.cycle.next import next_cycle
from gpudebug.engine.diagnosis import looks
from gpudebug.engine.diagnosis.order import record_order
from gpudebug.engine.diagnosis.screen import changes_to_look_at, screened
from gpudebug.engine.diagnosis.weights import weighed
from gpudebug.engine.hypotheses.propose import propose
from gpudebug.engine.run.prepare import claimed_campaign
from gpudebug.engine.status.status import status

TRAINING = """
import argparse, time
parser = argparse.ArgumentParser()
parser.add_argument("--fetch", choices=["near", "far", "here"], default="near")
wait = {"near": 0.06, "far": 0.12, "here": 0.0}[parser.parse_args().fetch]
for step in range(100_000):
    end = time.thread_time() + 0.02
    while time.thread_time() < end:
        pass
    time.sleep(wait)
    print(f"step {step} loss {2 / (step + 10):.4f}", flush=True)
"""
CONFIG = """\
campaign: test
workload: {{command: {command}, timeout: 60s}}
protocol: {{run_for: {run_for}, max_runs: 2}}
device: cpu:1
"""


def made(folder: Path, run_for: str) -> Campaign:
    command = json.dumps(f"{shlex.quote(sys.executable)} train.py")
    files = {"train.py": TRAINING, "gpudebug.yaml": CONFIG.format(command=command, run_for=run_for)}
    campaign = make_campaign(folder, files=files)
    commit_all(campaign.folder)
    next_cycle(campaign.folder, lambda live: None)
    for fetch in ("far", "nowhere", "here"):
        propose(campaign.folder, title=f"Fetch {fetch}", description="", method="", set_=[f"--fetch={fetch}"])
    return campaign


def roles(campaign: Campaign) -> list[str]:
    return [str(record["role"]) for record in load(campaign.folder).records.values()]


def test_what_propose_refuses_as_locked_is_not_looked_at(tmp_path: Path) -> None:
    locked = "locked: [--batch_size]\n"
    program = "parser.add_argument('--ims-per-batch')\n"
    campaign = make_campaign(tmp_path / "r", files={"train.py": program}, config=locked)
    campaign.progress.parent.mkdir()
    campaign.add("## Hypotheses\n")
    for number, flag in ((1, "--ims-per-batch=64"), (2, "--eval.batch_size=64"), (3, "--lr=0.2")):
        entry = (
            f"### Hypothesis {number}: By hand\n- **Intervention**: --set {flag}\n- **Status**: UNTESTED\n"
        )
        campaign.add(f"\n{entry}")
    assert sorted(changes_to_look_at(load(campaign.folder), (1, 2, 3))) == [2, 3]


@pytest.mark.slow
def test_what_waits_alike_is_looked_at_once_and_the_best_goes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign, said = made(tmp_path / "repo", "12s"), list[str]()
    with claimed_campaign(campaign.folder, lambda live: said.append(live.remark or ""), "test") as cycle:
        first = screened(cycle, weighed(cycle.loaded))
        assert decide(first).hypothesis == 3
        assert roles(campaign)[1:] == ["look-h1", "look-h2", "look-h3"]
        assert decide(screened(cycle, weighed(cycle.loaded))).hypothesis == 3
        assert len(roles(campaign)) == 4
        record_order(cycle.loaded, "test")
    assert any(
        "hypotheses 1, 2, 3 have the same expected gain: 3 short looks order them" in line for line in said
    )
    found = status(campaign.folder).next
    assert found.hypothesis == 3
    assert "the best of 3 untested by a short look each" in found.why
    loaded = load(campaign.folder)
    gains = looks.gains(loaded)
    assert gains[3] > gains[1]
    assert gains[2] == float("-inf")
    # What was interrupted looked at nothing.
    ended = looks._evidence(loaded, looks.newest(loaded)[2]).model_copy(update={"outcome": "INTERRUPTED"})
    monkeypatch.setattr(looks, "_evidence", lambda *_: ended)
    assert looks.newest(loaded) == {}
    monkeypatch.undo()
    # A change that is another now was not looked at.
    entries = replace(loaded, interventions={**loaded.interventions, 3: loaded.interventions[1]})
    assert sorted(looks.newest(entries)) == [1, 2]
