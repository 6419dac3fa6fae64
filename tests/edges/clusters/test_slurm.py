"""The adapter for Slurm, on commands that print what Slurm 22.05.8 does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.support.fake_slurm import FakeSlurm
from tests.support.slurm import SlurmSystem

from gpudebug.core.cluster.jobs import ASK_S, BatchJob, InsideJob, JobEnd, JobPlace, JobState
from gpudebug.core.config import SlurmSettings
from gpudebug.core.errors import ClusterError
from gpudebug.edges.clusters import answers
from gpudebug.edges.clusters.slurm import SlurmCluster, inside_slurm

JOB = BatchJob("gpudebug-x", ("/bin/true",), "/tmp", "/tmp/log-{job}")
INVALID = "slurm_load_jobs error: Invalid job id specified"


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    fake = FakeSlurm(tmp_path / "bin")
    monkeypatch.setenv("PATH", fake.path)
    fake.says("sacct", error="Slurm accounting storage is disabled", status=1)
    return fake


@pytest.fixture
def cluster(tmp_path: Path) -> SlurmCluster:
    return SlurmCluster(SlurmSettings(), tmp_path / "answers")


def later(tmp_path: Path, seconds: float = 1000) -> None:
    """Let so much time pass, as far as the book of answers knows."""
    with answers.opened(tmp_path / "answers") as book:
        book.next_at = max(0.0, book.next_at - seconds)


def test_what_is_submitted_is_the_script(fake: FakeSlurm, cluster: SlurmCluster) -> None:
    fake.says("sbatch", "42;cluster\n")
    assert cluster.submit(JOB) == "42"
    assert fake.got("sbatch") == cluster.script(JOB)
    assert fake.calls() == ["sinfo -h -a -o %P|%a|%l|%D|%c|%G", "sinfo -h -a -N -o %o", "sbatch --parsable"]


def test_a_users_defaults_do_not_overrule_the_script(
    fake: FakeSlurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.says("sbatch", "1\n")
    monkeypatch.setenv("SBATCH_PARTITION", "other")
    monkeypatch.setenv("SBATCH_EXPORT", "NONE")
    monkeypatch.setenv("SBATCH_ACCOUNT", "mine")
    SlurmCluster(SlurmSettings(partition="gpu"), tmp_path / "answers").submit(JOB)
    lines = fake.got("sbatch", "env").splitlines()
    assert "SBATCH_ACCOUNT=mine" in lines
    assert not [line for line in lines if line.startswith(("SBATCH_PARTITION", "SBATCH_EXPORT"))]


@pytest.mark.parametrize(
    ("extra", "environ", "why"),
    [
        (["--clusters=far"], {}, "the job would go to cluster far"),
        ([], {"SBATCH_CLUSTERS": "far"}, "the job would go to cluster far"),
        ([], {"SLURM_CLUSTERS": "near,far"}, "the job would go to cluster near,far"),
        ([], {"SLURM_JOB_ID": "7"}, r"this shell holds job 7 \(salloc\) and is not on its nodes"),
    ],
)
def test_a_shell_that_would_lose_its_job_is_refused(
    fake: FakeSlurm,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    extra: list[str],
    environ: dict[str, str],
    why: str,
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    settings = SlurmSettings.model_validate({"extra": extra})
    with pytest.raises(ClusterError, match=why):
        SlurmCluster(settings, tmp_path / "answers").submit(JOB)
    assert fake.calls() == []


def test_a_refusal_is_slurms_own_reason(fake: FakeSlurm, cluster: SlurmCluster) -> None:
    fake.says("sbatch", error="sbatch: error: Invalid qos specification", status=1)
    with pytest.raises(ClusterError, match="Invalid qos specification") as caught:
        cluster.submit(JOB)
    assert caught.value.next == "correct runner.slurm.qos"


def test_without_slurm_one_line_says_so(cluster: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ClusterError, match="no Slurm here: sbatch is not on PATH"):
        cluster.submit(JOB)


def test_what_can_never_be_given_is_not_asked_for(fake: FakeSlurm, cluster: SlurmCluster) -> None:
    fake.says("sinfo", "main*|up|infinite|2|64|(null)\n")
    with pytest.raises(ClusterError, match="no node of this cluster has 1 GPUs: none"):
        cluster.submit(JOB)
    assert [call.split()[0] for call in fake.calls()] == ["sinfo"]


def test_a_folder_that_no_node_sees_is_refused(fake: FakeSlurm, cluster: SlurmCluster) -> None:
    fake.says("sinfo", "gpu-node-01\n")
    with pytest.raises(ClusterError, match="the campaign's folder is in /tmp, which each node has") as caught:
        cluster.submit(JOB)
    assert caught.value.file == "/tmp"
    assert "runner.slurm.shared: true" in str(caught.value.next)


def test_a_folder_that_its_user_knows_to_be_shared_is_not_refused(fake: FakeSlurm, tmp_path: Path) -> None:
    fake.says("sinfo", "gpu-node-01\n")
    fake.says("sbatch", "1\n")
    assert SlurmCluster(SlurmSettings(shared=True), tmp_path / "answers").submit(JOB) == "1"


def test_a_job_whose_submission_timed_out_is_found(fake: FakeSlurm, cluster: SlurmCluster) -> None:
    error = "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"
    fake.says("sbatch", error=error, status=1)
    fake.says("squeue", "76|/other/campaign\n77|/tmp\n78|/another\n")
    assert cluster.submit(JOB) == "77"
    assert fake.calls()[-1] == f"squeue -h -u {os.getuid()} --name=gpudebug-x -o %F|%Z"


def test_one_question_serves_all_jobs_and_all_processes(
    fake: FakeSlurm, cluster: SlurmCluster, tmp_path: Path
) -> None:
    fake.says("squeue", "1|RUNNING|None|n0|1:00:00\n2|PENDING|Resources||1:00:00\n")
    first = cluster.states(("1", "2"))
    again = SlurmCluster(SlurmSettings(), tmp_path / "answers").states(("2", "1"))
    assert [job.state for job in first] == [JobState.RUNNING, JobState.WAITING]
    assert again == first[::-1]
    assert len(fake.calls()) == 1


def test_a_job_is_asked_for_with_those_of_others(
    fake: FakeSlurm, cluster: SlurmCluster, tmp_path: Path
) -> None:
    fake.says("sbatch", "5\n")
    cluster.submit(JOB)
    cluster.states(("6",))
    asked = next(c for c in fake.calls() if c.startswith("squeue")).split(" -j ")[1].split()[0]
    assert set(asked.split(",")) == {"5", "6"}


@pytest.mark.parametrize("status", [0, 1])
def test_an_empty_answer_is_no_success(
    fake: FakeSlurm, cluster: SlurmCluster, tmp_path: Path, status: int
) -> None:
    """Once, the controller may have just started; then the job is over, and not COMPLETED."""
    fake.says("squeue", error=INVALID if status else "", status=status)
    fake.says("scontrol", error=INVALID, status=1)
    (job,) = cluster.states(("1",))
    assert (job.state, job.end) == (JobState.UNKNOWN, None)
    later(tmp_path)
    (job,) = cluster.states(("1",))
    assert (job.state, job.end) == (JobState.ENDED, JobEnd.OTHER)
    assert job.infrastructure


def test_vanished_jobs_are_asked_of_accounting_once(fake: FakeSlurm, cluster: SlurmCluster) -> None:
    fake.says("squeue", "3|RUNNING|None|n0|1:00\n")
    fake.says("sacct", "1|COMPLETED|0:0|n0\n2|CANCELLED by 0|0:15|n1\n")
    found = cluster.states(("1", "2", "3"))
    assert [(job.state, job.end) for job in found] == [
        (JobState.ENDED, JobEnd.COMPLETED),
        (JobState.ENDED, JobEnd.CANCELLED),
        (JobState.RUNNING, None),
    ]
    assert [call.split()[0] for call in fake.calls()] == ["squeue", "sacct"]


def test_accounting_is_asked_who_cancelled_a_job(
    fake: FakeSlurm, cluster: SlurmCluster, tmp_path: Path
) -> None:
    fake.says("squeue", "1|CANCELLED|None|n0|1:00\n")
    fake.says("sacct", "1|CANCELLED by 1000|0:15|n0\n")
    for _ in range(2):
        (job,) = cluster.states(("1",))
        assert (job.end, job.by) == (JobEnd.CANCELLED, 1000)
        later(tmp_path)
    assert [call.split()[0] for call in fake.calls()].count("sacct") == 1


@pytest.mark.parametrize("word", ["RUNNING", "PENDING"])
def test_accounting_that_lags_behind_keeps_no_job_alive(
    fake: FakeSlurm, cluster: SlurmCluster, tmp_path: Path, word: str
) -> None:
    fake.says("squeue", "2|CANCELLED|None|n0|1:00\n")
    fake.says("sacct", f"1|{word}|0:0|n0\n2|{word}|0:0|n0\n")
    fake.says("scontrol", error=INVALID, status=1)
    for _ in range(2):
        one, two = cluster.states(("1", "2"))
        later(tmp_path)
    assert (one.state, one.end, two.end) == (JobState.ENDED, JobEnd.OTHER, JobEnd.CANCELLED)


def test_accounting_that_is_off_is_not_asked_again(
    fake: FakeSlurm, cluster: SlurmCluster, tmp_path: Path
) -> None:
    fake.says("squeue", error=INVALID, status=1)
    fake.says("scontrol", "JobId=1 JobState=TIMEOUT Reason=TimeLimit NodeList=n0 ExitCode=0:15 Restarts=1\n")
    (job,) = cluster.states(("1",))
    assert (job.end, job.restarts) == (JobEnd.TIMEOUT, 1)
    later(tmp_path)
    cluster.states(("1", "2"))
    assert [call.split()[0] for call in fake.calls()].count("sacct") == 1


@pytest.mark.parametrize(
    ("out", "error", "status"),
    [
        ("", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)", 1),
        ("You are welcome\nJOBID | PARTITION\n", "", 0),
    ],
)
def test_no_answer_ends_nothing_and_keeps_what_was_known(
    fake: FakeSlurm, cluster: SlurmCluster, tmp_path: Path, out: str, error: str, status: int
) -> None:
    fake.says("squeue", "1|RUNNING|None|n0|1:00\n2|FAILED|NonZeroExitCode|n0|1:00\n")
    cluster.states(("1", "2"))
    fake.says("squeue", out, error=error, status=status)
    for _ in range(4):
        later(tmp_path)
        one, two = cluster.states(("1", "2"))
        assert (one.state, one.nodes) == (JobState.UNKNOWN, ("n0",))
        assert two.end is JobEnd.FAILED


def test_a_requeued_job_runs_again(fake: FakeSlurm, cluster: SlurmCluster, tmp_path: Path) -> None:
    seen = []
    for word in ("NODE_FAIL", "PENDING", "RUNNING"):
        fake.says("squeue", f"1|{word}|None|n0|1:00\n")
        seen += [job.state for job in cluster.states(("1",))]
        later(tmp_path)
    assert seen == [JobState.ENDED, JobState.WAITING, JobState.RUNNING]


def test_an_older_slurm_is_asked_once_how_a_job_that_never_began_ended(
    fake: FakeSlurm, cluster: SlurmCluster, tmp_path: Path
) -> None:
    fake.says("squeue", "1|FAILED|JobLaunchFailure|n1|1:00\n")
    fake.says("scontrol", "JobId=1 JobState=FAILED Reason=JobLaunchFailure NodeList=n1 ExitCode=0:53 X=\n")
    for _ in range(2):
        (job,) = cluster.states(("1",))
        assert (job.end, job.unlogged, job.nodes) == (JobEnd.OTHER, True, ("n1",))
        later(tmp_path)
    assert [call.split()[0] for call in fake.calls()].count("scontrol") == 1


def test_the_pause_is_longer_after_two_questions(
    fake: FakeSlurm, cluster: SlurmCluster, tmp_path: Path
) -> None:
    fake.says("squeue", error=INVALID, status=1)
    cluster.states(("1",))
    assert [call.split()[0] for call in fake.calls()] == ["squeue", "sacct", "scontrol"]
    later(tmp_path, ASK_S)
    cluster.states(("1",))
    assert len(fake.calls()) == 3


def test_cancelling_what_is_over_is_no_error(fake: FakeSlurm, cluster: SlurmCluster) -> None:
    gone = "scancel: error: Kill job error on job id 7: Invalid job id specified"
    fake.says("scancel", error=gone, status=1)
    cluster.cancel(("7", "8"))
    assert fake.calls() == ["scancel 7 8"]
    fake.says("scancel", error=f"{gone}\nscancel: error: Access/permission denied", status=1)
    with pytest.raises(ClusterError, match="permission denied"):
        cluster.cancel(("7",))


def test_where_a_job_ran(fake: FakeSlurm, cluster: SlurmCluster) -> None:
    fake.says("scontrol", "JobId=1 Partition=gpu NodeList=n1   Nodes=n1 Mem=0 GRES=gpu:1(IDX:0) x=\n")
    assert cluster.where("1") == JobPlace("1", ("n1",), ("gpu:1(IDX:0)",), "gpu")
    fake.says("scontrol", error=INVALID, status=1)
    assert cluster.where("1") is None
    fake.says("sacct", "1|COMPLETED|0:0|n[0-1]\n")
    assert cluster.where("1") == JobPlace("1", ("n0", "n1"))


def test_a_broken_book_is_an_empty_one(fake: FakeSlurm, cluster: SlurmCluster, tmp_path: Path) -> None:
    fake.says("squeue", "1|RUNNING|None|n0|1:00\n")
    (tmp_path / "answers").mkdir()
    (tmp_path / "answers" / "states.json").write_text('{"next_at": 1e99, "jobs": [{"id"')
    assert cluster.states(("1",))[0].state is JobState.RUNNING


def test_inside_an_allocation() -> None:
    job = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[0-1]", "SLURM_CPUS_PER_TASK": "4"}
    assert inside_slurm(job) is None, "a shell of salloc on the login node"
    assert inside_slurm({"SLURMD_NODENAME": "n1"}) is None
    assert inside_slurm({**job, "SLURMD_NODENAME": "n1", "SLURM_RESTART_COUNT": "2"}) == InsideJob(
        "7", "n1", ("n0", "n1"), index=1, restarts=2, cpus_per_task=4
    )
    assert inside_slurm({**job, "SLURMD_NODENAME": "n0", "SLURM_STEP_ID": "0"}) == InsideJob(
        "7", "n0", ("n0", "n1"), step="0", cpus_per_task=4
    )


@pytest.mark.slow
def test_a_real_slurm_submits_tells_requeues_and_cancels(slurm: SlurmSystem, tmp_path: Path) -> None:
    folder = tmp_path / 'it\'s a "50%" folder'
    folder.mkdir()
    cluster = SlurmCluster(SlurmSettings(), tmp_path / "answers")
    program = ("/bin/sh", "-c", 'echo "$SLURMD_NODENAME $SLURM_RESTART_COUNT"; sleep 60')
    job = BatchJob("gpudebug-x", program, str(folder), str(folder / "log-{job}"))
    id = cluster.submit(job)
    slurm.wait_for(lambda: slurm.state(id) == "RUNNING")
    assert cluster.where(id) == JobPlace(id, ("n0",), ("gpu:1(IDX:0)",), "main")
    (seen,) = cluster.states((id,))
    assert (seen.state, seen.nodes) == (JobState.RUNNING, ("n0",))
    slurm.run("scontrol", "requeue", id)
    log = folder / f"log-{id}"
    # A job runs for Slurm before its shell has made the log.
    slurm.wait_for(lambda: log.exists() and "1" in log.read_text())
    cluster.cancel((id,))
    slurm.wait_for(lambda: slurm.state(id) == "CANCELLED")
    later(tmp_path)
    (seen,) = cluster.states((id,))
    assert (seen.state, seen.end, seen.infrastructure) == (JobState.ENDED, JobEnd.CANCELLED, True)
    refusing = SlurmCluster(SlurmSettings.model_validate({"extra": ["--mem=9G"]}), tmp_path / "answers")
    with pytest.raises(ClusterError, match="Slurm refused the job: "):
        refusing.submit(job)
    assert slurm.queue() == {}
