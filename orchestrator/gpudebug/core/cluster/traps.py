"""What an allocation is often given by mistake, named before a run is made in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

from gpudebug.core.cluster.jobs import InsideJob

# Sites name a job's own scratch so; Slurm itself names none.
_SCRATCH = ("SLURM_TMPDIR", "TMPDIR", "JOBFS", "LOCAL_SCRATCH", "SCRATCH_LOCAL", "PBS_JOBFS")
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh"})
_STEP = re.compile(r"(?<![\w./-])(?:[\w./-]*/)?srun(?=\s)")
_OF_A_TASK = re.compile(r"\$\{?(SLURM_(?:NODEID|PROCID|LOCALID))\b")
_QUOTED = re.compile(r"""\\.|'[^']*'|"(?:\\.|[^"\\])*\"""", re.DOTALL)
_NO_VARIABLE = re.compile(r"\\.|[;&|\n]", re.DOTALL)
# `2>&1`, `&>` and `>|` redirect.
_ENDS = re.compile(r"[;\n]|(?<![<>])&(?!>)|(?<!>)\|")
_PER_TASK = re.compile(r"(?<!\S)--gpus-per-task(?:[=\s]|$)")


def traps(
    job: InsideJob, argv: Sequence[str], environ: Mapping[str, str], cores: int, folder: PurePath
) -> tuple[str, ...]:
    """Return each in a line, with what to change; () if nothing is wrong.

    `argv` is the workload's command, `environ` the step's variables, `cores` how many of the node's it may
    use, and `folder` where the campaign is.
    """
    found = (_cores(job, cores), _gpus(argv, environ), _too_early(argv), _scratch(job, environ, folder))
    return tuple(line for each in found for line in each)


def _cores(job: InsideJob, cores: int) -> Iterator[str]:
    """Slurm 22.05 and 23.02 give a step one core for a task unless `srun` is told of more; in any version it
    may be told of fewer. The option is heard by all of them, SRUN_CPUS_PER_TASK by those two alone."""
    asked = job.cpus_per_task
    if asked is None or cores >= asked:
        return
    may = "1 core" if cores == 1 else f"{cores} cores"
    yield (
        f"this step may use {may} of the {asked} that job {job.id} asked for a task, and all loader workers "
        f"share them: give them to the step, srun --cpus-per-task={asked}"
    )


def _gpus(argv: Sequence[str], environ: Mapping[str, str]) -> Iterator[str]:
    if environ.get("SLURM_GPUS_PER_TASK") or any(map(_PER_TASK.search, argv)):
        yield (
            "--gpus-per-task hides the GPUs of a node from each other, so that NCCL copies by host memory: "
            "use --gpus-per-node, and let each rank choose its GPU by LOCAL_RANK"
        )


def _too_early(argv: Sequence[str]) -> Iterator[str]:
    """A shell replaces what a task is called by before `srun` has started one: it is its own, the first's."""
    if len(argv) != 3 or PurePath(argv[0]).name not in _SHELLS or argv[1] != "-c":
        return
    _, *steps = _STEP.split(_QUOTED.sub(_replaced, argv[2]))
    # What comes behind the end of the step's own command is the shell's.
    named = next(filter(None, (_OF_A_TASK.search(_ENDS.split(step, maxsplit=1)[0]) for step in steps)), None)
    if named is not None:
        yield (
            f"the shell replaces ${named[1]} before srun starts a task, and each gets the first one's: "
            f"have a shell in the step read it, srun bash -c '... ${named[1]} ...'"
        )


def _replaced(quoted: re.Match[str]) -> str:
    """Return what of a quoted text a shell replaces variables in."""
    return _NO_VARIABLE.sub(" ", quoted[0]) if quoted[0].startswith('"') else " "


def _scratch(job: InsideJob, environ: Mapping[str, str], folder: PurePath) -> Iterator[str]:
    """Yield a folder of the job's own, by a variable or by the job's number in its path."""
    places = {name: PurePath(environ[name]) for name in _SCRATCH if environ.get(name)}
    inside = (name for name, path in places.items() if len(path.parts) > 2 and path in folder.parents)
    own = next(inside, None)
    numbered = any(re.search(rf"(?<!\d){job.id}(?!\d)", part) for part in folder.parts)
    if own is not None or numbered:
        why = f"it is in {own}" if own is not None else f"its path has the number of job {job.id}"
        yield (
            f"the campaign's folder {folder} may vanish with the job ({why}): keep it on a file system that "
            "outlives jobs, and copy data alone to scratch"
        )
