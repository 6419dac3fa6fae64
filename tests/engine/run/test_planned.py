"""Programs that never end by themselves, through whole campaigns: gpudebug ends each run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import Campaign, Done, make_repository
from tests.support.judged import judged
from tests.support.trials import run

from gpudebug.core.records import Evidence, LossEvidence, ProbeEvidence
from gpudebug.core.trainlog.reader import LogReader
from gpudebug.core.verdict.run_plan import RunPlan
from gpudebug.core.words import Trend
from gpudebug.edges.launcher import Tick
from gpudebug.engine.campaign.load import load
from gpudebug.engine.run import planned
from gpudebug.engine.run.evidence import StartedRun, read_evidence
from gpudebug.engine.run.files import Files
from gpudebug.engine.run.live_line import SoFar

# What it prints once it is asked to end must be in no figure.
PROGRAM = """\
import argparse, signal, sys, time

parser = argparse.ArgumentParser()
parser.add_argument("--wait", type=float, default=0.03)
parser.add_argument("--on-interrupt", default="die")
args = parser.parse_args()
print(args, flush=True)


def save(number, frame):
    end = time.monotonic() + 1
    while time.monotonic() < end:
        print("step 900000 loss nan", flush=True)
        time.sleep(0.1)
    open("checkpoint", "w").write("saved")
    sys.exit(3)


if args.on_interrupt == "save":
    signal.signal(signal.SIGINT, save)
elif args.on_interrupt == "ignore":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
step = 0
while True:
    step += 1
    time.sleep(args.wait)
    end = time.perf_counter() + 0.005
    while time.perf_counter() < end:
        pass
    print(f"step {step} loss {0.2 + 20 / (step + 5):.4f}", flush=True)
    if args.on_interrupt == "crash" and step > 5:
        raise RuntimeError("broken")
"""

CONFIG = """\
campaign: test
workload:
  command: python train.py {flags}
  timeout: 120s
metric: steps_per_s
criteria: {{success: 1.5x, failure: 1.1x}}
protocol: {{max_runs: 2{run_for}}}
device: cpu:1
"""


def campaign(folder: Path, flags: str = "", run_for: str = ", run_for: 5s") -> Campaign:
    text = CONFIG.format(flags=flags, run_for=run_for)
    make_repository(folder, {"train.py": PROGRAM, "gpudebug.yaml": text, ".gitignore": "runs/\ncheckpoint\n"})
    return Campaign(folder).pin()


def record_of(found: Campaign, name: str, file: str = "run.json") -> dict[str, Any]:
    return dict(json.loads((found.folder / "runs" / name / file).read_text()))


@pytest.mark.slow
def test_an_endless_training_that_saves_when_it_is_interrupted_gets_its_verdict(tmp_path: Path) -> None:
    found = campaign(tmp_path / "repo", "--on-interrupt=save")
    answer = found.json("next")
    assert "gpudebug ended each run" in answer["notes"][-1]
    run, evidence = (record_of(found, "0001-baseline-workload", f) for f in ("run.json", "evidence.json"))
    assert (run["outcome"], run["exit_status"]) == ("ENDED_BY_PLAN", 3)
    assert run["planned"]["window_s"] == 5.0
    assert run["duration_s"] > run["planned"]["at_s"] + 0.9
    assert evidence["loss"]["trend"] == "CONVERGING"
    assert evidence["steps"] < 900000
    assert 5.0 <= evidence["window"]["end_s"] - evidence["window"]["start_s"] < run["planned"]["at_s"]
    assert "- **Training**: ENDED_BY_PLAN - alive at the end of its planned window" in found.text
    found.propose("--set --wait=0.002")
    answer = judged(found, timeout=400)
    assert answer["verdict"] == "VALIDATED", answer
    gates = {g["name"]: g for g in answer["gates"]}
    assert (gates["outcome"]["value"], gates["outcome"]["result"]) == (
        "alive at the end of its planned window",
        "pass",
    )
    assert gates["loss_parity"]["result"] == "pass"
    assert found.json("verify")["ok"] is True


@pytest.mark.slow
def test_a_training_that_ignores_the_interrupt_is_terminated_and_counts(tmp_path: Path) -> None:
    found = campaign(tmp_path / "repo", "--on-interrupt=ignore")
    found.json("next")
    run = record_of(found, "0001-baseline-workload")
    assert (run["outcome"], run["signal"]) == ("ENDED_BY_PLAN", 15)
    assert found.json("verify")["ok"] is True


def test_by_default_a_training_without_an_end_is_ended(tmp_path: Path) -> None:
    found = campaign(tmp_path / "repo", run_for="")
    loaded = load(found.folder)
    plan = planned.plan_of(loaded.setup.config, loaded.history.baselines, "workload")
    assert plan == RunPlan(30.0, may_complete=True)


def test_a_training_that_crashes_has_crashed(tmp_path: Path) -> None:
    found = campaign(tmp_path / "repo", "--on-interrupt=crash")
    done: Done = found.run("next")
    assert done.status != 0
    run = record_of(found, "0001-baseline-workload")
    assert (run["outcome"], run["planned"]) == ("CRASHED", None)


_MEDDLER = """\
import os, pathlib
pathlib.Path(os.environ["GPUDEBUG_RUN_DIR"]).parent.joinpath("learning.jsonl").write_text("garbage")
"""


@pytest.mark.slow
def test_what_a_training_puts_into_its_run_folder_does_not_end_the_watch(tmp_path: Path) -> None:
    found = campaign(tmp_path / "repo")
    program = found.folder / "train.py"
    program.write_text(_MEDDLER + program.read_text())
    found.json("next")
    run = record_of(found, "0001-baseline-workload")
    assert (run["outcome"], run["signal"]) == ("ENDED_BY_PLAN", 2)
    assert found.json("verify")["ok"] is True


def test_looks_that_take_long_are_rarer(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(100))
    monkeypatch.setattr(planned, "thread_time", lambda: 0.5 * next(clock))
    looks: list[float] = []

    def read(elapsed: float) -> Evidence:
        looks.append(elapsed)
        return run(50.0, window=None)

    ending = planned.PlannedEnding(RunPlan(30.0), read, ["train"])
    for tick in range(360):
        assert not ending.due(Tick(float(tick), 0, None), LogReader())
    assert looks == [31, 62, 93, 124, 155, 200, 250, 300, 350]


@pytest.mark.parametrize(("trains", "ends"), [(True, True), (False, False)])
def test_a_bar_that_is_full_is_the_end_only_of_a_training_that_stands(trains: bool, ends: bool) -> None:
    def read(elapsed: float) -> Evidence:
        probe = ProbeEvidence(pid=1, steps=int(10 * elapsed) if trains else 75, steps_per_s=10.0)
        return run(window=40.0, loss=LossEvidence(trend=Trend.CONVERGING, points=20)).model_copy(
            update={"probe": probe}
        )

    reader = LogReader()
    reader.feed(b"100%|##########| 75/75 [00:07<00:00,  9.64it/s]\n", 8.0)
    assert (reader.step, reader.total_steps) == (75, 75)
    ending = planned.PlannedEnding(RunPlan(30.0, may_complete=True), read, ["train"])
    assert not ending.due(Tick(40.0, 0, None), reader)
    assert ending.due(Tick(50.0, 0, None), reader) is ends


@pytest.mark.parametrize(("own", "shown"), [(12.0, 12.0), (500.0, None)])
def test_what_is_left_is_until_the_end_that_comes_first(own: float, shown: float | None) -> None:
    ending = planned.PlannedEnding(RunPlan(30.0, may_complete=True), lambda _: run(window=8.0), ["train"])
    assert ending.left(own, 10.0) == shown
    # Once it has been looked at, the line says what the plan waits for.
    assert not ending.due(Tick(40.0, 0, None), LogReader())
    assert ending.waits_for(40.0) == "30 s of steady training, about 22 s"
    assert ending.left(own, 40.0) == shown


def test_of_a_run_that_is_left_to_end_its_own_time_is_shown() -> None:
    def read(elapsed: float) -> Evidence:
        return run(window=40.0, steps_per_s=10.0, steps=400, total_steps=600)

    ending = planned.PlannedEnding(RunPlan(30.0, may_complete=True), read, ["train"])
    assert not ending.due(Tick(45.0, 0, None), LogReader())
    assert ending.waits_for(45.0).startswith("its end")
    assert ending.left(25.0, 45.0) == 25.0


def test_a_run_that_has_gone_on_for_as_long_as_it_may_is_ended_without_a_look() -> None:
    def read(elapsed: float) -> Evidence:
        raise AssertionError(elapsed)

    ending = planned.PlannedEnding(RunPlan(30.0, most_s=20.0), read, ["train"])
    assert not ending.due(Tick(19.9, 5, None), LogReader())
    assert ending.due(Tick(20.1, 7, None), LogReader())
    assert ending.end is not None
    assert (ending.end.at_s, ending.end.log_bytes) == (20.1, 7)


def test_a_look_takes_the_log_as_it_was_followed(tmp_path: Path) -> None:
    files = Files(tmp_path / "samples.csv", tmp_path / "train.log", tmp_path / "sampler.json")
    files.log.write_text("step 900 loss 0.5\n")
    reader = LogReader()
    reader.feed(b"step 7 loss 2.5\n", 3.0)
    seen = read_evidence(
        files,
        StartedRun(name="0001-x", role="trial", argv=["train"], patterns={}, warmup_s=None, devices=()),
        SoFar(5.0),
        notes={},
        followed=reader.summary(),
    )
    assert (seen.steps, seen.loss.last) == (7, 2.5)
