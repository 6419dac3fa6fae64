"""The batch script of a job: what Slurm is asked for, as `#SBATCH` lines, and the program behind it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from gpudebug.core.cluster.jobs import BatchJob
from gpudebug.core.config import SlurmSettings

NO_FOLDER, NO_SETUP, NO_PROGRAM = 71, 72, 73
"""Statuses of a script whose node does not see the folder, failed in `setup`, or does not see the Python."""
_PLAIN = re.compile(r"[\w@%+=:,./-]+", re.ASCII)


def rendered(job: BatchJob, settings: SlurmSettings) -> str:
    """Return the script, complete. ValueError for a name or a path that cannot be written in it."""
    for text in (job.name, job.cwd, job.log):
        if re.search(r"[\x00-\x1f\x7f]", text):
            raise ValueError(f"{text!r} has a control character")
    if "\\" in job.log:
        raise ValueError(f"{job.log!r} has a backslash, which Slurm reads as its own")
    lines = [
        "#!/bin/bash",
        *(f"#SBATCH {_directive(word)}" for word in options(job, settings)),
        "",
        *_body(job, settings),
    ]
    return "\n".join(lines) + "\n"


def options(job: BatchJob, settings: SlurmSettings) -> Iterator[str]:
    """Yield the options of `sbatch`; those of `extra` are last, and count where one is given twice."""
    yield f"--job-name={job.name}"
    for name in ("partition", "account", "qos"):
        if getattr(settings, name) is not None:
            yield f"--{name}={getattr(settings, name)}"
    yield f"--nodes={settings.nodes}"
    yield "--ntasks-per-node=1"
    if settings.gpus_per_node != "0":
        yield f"--gpus-per-node={settings.gpus_per_node}"
    if settings.cpus_per_task is not None:
        yield f"--cpus-per-task={settings.cpus_per_task}"
    if settings.time is not None:
        yield f"--time={clock(settings.time)}"
    if settings.constraint is not None:
        yield f"--constraint={settings.constraint}"
    if settings.exclusive:
        yield "--exclusive"
    if job.elements:
        yield f"--array={ranges(job.elements)}%{job.at_once}"
    yield f"--output={job.log.replace('%', '%%').replace('{job}', '%A_%a' if job.elements else '%j')}"
    yield "--open-mode=append"
    yield f"--signal=B:USR1@{_seals(job, settings)}"
    yield "--requeue"
    yield "--export=ALL"
    yield from settings.extra


def ranges(numbers: Sequence[int]) -> str:
    """`1-3,7` of 1, 2, 3, 7."""
    found: list[list[int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ",".join(f"{low}" if low == high else f"{low}-{high}" for low, high in found)


def _seals(job: BatchJob, settings: SlurmSettings) -> int:
    """Seconds before the limit: of a short one no more than a sixth, or nothing could run in it."""
    return job.seal_s if settings.time is None else min(job.seal_s, int(settings.time) // 6)


def clock(seconds: float) -> str:
    """`1-12:00:00`; Slurm counts whole minutes and rounds up."""
    minutes = -(-int(seconds) // 60)
    days, rest = divmod(minutes, 24 * 60)
    return (f"{days}-" if days else "") + f"{rest // 60:02}:{rest % 60:02}:00"


def _directive(word: str) -> str:
    """One word as sbatch reads it: in double quotes, with `\\` before what would end or escape."""
    if _PLAIN.fullmatch(word):
        return word
    return '"' + re.sub(r'(["\\])', r"\\\1", word) + '"'


def _body(job: BatchJob, settings: SlurmSettings) -> Iterator[str]:
    cwd, program = shlex.quote(job.cwd), shlex.quote(job.argv[0])
    yield f"cd -- {cwd} || {_refusal('does not see the folder', job.cwd, NO_FOLDER)}"
    if settings.cpus_per_task is not None:
        yield "# Steps of Slurm 22.05 and 23.02 do not inherit it."
        yield f"export SRUN_CPUS_PER_TASK={settings.cpus_per_task}"
    for name, value in job.env:
        yield f"export {name}={shlex.quote(value)}"
    if settings.setup:
        yield "{"
        yield settings.setup
        yield f"}} || {_refusal('failed in', 'runner.slurm.setup', NO_SETUP)}"
    yield f"[ -x {program} ] || {_refusal('does not see', job.argv[0], NO_PROGRAM)}"
    # In the place of the shell, which would hold signals back until its child has ended.
    yield f"exec {shlex.join(job.argv)}"


def _refusal(what: str, which: str, status: int) -> str:
    text = shlex.quote(f"{what} {which}")
    return f'{{ echo "gpudebug: node $SLURMD_NODENAME" {text} >&2; exit {status}; }}'
