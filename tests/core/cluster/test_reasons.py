"""Slurm's reasons in words, and which of them waiting cannot help."""

from __future__ import annotations

import pytest

from gpudebug.core.cluster.reasons import explained


@pytest.mark.parametrize(
    ("reason", "setting"),
    [
        ("PartitionTimeLimit", "runner.slurm.time"),
        ("(PartitionNodeLimit)", "runner.slurm.nodes"),
        ("BadConstraints", "runner.slurm.constraint"),
        ("QOSMaxGRESPerJob", "gpus_per_node"),
        ("QOSMaxWallDurationPerJobLimit", "runner.slurm.time"),
        ("InvalidAccount", "runner.slurm.account"),
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


@pytest.mark.parametrize("reason", ["", "None"])
def test_no_reason_is_said_to_be_none(reason: str) -> None:
    assert explained(reason).text == "it has not been considered yet"


def test_a_limit_on_jobs_names_the_way_out() -> None:
    assert explained("AssocMaxJobsLimit").next == "end a job of yours, or wait"
