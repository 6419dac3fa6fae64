"""What sbatch of Slurm 22.05.8 prints when it refuses, and what is to be changed."""

from __future__ import annotations

import pytest

from gpudebug.core.cluster.slurm_refusals import advice, reason
from gpudebug.core.config import SlurmSettings

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
