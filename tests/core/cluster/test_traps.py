"""What a step is given by mistake."""

from __future__ import annotations

from pathlib import PurePath

import pytest

from gpudebug.core.cluster.jobs import InsideJob
from gpudebug.core.cluster.traps import traps

HOME = PurePath("/home/me/campaign")
TRAIN = ("python", "train.py")


def job(cpus: int | None = None) -> InsideJob:
    return InsideJob("412", "n0", ("n0",), cpus_per_task=cpus)


@pytest.mark.parametrize(
    ("asked", "cores", "named"), [(8, 1, True), (8, 7, True), (8, 8, False), (None, 1, False)]
)
def test_a_step_with_fewer_cores_than_its_job_asked_for(asked: int | None, cores: int, named: bool) -> None:
    found = traps(job(asked), TRAIN, {}, cores, HOME)
    assert bool(found) is named
    assert all("SRUN_CPUS_PER_TASK=8" in line and f"{cores} core" in line for line in found)


@pytest.mark.parametrize(
    ("argv", "environ", "named"),
    [
        (TRAIN, {}, False),
        (("srun", "--gpus-per-task=1", *TRAIN), {}, True),
        (("bash", "-c", "srun --gpus-per-task 1 python train.py"), {}, True),
        (("srun", "--gpus-per-node=4", *TRAIN, "--note=--gpus-per-task-off"), {}, False),
        (TRAIN, {"SLURM_GPUS_PER_TASK": "1"}, True),
    ],
)
def test_gpus_that_are_hidden_from_each_other(
    argv: tuple[str, ...], environ: dict[str, str], named: bool
) -> None:
    found = traps(job(), argv, environ, 4, HOME)
    assert [("--gpus-per-node" in line) for line in found] == [True] * named


@pytest.mark.parametrize(
    ("folder", "environ", "why"),
    [
        (HOME, {"TMPDIR": "/scratch/412"}, None),
        ("/scratch/me/campaign", {"SLURM_TMPDIR": "/scratch/me"}, "it is in SLURM_TMPDIR"),
        ("/local/job-412/campaign", {}, "its path has the number of job 412"),
        ("/home/me/run4121", {}, None),
        pytest.param("/tmp/campaign", {"TMPDIR": "/tmp"}, None, id="TMPDIR of every process"),
    ],
)
def test_a_campaign_that_goes_with_the_job(folder: str, environ: dict[str, str], why: str | None) -> None:
    found = traps(job(), TRAIN, environ, 4, PurePath(folder))
    assert len(found) == (why is not None)
    assert all(why in line for line in found if why)
