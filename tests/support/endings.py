"""What a real Slurm does to a job in the middle of a run, and what has to hold whatever it did."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.support.campaigns import Campaign
from tests.support.slurm import LOOKS_S, SlurmSystem

from gpudebug.edges import store

MOMENTS = (0.0, 0.5, 1.5, 3.0, 5.5)
"""Seconds after a run was begun."""
RUN_S = 4.0
_OUTAGE_S = 4.0
LIMIT, OUTAGE = "time limit", "outage"
SAVES_S = 5
"""A controller that is killed earlier after a job began may know nothing of it afterwards."""


def preempt(slurm: SlurmSystem, job: str) -> None:
    """A job of a higher partition needs the node."""
    asked = ("--partition=high", f"--nodelist={slurm.node_of(job)}", "--output=/dev/null", "--chdir=/tmp")
    slurm.run("sbatch", *asked, "--gpus-per-node=1", "--wrap=sleep 5")


def outage(slurm: SlurmSystem, job: str) -> None:
    slurm.kill_controller()
    time.sleep(_OUTAGE_S)
    slurm.start_controller()


def suspend(slurm: SlurmSystem, job: str) -> None:
    slurm.run("scontrol", "suspend", job)
    time.sleep(_OUTAGE_S)
    slurm.run("scontrol", "resume", job)


def node_away(slurm: SlurmSystem, job: str) -> None:
    """Its node fails, and is back before the job begins again."""
    node = slurm.node_of(job)
    slurm.node_down(node)
    time.sleep(_OUTAGE_S)
    slurm.node_up(node)


ENDINGS: dict[str, Callable[[SlurmSystem, str], object]] = {
    "scancel": lambda slurm, job: slurm.run("scancel", job),
    "requeue": lambda slurm, job: slurm.run("scontrol", "requeue", job),
    "notice": lambda slurm, job: slurm.run("scancel", "-b", "-s", "USR1", job),
    "node down": lambda slurm, job: slurm.node_down(slurm.node_of(job)),
    "node down and up": node_away,
    "preemption": preempt,
    OUTAGE: outage,
    "suspension": suspend,
    LIMIT: lambda slurm, job: slurm.shorten(job),
}
"""By name; a node that is down is left so, for the test to bring it up."""


def trial_s(how: str) -> float:
    """Seconds that a trial's run has to take to be in the middle when this happens."""
    return LOOKS_S + MOMENTS[-1] + RUN_S if how == LIMIT else RUN_S


def runs_of(campaign: Campaign) -> list[store.RunFolder]:
    """The runs that were begun: a folder without a record is one that nothing was launched in."""
    workspace = store.Workspace(campaign.folder)
    found = [workspace.run(name) for name in workspace.run_names()]
    return [run for run in found if run.has("run.json")]


def sound(campaign: Campaign) -> None:
    """Nothing lost, doubled or judged by what was cut off."""
    runs = runs_of(campaign)
    records = [dict(run.read("run.json")) for run in runs]
    assert [r for r in records if r["outcome"] not in ("COMPLETED", "INTERRUPTED")] == []
    assert all(
        r["reason"].startswith(("interrupted by the cluster", "by the cluster"))
        for r in records
        if r["outcome"] == "INTERRUPTED"
    )
    judged = [run for run in runs if run.has("verdict.json")]
    assert len({run.read("verdict.json")["hypothesis"] for run in judged}) == len(judged)
    assert all(run.sealed for run in runs)
    assert campaign.json("verify")["problems"] == []


def by_its_limit(slurm: SlurmSystem, job: str, campaign: Campaign) -> bool:
    """Whether its time limit ended the job, in the middle of a run."""
    cut_off = [run for run in runs_of(campaign) if run.read("run.json")["outcome"] == "INTERRUPTED"]
    return slurm.state(job) == "TIMEOUT" and len(cut_off) == 1
