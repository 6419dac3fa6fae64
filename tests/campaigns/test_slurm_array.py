"""Hypotheses that a real Slurm tests at once, and what it does to the elements of the array."""

from __future__ import annotations

import itertools
import shutil
import time
from pathlib import Path

import pytest
from tests.support.campaigns import RECORDED_S, Campaign, make_replay_campaign, record, wait_for
from tests.support.endings import (
    ENDINGS,
    LIMIT,
    MOMENTS,
    OUTAGE,
    RUN_S,
    SAVES_S,
    by_its_limit,
    sound,
    trial_s,
)
from tests.support.slurm import NODES, SlurmSystem

from gpudebug.edges import store

RUNNER = "runner: {slurm: {partition: main, idle: 1m, parallel: 4}}\n"
OLDER = RUNNER.replace("idle:", f"setup: sleep {SAVES_S}, idle:")


def campaign_of(
    folder: Path, count: int, seconds: float, trial: float | None = None, runner: str = RUNNER
) -> Campaign:
    """A campaign whose odd hypotheses help, pinned by a person; their trials' runs take `trial` seconds."""
    recordings = folder / "recordings"
    record(recordings, "0001-baseline-workload", util=20, rate=10)
    for n in range(1, count + 1):
        helps: dict[str, float] = {
            "util": 60,
            "rate": 30,
            "seconds": RECORDED_S * (trial or seconds) / seconds,
        }
        record(recordings, f"{n + 1:04d}-h{n}", **(helps if n % 2 else {"util": 20, "rate": 10}))
    made = make_replay_campaign(folder / "repo", recordings, RECORDED_S / seconds, config=runner).pin()
    for n in range(count):
        made.propose(f"--set --lr=0.{n + 2}")
    return made


def counted(slurm: SlurmSystem, count: int) -> dict[str, str]:
    """The environment in which `squeue` writes a line into a file each time that it is asked."""
    folder = slurm.folder / f"bin{count}"
    folder.mkdir()
    wrapper = folder / "squeue"
    wrapper.write_text(f'#!/bin/sh\ndate +%s.%N >> {folder}/asked\nexec {shutil.which("squeue")} "$@"\n')
    wrapper.chmod(0o755)
    return {**slurm.env, "PATH": f"{folder}:{slurm.env['PATH']}"}


@pytest.mark.heavy
def test_eight_hypotheses_in_an_array(slurm: SlurmSystem, tmp_path: Path) -> None:
    campaign, env = campaign_of(tmp_path, 8, 3.0), counted(slurm, 8)
    array = campaign.json("submit", env=env)["job"]
    elements = store.Elements(store.Workspace(campaign.folder))
    began = time.monotonic()
    assert {*slurm.array(array)} <= {f"{array}_{n}" for n in range(1, 9)}
    campaign.json("wait", env=env, timeout=400)
    spent = time.monotonic() - began
    assert campaign.statuses() == ["VALIDATED", "REJECTED"] * 4
    assert elements.notes() == ()
    assert campaign.json("verify")["problems"] == []
    wait_for(lambda: slurm.queue() == {}, 60)
    asked = [float(t) for t in (slurm.folder / "bin8" / "asked").read_text().split()]
    assert len(asked) <= spent / 10 + 3
    assert all(b - a >= 9.5 for a, b in itertools.pairwise(asked))
    nodes = {
        dict(store.Workspace(campaign.folder).run(name).read("run.json"))["node"]["name"]
        for name in campaign.runs()
    }
    assert nodes == {"n0", "n1"}


@pytest.mark.heavy
@pytest.mark.parametrize("after", MOMENTS)
@pytest.mark.parametrize("how", ENDINGS)
def test_whatever_slurm_does_to_an_element_is_void(
    slurm: SlurmSystem, tmp_path: Path, how: str, after: float
) -> None:
    campaign = campaign_of(tmp_path, 2, RUN_S, trial_s(how), OLDER if how == OUTAGE else RUNNER)
    elements = store.Elements(store.Workspace(campaign.folder))
    array = campaign.json("submit", env=slurm.env)["job"]
    first = elements.path(elements.notes()[0])
    wait_for(lambda: any(first.glob("*-baseline-*")), 60)
    wait_for(lambda: slurm.array(array).get(f"{array}_1") == "RUNNING", 60)
    time.sleep(after)
    ENDINGS[how](slurm, f"{array}_1")
    said = ""
    for _ in range(6):
        said += campaign.run("wait", env=slurm.env, timeout=200).expect(0).err
        for node in NODES:
            slurm.node_up(node)
        if campaign.statuses() == ["VALIDATED", "REJECTED"]:
            break
        campaign.json("next", env=slurm.env, timeout=200)
    assert campaign.statuses() == ["VALIDATED", "REJECTED"]
    assert elements.notes() == ()
    sound(campaign)
    if how == LIMIT:
        assert by_its_limit(slurm, f"{array}_1", campaign)
        assert f"Slurm ended job {array}_1: TIMEOUT (TimeLimit)" in said
    campaign.run("stop", env=slurm.env)
    wait_for(lambda: slurm.queue() == {}, 60)
