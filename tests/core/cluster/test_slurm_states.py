"""Slurm's own lines, recorded from Slurm 22.05.8, as seen jobs."""

from __future__ import annotations

import pytest

from gpudebug.core.cluster import slurm_states
from gpudebug.core.cluster.jobs import JobEnd, JobPlace, JobState
from gpudebug.core.cluster.slurm_states import MOST_NODES, expanded


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("n0", ("n0",)),
        ("n[0-1]", ("n0", "n1")),
        ("n[0-1,4],x", ("n0", "n1", "n4", "x")),
        ("gpu-[08-10]-ib", ("gpu-08-ib", "gpu-09-ib", "gpu-10-ib")),
        ("r[1-2]n[1-2]", ("r1n1", "r1n2", "r2n1", "r2n2")),
        ("", ()),
        ("(null)", ()),
        ("None assigned", ()),
        ("n[a-b]", ("na-b",)),
    ],
)
def test_lists_are_expanded(text: str, nodes: tuple[str, ...]) -> None:
    assert expanded(text) == nodes


@pytest.mark.parametrize("text", ["n[0-999999999]", "n[0-9999]m[0-9999]", "n[1-2", "][,["])
def test_what_is_no_list_ends_and_stays_small(text: str) -> None:
    assert len(expanded(text)) <= MOST_NODES


SQUEUE = """\
14|PENDING|PartitionTimeLimit||2-00:00:00
2|CANCELLED|BeginTime||UNLIMITED
13|FAILED|NonZeroExitCode|n0|UNLIMITED
15|RUNNING|None|n[0-1]|1-02:03:04
"""
SCONTROL = (
    "JobId=2 JobName=gpu debug UserId=root(0) GroupId=root(0) MCS_label=N/A Priority=4294901758 Nice=0 "
    "Account=(null) QOS=(null) JobState=FAILED Reason=NonZeroExitCode Dependency=(null) Requeue=1 Restarts=3 "
    "BatchFlag=1 Reboot=0 ExitCode=3:0 DerivedExitCode=0:0 RunTime=00:00:17 TimeLimit=UNLIMITED "
    "ReqB:S:C:T=0:0:*:* Partition=main AllocNode:Sid=localhost:638 ReqNodeList=(null) NodeList=n[0-1] "
    "BatchHost=n0 JOB_GRES=gpu:2   Nodes=n[0-1] CPU_IDs=0 Mem=0 GRES=gpu:1(IDX:0) MinCPUsNode=1 "
    "Command=/tmp/j.sh WorkDir=/tmp Comment=x=RUNNING StdErr=/a b/log-2.txt TresPerNode=gres:gpu:1 \n"
)


def test_a_line_of_squeue_is_a_job() -> None:
    found = slurm_states.squeue_rows(SQUEUE, ("2", "13", "14", "15"))
    assert [found[id].state for id in ("14", "2", "13", "15")] == [
        JobState.WAITING,
        JobState.ENDED,
        JobState.ENDED,
        JobState.RUNNING,
    ]
    assert found["14"].reason == "PartitionTimeLimit"
    assert (found["2"].end, found["2"].reason) == (JobEnd.CANCELLED, "")
    assert found["13"].end is JobEnd.FAILED
    assert found["13"].left_s is None
    assert found["15"].nodes == ("n0", "n1")
    assert found["15"].reason == ""
    assert found["15"].left_s == 26 * 3600 + 3 * 60 + 4


def test_other_jobs_and_other_lines_are_left_out() -> None:
    text = "JOBID|STATE|REASON|NODES|LEFT\nWelcome | to | the | cluster |!\n" + SQUEUE
    assert set(slurm_states.squeue_rows(text, ("13",))) == {"13"}
    assert slurm_states.squeue_rows("", ("13",)) == {}


@pytest.mark.parametrize(
    ("word", "state", "end"),
    [
        ("REQUEUED", JobState.WAITING, None),
        ("CONFIGURING", JobState.WAITING, None),
        ("EXPEDITING", JobState.WAITING, None),
        ("COMPLETING", JobState.CLEANING, None),
        ("SUSPENDED", JobState.PAUSED, None),
        ("STOPPED", JobState.PAUSED, None),
        ("CANCELLED by 1000", JobState.ENDED, JobEnd.CANCELLED),
        ("CANCELLED+", JobState.ENDED, JobEnd.CANCELLED),
        ("BOOT_FAIL", JobState.ENDED, JobEnd.NODE_FAIL),
        ("NODE_FAIL", JobState.ENDED, JobEnd.NODE_FAIL),
        ("DEADLINE", JobState.ENDED, JobEnd.TIMEOUT),
        ("PREEMPTED", JobState.ENDED, JobEnd.PREEMPTED),
        ("OUT_OF_MEMORY", JobState.ENDED, JobEnd.OUT_OF_MEMORY),
        ("A_WORD_OF_2030", JobState.UNKNOWN, None),
        ("", JobState.UNKNOWN, None),
    ],
)
def test_each_word_of_slurm_has_its_state(word: str, state: JobState, end: JobEnd | None) -> None:
    found = slurm_states.seen("1", word)
    assert (found.state, found.end) == (state, end)


def test_a_job_whose_program_never_began_is_no_failure_of_it() -> None:
    assert slurm_states.seen("1", "FAILED", reason="JobLaunchFailure").infrastructure


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        ("RaisedSignal:9(Killed)", ""),
        ("RaisedSignal:15(Terminated)", "0:15"),
        ("", "0:9"),
        ("JobLaunchFailure", "0:9"),
    ],
)
def test_a_worker_that_a_signal_ended_did_not_fail_by_itself(reason: str, status: str) -> None:
    """Slurm says RaisedSignal from 23.02 on, accounting the number alone."""
    job = slurm_states.seen("1", "FAILED", reason=reason, status=status)
    assert (job.end, job.infrastructure, job.unlogged) == (JobEnd.OTHER, True, False)


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        ("RaisedSignal:53(Real-time signal 19)", ""),
        ("RaisedSignal:53(Real-time_signal_19)", "0:53"),
        ("JobLaunchFailure", "0:53"),
        ("", "0:53"),
    ],
)
def test_a_log_that_the_node_could_not_open(reason: str, status: str) -> None:
    """As squeue prints it, as scontrol does, of an older Slurm, and of accounting."""
    assert slurm_states.seen("1", "FAILED", reason=reason, status=status).unlogged
    assert not slurm_states.seen("1", "FAILED", reason="NonZeroExitCode", status="53:0").unlogged


def test_a_reason_may_hold_the_separator() -> None:
    found = slurm_states.squeue_rows("7|PENDING|burst_buffer: a|b|n0|1:00\n", ("7",))["7"]
    assert (found.reason, found.nodes) == ("burst_buffer: a|b", ("n0",))


@pytest.mark.parametrize(
    "rows", ["7|REVOKED|None||1:00\n7|RUNNING|None|n0|1:00\n", "7|RUNNING|None|n0|1:00\n"]
)
def test_a_job_that_another_cluster_of_a_federation_runs(rows: str) -> None:
    text = rows if "REVOKED" in rows else f"{rows}7|REVOKED|None||1:00\n"
    assert slurm_states.squeue_rows(text, ("7",))["7"].state is JobState.RUNNING
    assert slurm_states.seen("7", "REVOKED").state is JobState.UNKNOWN


@pytest.mark.parametrize(
    ("status", "number"), [("3:0", 3), ("0:9", 137), ("0:0", 0), ("", None), ("x", None)]
)
def test_the_status_of_an_ended_job(status: str, number: int | None) -> None:
    row = slurm_states.sacct_rows(f"7|COMPLETED|{status}|n0\n", ("7",))["7"]
    assert row.exit_status == number


def test_scontrol_says_how_often_it_was_requeued() -> None:
    found = slurm_states.scontrol_rows(SCONTROL, ("2",))["2"]
    assert (found.end, found.exit_status, found.restarts) == (JobEnd.FAILED, 3, 3)


def test_where_a_job_ran() -> None:
    assert slurm_states.place(SCONTROL, "2") == JobPlace("2", ("n0", "n1"), ("gpu:1(IDX:0)",), "main")
    assert slurm_states.place(SCONTROL, "3") is None
    assert slurm_states.place(SCONTROL.replace("n[0-1]", "(null)"), "2") is None


def test_an_element_of_an_array_has_its_own_id() -> None:
    line = "JobId=9 ArrayJobId=7 ArrayTaskId=2 JobState=RUNNING NodeList=n0 Partition=main"
    assert set(slurm_states.scontrol_rows(line, ("7_2", "9"))) == {"7_2"}


def test_a_job_that_is_suspended_has_a_reason() -> None:
    assert slurm_states.seen("1", "SUSPENDED", reason="None").reason == "SUSPENDED"
    assert slurm_states.seen("1", "RUNNING", reason="None").reason == ""


@pytest.mark.parametrize(
    ("word", "by"),
    [("CANCELLED by 1000", 1000), ("CANCELLED by 0", 0), ("CANCELLED+", None), ("FAILED", None)],
)
def test_who_cancelled_a_job_as_accounting_says_it(word: str, by: int | None) -> None:
    assert slurm_states.sacct_rows(f"7|{word}|0:0|n0\n", ("7",))["7"].by == by


@pytest.mark.parametrize(
    ("text", "id"),
    [
        ("42\n", "42"),
        ("42;near\n", "42"),
        ("Welcome!\n 42 \nUse 3 nodes or fewer\n", "42"),
        ("Submitted batch job 43\n", "43"),
        ("Submitted batch job 43 on cluster near\n", "43"),
        ("41\n42\n", None),
        ("Welcome\n", None),
        ("", None),
    ],
)
def test_the_id_in_what_sbatch_and_its_wrappers_print(text: str, id: str | None) -> None:
    assert slurm_states.submitted(text) == id


def test_the_latest_job_of_a_folder_by_its_number() -> None:
    text = "9|PENDING|/a\n10|RUNNING|/a\n11|COMPLETING|/a\n12|PENDING|/b|c\n8|PENDING|/a\n"
    assert slurm_states.queued(text, "/a", ()) == "10"
    assert slurm_states.queued(text, "/a", {"10"}) == "9"
    assert slurm_states.queued(text, "/b|c", ()) == "12"
    assert slurm_states.queued(text, "/c", ()) is None
