"""A step of Slurm beside the others of an allocation: it shares all that they have, and takes none of it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from gpudebug.core.cluster.jobs import NodeStep
from gpudebug.core.errors import ClusterError
from gpudebug.edges.clusters.commands import ask

SHARES_ALL = (22, 5)
"""Since this release `--overlap` shares memory and GPUs as well as cores; before it, the training's own step
would wait for them until this one ends."""
# Options by variable that size or bind a step by the whole job, change how it prints, or end it by another's.
_OTHERS = (
    *("SLURM_GPUS", "SLURM_GPUS_PER_TASK", "SLURM_GPUS_PER_SOCKET", "SLURM_GPU_BIND", "SLURM_NTASKS_PER_GPU"),
    *("SLURM_TRES_PER_TASK", "SLURM_CPU_BIND", "SLURM_MEM_BIND", "SLURM_HINT", "SLURM_CORE_SPEC"),
    *("SLURM_EXCLUSIVE", "SLURM_EXACT", "SLURM_WHOLE", "SLURM_DISTRIBUTION", "SLURM_MULTI_PROG"),
    *("SLURM_LABELIO", "SLURM_STDOUTMODE", "SLURM_STDERRMODE", "SLURM_STDINMODE", "SLURM_NTASKS_PER_SOCKET"),
    *("SLURM_NTASKS_PER_CORE", "SLURM_THREADS_PER_CORE", "SLURM_NTASKS_PER_TRES", "SRUN_CPUS_PER_TASK"),
    *("SLURM_UNBUFFEREDIO", "SLURM_CPUS_PER_GPU", "SLURM_TRES_BIND"),
    *("SLURM_CPUS_PER_TASK", "SLURM_HET_SIZE", "SLURM_TASK_PROLOG", "SLURM_TASK_EPILOG", "SLURM_STEP_GRES"),
)


def step_beside(options: Sequence[str], nodes: tuple[str, ...]) -> NodeStep:
    """A task on each of these nodes of the job around us. `options` are the user's of `srun`; ours overrule.

    ClusterError if this Slurm is older than `SHARES_ALL`, or does not say how old it is.
    """
    answer = ask("srun", "--version")
    found = re.search(r"(\d+)\.(\d+)", answer.out)
    if found is None:
        raise ClusterError(f"srun does not say its version: {answer.why}")
    if (int(found[1]), int(found[2])) < SHARES_ALL:
        raise ClusterError(
            f"Slurm {found[0]} has no step that shares memory and GPUs with others (22.05 has)"
        )
    count = len(nodes)
    argv = (
        "srun",
        *options,
        "--overlap",
        "--quiet",
        f"--nodes={count}",
        f"--ntasks={count}",
        "--ntasks-per-node=1",
        f"--nodelist={','.join(nodes)}",
        "--cpus-per-task=1",
        "--cpu-bind=none",
        "--mpi=none",
        "--export=ALL",
        "--input=all",
        # One that ends early ends no other one.
        "--kill-on-bad-exit=0",
        "--wait=0",
    )
    env = tuple((name, value) for name, value in os.environ.items() if name not in _OTHERS)
    return NodeStep(nodes=nodes, argv=argv, env=env, variable="SLURMD_NODENAME")
