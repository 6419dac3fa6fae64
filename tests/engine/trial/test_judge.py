"""A verdict follows from the run folders and the terms in verdict.json alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.campaigns import Campaign
from tests.support.trials import run

from gpudebug.core.records import DeviceInfo, RunRecord, Verdict
from gpudebug.edges import store
from gpudebug.engine.run.job import MeasuredRun
from gpudebug.engine.run.prepare import stored_run, window_advice
from gpudebug.engine.trial.judge import judge_runs

PPO = "ppo.py --num-envs 4 --num-steps 128"


def test_the_stored_verdict_comes_out_again_whatever_the_config_says_now(told: Campaign) -> None:
    told.config.write_text(told.config.read_text() + "criteria: {success: 99, failure: 98}\n")
    workspace = store.Workspace(told.folder)
    name = next(n for n in workspace.run_names() if workspace.run(n).has("verdict.json"))
    stored = Verdict.model_validate(workspace.run(name).read("verdict.json"))
    assert stored.terms is not None
    before, after = (
        [stored_run(workspace, r.name) for r in stored.runs if r.part == part]
        for part in ("baseline", "trial")
    )
    assert judge_runs(1, stored.terms, before, after, stored.remarks) == stored


@pytest.mark.parametrize(
    ("command", "changes", "advice"),
    [
        # 20 s are missing, at 5 steps/s and a tenth more.
        ("train.py --steps=200", {"steps": 200}, "--steps=310"),
        # The run made 50 updates, and counted what the flag does: how fast that goes by shows in its 100 s.
        (f"{PPO} --total-timesteps 20000", {"steps": 50, "last_count": 20000}, "--total-timesteps=24401"),
        (f"{PPO} --total-timesteps 20000", {"steps": 50}, "train for more steps a run"),
        (PPO, {}, "train for more steps a run"),
    ],
)
def test_what_would_make_windows_long_enough(command: str, changes: dict[str, int], advice: str) -> None:
    argv = ("python", *command.split())
    device = DeviceInfo(index=0, uuid="CPU", name="cpu", kind="cpu")
    record = RunRecord(
        name="0001-x", campaign="c", role="h1", command="", argv=argv, cwd="/", start="now", devices=(device,)
    )
    evidence = run(28, 5, window=10.0, duration_s=100.0, **changes)
    measured = MeasuredRun(store.RunFolder(Path("/x/0001-x"), str), record, evidence)
    assert window_advice(argv, [measured], 30.0).startswith(advice)
