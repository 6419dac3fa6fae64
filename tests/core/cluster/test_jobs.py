"""What is seen of a job."""

from __future__ import annotations

from pathlib import PurePath

import pytest

from gpudebug.core.cluster.jobs import InsideJob, JobEnd, JobState, SeenJob, traps


@pytest.mark.parametrize("end", JobEnd)
def test_only_the_programs_own_ends_say_something_of_it(end: JobEnd) -> None:
    job = SeenJob("1", JobState.ENDED, end=end)
    assert job.over
    assert job.infrastructure == (end not in (JobEnd.COMPLETED, JobEnd.FAILED))


@pytest.mark.parametrize("state", [JobState.WAITING, JobState.RUNNING, JobState.UNKNOWN])
def test_what_has_not_ended_is_no_end(state: JobState) -> None:
    assert not SeenJob("1", state).over
    assert not SeenJob("1", state).infrastructure


@pytest.mark.parametrize(
    ("word", "reason", "how"),
    [
        ("TIMEOUT", "TimeLimit", "TIMEOUT (TimeLimit)"),
        ("NODE_FAIL", "", "NODE_FAIL"),
        ("", "it knows no such job", "it knows no such job"),
        ("", "", "OTHER"),
    ],
)
def test_how_it_ended_is_the_clusters_word(word: str, reason: str, how: str) -> None:
    assert SeenJob("1", JobState.ENDED, word, reason, end=JobEnd.OTHER).how == how


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
    assert all("srun --cpus-per-task=8" in line and f"{cores} core" in line for line in found)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("srun torchrun --node_rank=$SLURM_NODEID train.py", "$SLURM_NODEID"),
        ('/opt/slurm/bin/srun python train.py --rank "${SLURM_PROCID}"', "$SLURM_PROCID"),
        ("srun bash -c 'torchrun --node_rank=$SLURM_NODEID train.py'", None),
        ('srun bash -c "torchrun --node_rank=\\$SLURM_NODEID train.py"', None),
        (r"srun bash -c torchrun\ --node_rank=\$SLURM_NODEID", None),
        ("srun echo 'it is'n't --rank=$SLURM_LOCALID", "$SLURM_LOCALID"),
        ("echo $SLURM_NODEID; srun python train.py", None),
        ("torchrun --node_rank=$SLURM_NODEID train.py", None),
        ("srun python train.py --nodes=$SLURM_NNODES", None),
        ("srun hostname; python t.py --n $SLURM_NODEID", None),
        ("srun hostname && python t.py --n $SLURM_NODEID", None),
        ("srun hostname | xargs python t.py --n $SLURM_NODEID", None),
        ("srun hostname & python t.py --n $SLURM_NODEID", None),
        ("srun hostname\npython t.py --n $SLURM_NODEID", None),
        ("srun hostname; srun python t.py --n $SLURM_NODEID", "$SLURM_NODEID"),
        ("srun python t.py \\\n 2>&1 &>log >|log --n $SLURM_NODEID", "$SLURM_NODEID"),
        ('srun bash -c "cd here; python t.py --n $SLURM_NODEID"', "$SLURM_NODEID"),
        ("srun 'an open quote $SLURM_NODEID", "$SLURM_NODEID"),
    ],
)
def test_the_number_of_a_task_that_is_read_before_there_is_one(text: str, named: str | None) -> None:
    found = traps(job(), ("/bin/sh", "-c", text), {}, 8, HOME)
    assert len(found) == (named is not None)
    assert all(f"the shell replaces {named} before srun" in line for line in found)
    # Without a shell the text reaches the step as it is.
    assert traps(job(), ("srun", "bash", "-c", "torchrun --node_rank=$SLURM_NODEID"), {}, 8, HOME) == ()


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
