"""Campaigns on two nodes of a real Slurm: the GPUs of both, and a straggler on the second one."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support import nvml
from tests.support.campaigns import make_campaign, wait_for
from tests.support.node_steps import FIRST, OTHER
from tests.support.places import SUPPORT
from tests.support.slurm import SlurmSystem

from gpudebug.edges import store
from gpudebug.edges.launcher import free_port

_RUNNER = "runner: {{slurm: {{partition: main, nodes: 2, idle: 2m, srun: ['--task-prolog={}']}}}}\n"
PYTHON = shlex.quote(sys.executable)
SPREAD = "srun --nodes=2 --ntasks-per-node=1"


def prolog(path: Path, variable: str) -> Path:
    """What Slurm runs before a task, and that sets a variable of it."""
    path.write_text(f'#!/bin/sh\necho "export {variable}"\n')
    path.chmod(0o755)
    return path


@pytest.mark.heavy
def test_a_straggler_on_the_second_node_is_found_and_mended(slurm: SlurmSystem, tmp_path: Path) -> None:
    # Of two agents on one host a rendezvous gives either rank 0: their number is read inside the step.
    ranks = prolog(tmp_path / "ranks", "PET_NODE_RANK=$SLURM_NODEID")
    torchrun = f"{PYTHON} -m torch.distributed.run --nnodes=2 --nproc-per-node=1"
    meeting = f"--master-addr=127.0.0.1 --master-port={free_port()}"
    command = f"{SPREAD} --task-prolog={ranks} {torchrun} {meeting} train.py --num_workers=0"
    config = (
        "metric: steps_per_s\ncriteria: {success: 1.3x, failure: 1.1x}\n"
        "runner: {slurm: {partition: main, nodes: 2, idle: 2m}}\n"
    )
    program = (SUPPORT / "nodes_train.py").read_bytes()
    campaign = make_campaign(
        tmp_path / "repo", device="auto", command=command, config=config, files={"train.py": program}
    )
    text = campaign.config.read_text()
    campaign.config.write_text(
        text.replace("  timeout: 60s", "  env: {GLOO_SOCKET_IFNAME: lo}\n  timeout: 5m")
    )
    campaign.pin()
    env = slurm.env
    assert campaign.json("next", env=env, timeout=600)["action"] == "recorded_baseline"
    said = " ".join(campaign.run("diagnose", env=env).expect(0).out.split())
    assert "Straggler: rank 1 on n1, loader: its batches come later than the others'" in said
    campaign.propose("--set --num_workers=4")
    tested = campaign.json("next", env=env, timeout=600)
    assert (tested["action"], tested["verdict"]) == ("tested", "VALIDATED")
    assert campaign.json("verify", env=env)["problems"] == []
    campaign.json("stop", env=env)


class OnTwoNodes:
    """A campaign on two nodes with a stand-in of a GPU each, whose runs take `seconds`."""

    def __init__(self, folder: Path, slurm: SlurmSystem, seconds: float) -> None:
        for node, uuid, util in (("n0", FIRST, 80), ("n1", OTHER, 20)):
            (folder / node).write_text(f"gpu 0 uuid={uuid} util={util}\n")
        driver = prolog(folder / "driver", f"NVML_STANDIN={folder}/$SLURMD_NODENAME")
        self.slurm = slurm
        self.env = {**nvml.environment(nvml.build(), NVML_STANDIN=str(folder / "n0")), **slurm.env}
        self.campaign = make_campaign(
            folder / "repo",
            device="nvml",
            command=f"{SPREAD} {PYTHON} train.py --duration={seconds}",
            config=_RUNNER.format(driver),
        ).pin()
        self.runs = store.Workspace(self.campaign.folder)

    def record(self, name: str) -> Any:
        return json.loads((self.runs.run(self.campaign.runs()[-1]).path / name).read_text())

    def sampled(self) -> bool:
        """Whether the second node's samples have begun."""
        path = self.runs.run(self.campaign.runs()[-1]).path / "samples.n1.csv"
        return path.exists() and path.read_text().count("\n") > 5

    def steps(self) -> list[str]:
        return self.slurm.run("squeue", "--steps", "-h", "-o", "%i %N", check=False).splitlines()

    def samplers(self) -> list[int]:
        """The samplers of other nodes, by what they run."""
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if b"onnode" in path.read_bytes() and b"srun" not in path.read_bytes():
                    found.append(int(path.parent.name))
            except OSError:
                continue
        return found


@pytest.mark.heavy
def test_the_gpus_of_both_nodes_are_sampled_and_nothing_keeps_the_job(
    slurm: SlurmSystem, tmp_path: Path
) -> None:
    two = OnTwoNodes(tmp_path, slurm, 7)
    before = set(two.samplers())
    two.campaign.json("next", env=two.env, timeout=300)
    evidence, record = two.record("evidence.json"), two.record("run.json")
    assert [(d["node"], d["uuid"]) for d in evidence["devices"]] == [("n0", FIRST), ("n1", OTHER)]
    assert [round(d["gpu_util"]["mean"]) for d in evidence["devices"]] == [80, 20]
    assert (record["node"]["unsampled"], list(record["node"]["clocks"])) == ({}, ["n1"])
    assert two.campaign.json("verify", env=two.env)["problems"] == []
    assert set(two.samplers()) <= before
    # A worker that is killed in a run leaves no step, and the job ends with it.
    command = two.campaign.start("baseline", "--json", env=two.env)
    wait_for(lambda: len(two.campaign.runs()) == 2 and two.sampled(), 120)
    os.kill(int(store.Allocations(two.campaign.private).served().holder["pid"]), signal.SIGKILL)
    wait_for(lambda: slurm.queue() == {} and set(two.samplers()) <= before, 60)
    command.wait(180)


@pytest.mark.heavy
def test_a_step_that_is_cancelled_costs_the_figure_and_not_the_run(
    slurm: SlurmSystem, tmp_path: Path
) -> None:
    two = OnTwoNodes(tmp_path, slurm, 12)
    command = two.campaign.start("next", "--json", env=two.env)
    wait_for(lambda: bool(two.campaign.runs()) and two.sampled(), 120)
    (step,) = (line.split()[0] for line in two.steps() if line.endswith(" n1"))
    slurm.run("scancel", step)
    assert command.wait(180) == 0
    record, evidence = two.record("run.json"), two.record("evidence.json")
    assert record["outcome"] == "COMPLETED"
    assert record["node"]["unsampled"] == {"n1": "its sampler ended early"}
    assert [(d["node"], d["reason"]) for d in evidence["devices"]][1:] == [("n1", "its sampler ended early")]
    assert evidence["utilisation"] is None
    assert evidence["steps_per_s"] is not None
    two.campaign.json("stop", env=two.env)
