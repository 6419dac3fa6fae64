"""Slurm's reasons in words, and which of them waiting cannot help."""

from __future__ import annotations

import pytest

from gpudebug.core.cluster.jobs import JobEnd, JobState, SeenJob
from gpudebug.core.cluster.reasons import advice, explained, failed_by_cluster, reason, unknown, unlogged
from gpudebug.core.config import SlurmSettings
from gpudebug.core.trainlog.failure import ALERT, FailureScan, classify_failure

TORCHRUN = """\
Traceback (most recent call last):
  File "/usr/bin/torchrun", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.api.SignalException: Process 4242 got signal: 15
"""
NO_MEMORY = "srun: error: Unable to create step for job 12: Memory required by task is not available"
CRASH = """\
[rank0]: Traceback (most recent call last):
[rank0]:   File "train.py", line 8, in <module>
[rank0]: ValueError: bad
"""
AWAY = "srun: error: Unable to confirm allocation for job 12: Unable to contact slurm controller"
LATE = "srun: error: Unable to create step for job 12: Socket timed out on send/recv operation"
LAUNCH = "srun: error: Task launch for StepId=12.0 failed on node n1: Communication connection failure"
STEP = "slurmstepd: error: *** STEP 12.0 ON n0 CANCELLED AT 2026-11-26T12:00:00"


def quoted(log: str, status: int) -> tuple[str, ...]:
    scan = FailureScan()
    for line in log.encode().splitlines():
        scan.feed(line, bool(ALERT.search(line)), 0)
    failure = classify_failure(scan, status, None, 0)
    return () if failure is None else failure.lines


@pytest.mark.parametrize(
    ("log", "status", "why"),
    [
        (f"{AWAY} (connect failure)\nsrun: Check SLURM_JOB_ID environment variable.\n", 1, AWAY),
        (f"step 1 loss 2\n{LATE}\n", 1, LATE.removesuffix(" on send/recv operation")),
        (f"{LAUNCH}\nsrun: Job step aborted: Waiting up to 32 seconds\n", 1, LAUNCH),
        (
            "srun: error: Node failure on n1\nsrun: error: n0: task 0: Killed\n",
            1,
            "srun: error: Node failure on n",
        ),
        (f"{STEP} DUE TO PREEMPTION ***\n{TORCHRUN}", 1, f"{STEP} DUE TO PREEMPTION"),
        (TORCHRUN, 1, TORCHRUN.splitlines()[-1]),
        ("step 1 loss 2\nTerminated\n", 143, "ended by signal 15"),
        ("step 1 loss 2\n", 143, "ended by signal 15"),
        # The command's own: what it asks for, its step's limit, a rank that took others along.
        (
            f"{NO_MEMORY}\n",
            1,
            None,
        ),
        (f"{STEP} DUE TO TIME LIMIT ***\n", 1, None),
        (
            CRASH + f"srun: Terminating StepId=12.0\n{STEP} ***\n" + TORCHRUN,
            1,
            None,
        ),
        ("W1126 Sending process 7 closing signal SIGTERM\n" + CRASH, 1, None),
        (f"{CRASH}", 143, None),
        ("step 1 loss 2\n", 1, None),
        ("step 1 loss 2\nKilled\n", 137, None),
    ],
)
def test_what_a_crash_says_of_the_cluster(log: str, status: int, why: str | None) -> None:
    assert failed_by_cluster(quoted(log, status), log, status - 128) == why


PARTITION = """\
sbatch: error: invalid partition specified: nope
sbatch: error: Batch job submission failed: Invalid partition name specified
"""


@pytest.mark.parametrize(
    ("error", "why", "setting"),
    [
        (
            PARTITION,
            "invalid partition specified: nope; Invalid partition name specified",
            "runner.slurm.partition",
        ),
        (
            "sbatch: error: Batch job submission failed: Requested node configuration is not available",
            "Requested node configuration is not available",
            "runner.slurm.nodes",
        ),
        (
            "sbatch: error: Batch job submission failed: Invalid feature specification",
            "Invalid feature specification",
            "runner.slurm.constraint",
        ),
        (
            "sbatch: error: Batch job submission failed: Invalid generic resource (gres) specification",
            "Invalid generic resource (gres) specification",
            "runner.slurm.gpus_per_node",
        ),
        (
            "sbatch: error: QOSMaxSubmitJobPerUserLimit\nsbatch: error: "
            "Batch job submission failed: Job violates accounting/QOS policy "
            "(job submit limit, user's size and/or time limits)",
            "QOSMaxSubmitJobPerUserLimit; "
            "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)",
            "squeue --me",
        ),
        (
            "sbatch: error: Batch job submission failed: "
            "Unable to contact slurm controller (connect failure)",
            "Unable to contact slurm controller (connect failure)",
            "wait for Slurm's controller",
        ),
        (
            "sbatch: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host\n"
            "sbatch: fatal: Could not establish a configuration source",
            "resolve_ctls_from_dns_srv: res_nsearch error: Unknown host; "
            "Could not establish a configuration source",
            "no slurm.conf",
        ),
        ("sbatch: error: lua: write a ticket", "write a ticket", "submit --dry-run"),
        (
            "sbatch: error: You must request a GPU type\n"
            "sbatch: error: Batch job submission failed: Unspecified error",
            "You must request a GPU type",
            "submit --dry-run",
        ),
        ("sbatch: error: Batch job submission failed: Unspecified error", "Unspecified error", "--dry-run"),
        (
            "Welcome to the cluster\n"
            "sbatch: error: CPU count per node can not be satisfied\n"
            "sbatch: error: Batch job submission failed: Requested node configuration is not available\n"
            "Ask help@site",
            "CPU count per node can not be satisfied; Requested node configuration is not available",
            "runner.slurm.nodes",
        ),
        ("salloc is not allowed on this host", "salloc is not allowed on this host", "--dry-run"),
    ],
)
def test_a_refusal_says_slurms_reason_and_the_setting(error: str, why: str, setting: str) -> None:
    assert reason(error) == why
    assert setting in advice(error, SlurmSettings())


def test_an_option_that_an_older_slurm_lacks() -> None:
    error = "sbatch: unrecognized option '--gpus-per-node=8'\nTry \"sbatch --help\" for more information\n"
    settings = SlurmSettings.model_validate({"gpus_per_node": 8})
    assert reason(error) == "unrecognized option '--gpus-per-node=8'"
    assert "gpus_per_node: 0 and extra: [--gres=gpu:8]" in advice(error, settings)


def test_an_option_of_ones_own_that_slurm_lacks() -> None:
    settings = SlurmSettings.model_validate({"extra": ["--tres-bind=x"]})
    assert "remove --tres-bind from runner.slurm.extra" in advice(
        "unrecognized option '--tres-bind=x'", settings
    )


@pytest.mark.parametrize(
    ("reason", "setting"),
    [
        ("PartitionTimeLimit", "runner.slurm.time"),
        ("(PartitionNodeLimit)", "runner.slurm.nodes"),
        ("BadConstraints", "runner.slurm.constraint"),
        ("QOSMaxGRESPerJob", "gpus_per_node"),
        ("QOSMaxWallDurationPerJobLimit", "runner.slurm.time"),
        ("InvalidAccount", "runner.slurm.account"),
        ("QOSMinGRES", "runner.slurm.gpus_per_node"),
        ("QOSMinCpuNotSatisfied", "qos"),
        ("AssocMaxGRESMinutesPerJob", "runner.slurm.time"),
        ("ReservationDeleted", "runner.slurm.extra"),
        ("Reservation debug was deleted", "runner.slurm.extra"),
        ("Reservation_debug_is_invalid", "runner.slurm.extra"),
        ("launch failed requeued held", "gpudebug next"),
        ("launch_failure_limit_exceeded_requeued_held", "gpudebug next"),
        ("user env retrieval failed requeued held", "--export"),
        ("MaxMemPerLimit", "runner.slurm.extra"),
    ],
)
def test_what_can_never_start_names_what_to_change(reason: str, setting: str) -> None:
    found = explained(reason)
    assert found.never
    assert found.next is not None
    assert setting in found.next
    assert reason.strip("()") in found.text


@pytest.mark.parametrize("reason", ["Resources", "Priority", "BeginTime", "QOSMaxJobsPerUserLimit", "New"])
def test_what_may_still_start_is_repeated(reason: str) -> None:
    found = explained(reason)
    assert not found.never
    assert reason in found.text


@pytest.mark.parametrize(
    ("reason", "why", "change"),
    [
        ("PartitionDown", "the partition is down", "or wait for it"),
        ("PartitionInactive", "the partition is inactive", "or wait for it"),
        ("JobHeldUser", "it is held", "scontrol release 12"),
        ("JobHeldAdmin", "an administrator holds it", "administrators"),
        ("job requeued in held state", "it is held", "scontrol release 12"),
        ("job_requeued_in_special_exit_state", "it is held", "scontrol release 12"),
        ("ReqNodeNotAvail, Reserved for maintenance", "a maintenance begins", "lower runner.slurm.time"),
        ("ReqNodeNotAvail,_Reserved_for_maintenance", "a maintenance begins", "lower runner.slurm.time"),
        ("ReqNodeNotAvail, UnavailableNodes:n[1,3]", "a node that it needs is down", ""),
        (
            "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions",
            "the nodes that it needs are down",
            "",
        ),
        ("BeginTime", "a job that was requeued waits two minutes", ""),
        ("PartitionConfig", "against a limit of the partition", "runner.slurm.partition"),
        ("AssocGrpGRESMinutes", "is used up", "runner.slurm.account"),
        ("QOSGrpWallLimit", "is used up", "qos"),
        ("QOSGrpCPURunMinutesLimit", "running jobs have all the time", ""),
    ],
)
def test_what_passes_or_is_lifted_keeps_its_place_in_the_queue(reason: str, why: str, change: str) -> None:
    found = explained(reason, "12")
    assert not found.never
    assert why in found.text
    assert change in (found.next or "")


def test_a_state_of_a_later_version_is_no_outage() -> None:
    odd = unknown("Slurm", SeenJob("12", JobState.UNKNOWN, "HATCHING", "Resources"))
    assert odd == "job 12 is HATCHING, a state that gpudebug does not know; it is waited for"
    away = unknown("Slurm", SeenJob("12", JobState.UNKNOWN, reason="squeue: no answer"))
    assert away == "Slurm does not answer (squeue: no answer); job 12 is waited for"
    assert unknown("Slurm", SeenJob("12", JobState.UNKNOWN)) is None


@pytest.mark.parametrize("reason", ["", "None"])
def test_no_reason_is_said_to_be_none(reason: str) -> None:
    assert explained(reason).text == "it has not been considered yet"


def test_a_limit_on_jobs_names_the_way_out() -> None:
    assert explained("AssocMaxJobsLimit").next == "end a job of yours, or wait"


def test_a_node_that_does_not_see_the_log_is_named() -> None:
    job = SeenJob("12", JobState.ENDED, "FAILED", nodes=("n1",), end=JobEnd.OTHER, unlogged=True)
    assert unlogged(job, "/c/log") == (
        "node n1 could not write /c/log: it does not see the folder, or may not write there"
    )
