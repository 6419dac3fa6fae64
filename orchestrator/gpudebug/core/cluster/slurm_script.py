"""The batch script of a job: what Slurm is asked for, as `#SBATCH` lines, and the program behind it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpudebug.core.cluster.jobs import BatchJob
from gpudebug.core.config import SlurmSettings

# What the script gives whatever the settings, as sbatch calls its variables (a variable counts before the
# script), and what would have it do something else: be an array, block, ask a login shell for variables.
_OURS = (
    *("JOB_NAME", "OUTPUT", "ERROR", "INPUT", "OPEN_MODE", "SIGNAL", "REQUEUE", "NO_REQUEUE", "EXPORT"),
    *("GET_USER_ENV", "ARRAY_INX", "WAIT"),
)
# A job's own steps would not hand on what marks its processes.
_EXPORTS = ("SLURM_EXPORT_ENV", "SRUN_EXPORT_ENV")
_OF_THE_CLUSTER = ("SLURM_CONF", "SLURM_CLUSTERS")
_GPUS = ("--gres", "--gpus", "-G", "--gpus-per-node", "--gpus-per-task", "--gpus-per-socket")

# What srun does not know or means otherwise, and what a short job of one task a node asks for itself.
_SBATCHS = (
    *("--array", "-a", "--batch", "--export-file", "--get-user-env", "--gid", "--ignore-pbs", "--parsable"),
    *("--kill-on-invalid-dep", "--no-requeue", "--requeue", "--uid", "--wait", "-W", "--wait-all-nodes"),
    *("--wrap", "--signal", "--output", "-o", "--error", "-e", "--input", "-i", "--open-mode", "--job-name"),
    *("-J",),
    *("--nodes", "-N", "--ntasks", "-n", "--ntasks-per-node", "--time", "-t"),
)


@dataclass(frozen=True, slots=True)
class AskedOf:
    """What a job asks a partition for, as far as it is known before it is submitted.

    `partitions` is empty if the cluster chooses. Whatever else is None is not checked: an option that says it
    in its own way counts, or a QOS may lift the limit.
    """

    partitions: tuple[str, ...] = ()
    nodes: int | None = None
    cores: int | None = None
    gpus: str | None = None
    time_s: float | None = None


def option(words: Sequence[str], *names: str) -> str | None:
    """Return the value of the last of these options in `words`: `--mem=1G`, `-pgpu`; `""` without one."""
    found = None
    for word in words:
        for name in names:
            if name.startswith("--"):
                given, _, value = word.partition("=")
                found = value if given == name else found
            elif word.startswith(name) and not word.startswith("--"):
                found = word[len(name) :]
    return found


def for_srun(words: Sequence[str]) -> tuple[str, ...]:
    """Return those options of `sbatch` that a short `srun` in the job's place takes too."""
    return tuple(word for word in words if option((word,), *_SBATCHS) is None)


def asked_of(settings: SlurmSettings, environ: Mapping[str, str]) -> AskedOf:
    """What `sbatch` will ask for: an option of `extra` counts before a key, and a key before a variable."""
    extra = settings.extra
    partition = option(extra, "--partition", "-p") or settings.partition or environ.get("SBATCH_PARTITION")
    qos = option(extra, "--qos", "-q") or settings.qos or environ.get("SBATCH_QOS")
    # A QOS with the flag PartitionTimeLimit allows more than its partition does.
    free = qos is not None or option(extra, "--time", "-t") is not None
    return AskedOf(
        partitions=tuple(name for name in (partition or "").split(",") if name),
        nodes=settings.nodes if option(extra, "--nodes", "-N") is None else None,
        cores=settings.cpus_per_task if option(extra, "--cpus-per-task", "-c") is None else None,
        gpus=settings.gpus_per_node if option(extra, *_GPUS) is None else None,
        time_s=None if free else settings.time,
    )


def environment(environ: Mapping[str, str], settings: SlurmSettings) -> dict[str, str]:
    """Return the environment of `sbatch`, without what would overrule the script.

    A user's default for an option that the script gives goes, and the variables of an allocation around us.
    Resources that the script does not ask for stay: memory, a reservation, an account.
    """
    given = {name.upper() for name in SlurmSettings.model_fields if getattr(settings, name)}
    if settings.time is not None:
        given.add("TIMELIMIT")
    dropped = {*(f"SBATCH_{name}" for name in (*given, *_OURS)), *_EXPORTS}
    around = "SLURM_JOB_ID" in environ
    return {
        name: value
        for name, value in environ.items()
        if name not in dropped
        and not (around and name.startswith(("SLURM_", "SLURMD_")) and name not in _OF_THE_CLUSTER)
    }


def several_clusters(settings: SlurmSettings, environ: Mapping[str, str]) -> str | None:
    """The cluster that a job would be sent to and never be asked of again; None if there is one for all.

    `--clusters` and SBATCH_CLUSTERS are `sbatch`'s alone; SLURM_CLUSTERS is heard by every command.
    """
    asked = option(settings.extra, "--clusters", "--cluster", "-M")
    everywhere = environ.get("SLURM_CLUSTERS", "")
    if asked is None:
        asked = environ.get("SBATCH_CLUSTERS")
    if asked is not None and asked != everywhere:
        return asked
    return everywhere if "," in everywhere or everywhere == "all" else None


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
