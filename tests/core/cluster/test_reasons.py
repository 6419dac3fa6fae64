"""Slurm's reasons in words, and which of them waiting cannot help."""

from __future__ import annotations

import pytest

from gpudebug.core.cluster.jobs import JobEnd, JobState, SeenJob
from gpudebug.core.cluster.reasons import explained, unknown, unlogged


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
