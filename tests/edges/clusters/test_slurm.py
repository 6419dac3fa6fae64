"""The adapter for Slurm, on commands that print what Slurm 22.05.8 does."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.fake_slurm import FakeSlurm
from tests.support.slurm import SlurmSystem

from gpudebug.core.cluster.jobs import ASK_S, BatchJob, InsideJob, JobEnd, JobPlace, JobState, SeenJob
from gpudebug.core.config import SlurmSettings
from gpudebug.core.errors import ClusterError
from gpudebug.edges.clusters import answers, slurm
from gpudebug.edges.clusters.commands import CommandAnswer
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
    assert fake.calls() == ["sinfo -h -a -N -o %P|%a|%l|%D|%c|%G|%o", "sbatch --parsable"]


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
    fake.says("sinfo", "main*|up|infinite|1|64|(null)|n0\n")
    with pytest.raises(ClusterError, match="no node of this cluster has 1 GPUs: none"):
        cluster.submit(JOB)
    assert [call.split()[0] for call in fake.calls()] == ["sinfo"]


def test_a_folder_that_no_node_sees_is_refused(fake: FakeSlurm, cluster: SlurmCluster) -> None:
    fake.says("sinfo", "main*|up|infinite|1|64|gpu:1|gpu-node-01\n")
    with pytest.raises(ClusterError, match="the campaign's folder is in /tmp, which each node has") as caught:
        cluster.submit(JOB)
    assert caught.value.file == "/tmp"
    assert "runner.slurm.shared: true" in str(caught.value.next)


def test_a_folder_that_its_user_knows_to_be_shared_is_not_refused(fake: FakeSlurm, tmp_path: Path) -> None:
    fake.says("sinfo", "main*|up|infinite|1|64|gpu:1|gpu-node-01\n")
    fake.says("sbatch", "1\n")
    assert SlurmCluster(SlurmSettings(shared=True), tmp_path / "answers").submit(JOB) == "1"


QUEUE = """\
76|PENDING|/other/campaign
100|PENDING|/tmp
99|RUNNING|/tmp
101|PENDING|/tmp
102|COMPLETING|/tmp
103|PENDING|/another
"""


@pytest.mark.parametrize(
    ("out", "error"),
    [
        ("", "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"),
        ("", "sbatch: error: Batch job submission failed: Zero Bytes were transmitted or received"),
        ("Welcome to the cluster\n", ""),
        ("1234\n5678\n", ""),
    ],
)
def test_a_job_whose_submission_was_not_answered_is_found(
    fake: FakeSlurm, cluster: SlurmCluster, tmp_path: Path, out: str, error: str
) -> None:
    """The latest of this folder that is not known, and does not end."""
    fake.says("sbatch", out, error=error, status=1 if error else 0)
    fake.says("squeue", QUEUE)
    with answers.opened(tmp_path / "answers") as book:
        book.jobs["101"] = SeenJob("101", JobState.WAITING)
    assert cluster.submit(JOB) == "100"
    assert fake.calls()[-1] == f"squeue -h -u {os.getuid()} --name=gpudebug-x -o %F|%T|%Z"


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
    later(tmp_path)
    cluster.states(("6",))
    asked = next(c for c in fake.calls() if c.startswith("squeue")).split(" -j ")[1].split()[0]
    assert set(asked.split(",")) == {"5", "6"}


def test_what_was_just_submitted_is_asked_of_after_the_pause(fake: FakeSlurm, cluster: SlurmCluster) -> None:
    """One look at the nodes and one submission. Nothing is known of the job: it may have begun at once."""
    fake.says("sbatch", "5\n")
    id = cluster.submit(JOB)
    assert cluster.states((id,)) == (SeenJob("5", JobState.UNKNOWN),)
    cluster.cancel((id,))
    cluster.states((id,))
    cluster.submit(JOB)
    assert [call.split()[0] for call in fake.calls()] == ["sinfo", "sbatch", "scancel", "sbatch"]


def test_what_was_lately_said_of_the_nodes_refuses_again(fake: FakeSlurm, cluster: SlurmCluster) -> None:
    fake.says("sinfo", "main*|up|infinite|1|64|(null)|n0\n")
    for _ in range(2):
        with pytest.raises(ClusterError, match="no node of this cluster has 1 GPUs: none"):
            cluster.submit(JOB)
    assert len(fake.calls()) == 1


def test_an_id_that_is_used_again_is_not_what_was_missed(
    fake: FakeSlurm, cluster: SlurmCluster, tmp_path: Path
) -> None:
    fake.says("sbatch", "5\n")
    fake.says("squeue", error=INVALID, status=1)
    with answers.opened(tmp_path / "answers") as book:
        book.missed["5"] = 1
    cluster.submit(JOB)
    later(tmp_path)
    assert cluster.states(("5",))[0].state is JobState.UNKNOWN


def test_a_job_that_cannot_be_noted_is_taken_back(
    fake: FakeSlurm, cluster: SlurmCluster, tmp_path: Path
) -> None:
    fake.says("sbatch", "5\n")
    states = tmp_path / "answers" / "states.json"
    (fake.folder / "sbatch").write_text(
        (fake.folder / "sbatch").read_text().replace("exit", f"rm {states}; mkdir {states}; exit")
    )
    with pytest.raises(ClusterError, match="cannot keep what the cluster says"):
        cluster.submit(JOB)
    assert fake.calls()[-1] == "scancel 5"


def test_a_site_that_wraps_what_sbatch_prints(fake: FakeSlurm, cluster: SlurmCluster, tmp_path: Path) -> None:
    fake.says("sbatch", "Welcome\n42;near\nYour project has 100 hours left\n")
    assert cluster.submit(JOB) == "42"
    fake.says("sbatch", "Submitted batch job 43 on cluster near\nHave a nice day\n")
    assert cluster.submit(JOB) == "43"


def test_a_slow_cluster_stops_only_who_asks_it(
    fake: FakeSlurm, cluster: SlurmCluster, tmp_path: Path
) -> None:
    """While one process waits for squeue another reads what is known, and asks nothing."""
    fake.says("squeue", "1|RUNNING|None|n0|1:00\n")
    cluster.states(("1",))
    later(tmp_path)
    gate = tmp_path / "gate"
    script = (fake.folder / "squeue").read_text()
    waits = f"touch {gate}; while [ -e {gate} ]; do sleep 0.05; done; exit"
    (fake.folder / "squeue").write_text(script.replace("exit", waits))
    slow = threading.Thread(target=cluster.states, args=(("1",),))
    slow.start()
    try:
        while not gate.exists():
            time.sleep(0.01)
        assert cluster.states(("1",))[0].state is JobState.RUNNING
        assert len(fake.calls()) == 2
    finally:
        gate.unlink()
        slow.join()


def test_an_answer_that_comes_late_does_not_undo_a_newer_one(
    fake: FakeSlurm, cluster: SlurmCluster, tmp_path: Path
) -> None:
    fake.says("squeue", "1|RUNNING|None|n0|1:00\n")
    with answers.opened(tmp_path / "answers") as book:
        book.jobs["1"] = SeenJob("1", JobState.ENDED, "FAILED", end=JobEnd.FAILED)
    asked = slurm.ask

    def late(name: str, *words: str, **more: Any) -> CommandAnswer:
        answer = asked(name, *words, **more)
        with answers.opened(tmp_path / "answers") as book:
            book.answered = time.time()
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slurm, "ask", late)
        assert cluster.states(("1",))[0].end is JobEnd.FAILED
    later(tmp_path)
    assert cluster.states(("1",))[0].state is JobState.RUNNING


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


def test_a_banner_of_a_wrapper_hides_no_end(fake: FakeSlurm, cluster: SlurmCluster, tmp_path: Path) -> None:
    fake.says("squeue", "Your quota: 12 % used\n")
    fake.says("scontrol", "JobId=1 JobState=TIMEOUT Reason=TimeLimit NodeList=n0 ExitCode=0:15 X=\n")
    assert cluster.states(("1",))[0].end is JobEnd.TIMEOUT
    fake.says("scontrol", error="scontrol: no such command here", status=127)
    for _ in range(3):
        later(tmp_path)
        assert cluster.states(("2",))[0].reason == "scontrol: scontrol: no such command here"
    fake.says("scontrol", error=INVALID, status=1)
    for _ in range(2):
        later(tmp_path)
        (two,) = cluster.states(("2",))
    assert two.end is JobEnd.OTHER


@pytest.mark.parametrize(
    ("error", "times"),
    [
        ("Slurm accounting storage is disabled", 1),
        ("sacct: error: accounting_storage/slurmdbd: connection refused", 2),
    ],
)
def test_accounting_that_is_away_is_asked_again(
    fake: FakeSlurm, cluster: SlurmCluster, tmp_path: Path, error: str, times: int
) -> None:
    fake.says("sacct", error=error, status=1)
    fake.says("squeue", error=INVALID, status=1)
    for id in ("1", "2"):
        cluster.states((id,))
        later(tmp_path)
    assert [call.split()[0] for call in fake.calls()].count("sacct") == times


def test_a_node_without_sacct_says_nothing_for_others(
    fake: FakeSlurm, cluster: SlurmCluster, tmp_path: Path
) -> None:
    (fake.folder / "sacct").rename(fake.folder / "elsewhere")
    fake.says("squeue", error=INVALID, status=1)
    cluster.states(("1",))
    (fake.folder / "elsewhere").rename(fake.folder / "sacct")
    later(tmp_path)
    cluster.states(("2",))
    assert [call.split()[0] for call in fake.calls()].count("sacct") == 1


@pytest.mark.parametrize(
    ("out", "error", "status"),
    [
        ("", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)", 1),
        ("You are welcome\nJOBID | PARTITION\n", "", 0),
        ("JOBID PARTITION\n1 gpu\n2 gpu\n", "", 0),
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
    later(tmp_path)
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
    # A folder that the node does not see: the script never begins.
    blind = cluster.submit(replace(job, log=str(folder / "nowhere" / "log-{job}")))
    slurm.wait_for(lambda: slurm.state(blind) == "FAILED")
    later(tmp_path)
    (seen,) = cluster.states((blind,))
    assert (seen.end, seen.unlogged, seen.exit_status) == (JobEnd.OTHER, True, 128 + 53)
    refusing = SlurmCluster(SlurmSettings.model_validate({"extra": ["--mem=9G"]}), tmp_path / "answers")
    with pytest.raises(ClusterError, match="Slurm refused the job: "):
        refusing.submit(job)
    assert slurm.queue() == {}
