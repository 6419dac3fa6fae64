"""The only owner of schedulers' commands: which cluster a campaign runs on, and the allocation around us.

The engine knows `core.cluster.jobs.Cluster` alone. A second scheduler is a module here with a class of those
methods, its settings beside `runner.slurm`, and a line in `cluster_of`, in `inside` and in `beside`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from gpudebug.core.cluster.jobs import Cluster, InsideJob, NodeStep

if TYPE_CHECKING:
    from gpudebug.core.config import RunnerSettings


def cluster_of(runner: RunnerSettings | None, answers: Path) -> Cluster | None:
    """Return the cluster that a campaign's runs happen on; None for this host itself.

    `answers` is the folder that keeps what the cluster last said, for all processes of the campaign (it is
    made when it is needed). Nothing is asked, and no command is looked for.
    """
    if runner is None or runner.slurm is None:
        return None
    from gpudebug.edges.clusters.slurm import SlurmCluster

    return SlurmCluster(runner.slurm, answers)


def inside(environ: Mapping[str, str] | None = None) -> InsideJob | None:
    """Return the allocation that this process runs in, on one of its nodes; None outside of one.

    `salloc` may leave its shell on the login node: the variables are set there, and it is not inside.
    """
    around = os.environ if environ is None else environ
    if "SLURM_JOB_ID" not in around:
        return None  # On most hosts; what reads more need not be loaded.
    from gpudebug.edges.clusters.slurm import inside_slurm

    return inside_slurm(around)


def beside(runner: RunnerSettings | None, nodes: tuple[str, ...]) -> NodeStep:
    """Return how a program is run on these nodes of the allocation around us, beside what else runs there.

    ClusterError if the cluster cannot do that. The controller is not asked.
    """
    from gpudebug.edges.clusters.commands import step_beside

    return step_beside(runner.slurm.srun if runner is not None and runner.slurm is not None else (), nodes)
