"""One command of a scheduler, run to its end: found on PATH, in plain English, bounded in time."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpudebug.core.cluster.jobs import NodeStep
from gpudebug.core.errors import ClusterError

LONGEST_S = 60.0
"""A command that a controller leaves waiting is ended: Slurm's own give up after some 20 s by default."""
# A user's own defaults would change what is printed: formats, filters, sorting.
_DEFAULTS = ("SQUEUE_", "SACCT_", "SINFO_", "SCONTROL_", "SCANCEL_")
_MOST_BYTES = 64 * 2**20
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


@dataclass(frozen=True, slots=True)
class CommandAnswer:
    """`status` is None if the command is not on PATH or did not end in time; `error` says so then."""

    status: int | None
    out: str = ""
    error: str = ""

    @property
    def missing(self) -> bool:
        return self.status is None and not self.late

    @property
    def late(self) -> bool:
        return self.status is None and self.error.startswith("no answer")

    @property
    def why(self) -> str:
        """The last line that it complained in, without the command's name."""
        lines = [line.strip() for line in self.error.splitlines() if line.strip()]
        return lines[-1] if lines else f"status {self.status}"


def available(name: str) -> str | None:
    """Return the path of a scheduler's command; None if there is none."""
    return shutil.which(name)


def ask(
    name: str,
    *arguments: str,
    stdin: str = "",
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    within_s: float | None = None,
) -> CommandAnswer:
    """Run the command `name` with `arguments`, for `LONGEST_S` at most by default. Raises nothing."""
    within_s = LONGEST_S if within_s is None else within_s
    program = available(name)
    if program is None:
        return CommandAnswer(None, error=f"{name} is not on PATH")
    surrounding = os.environ if env is None else env
    plain = {k: v for k, v in surrounding.items() if not k.startswith(_DEFAULTS)}
    try:
        done = subprocess.run(
            [program, *arguments],
            input=stdin.encode("utf-8", "surrogateescape"),
            capture_output=True,
            env={**plain, "LC_ALL": "C"},
            cwd=cwd,
            timeout=within_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return CommandAnswer(None, error=f"no answer of {name} within {within_s:g} s")
    except OSError as e:
        return CommandAnswer(126, error=f"{name}: {e.strerror}")
    out, error = (data[:_MOST_BYTES].decode("utf-8", "replace") for data in (done.stdout, done.stderr))
    return CommandAnswer(done.returncode, out, error)


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
