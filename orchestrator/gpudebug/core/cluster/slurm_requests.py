"""What is asked of `sbatch`, as a batch script, and what of it a cluster's partitions can never give."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gpudebug.core.cluster.jobs import BatchJob
from gpudebug.core.cluster.slurm_states import seconds
from gpudebug.core.config import SlurmSettings
from gpudebug.core.config.runners import count_of
from gpudebug.core.lazy import regex

SINFO = ("-h", "-a", "-N", "-o", "%P|%a|%l|%D|%c|%G|%o")
"""Of each node in each of its partitions: partition (`*` marks the default), availability, time limit, number
of nodes, cores, GRES, address. One question of the controller."""
_MOST_NAMED = 8


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes of one kind in a partition. `limit_s` is None without a limit; `gres` as Slurm writes it."""

    partition: str
    default: bool
    up: bool
    limit_s: float | None
    nodes: int
    cores: int
    gres: str


@dataclass(frozen=True, slots=True)
class RequestProblem:
    """What of a request cannot be given, and the setting to change."""

    message: str
    next: str


def node_groups(text: str) -> tuple[NodeGroup, ...]:
    """The lines of `sinfo SINFO`, equal nodes of a partition as one; lines of any other form are left out."""
    found: dict[NodeGroup, int] = {}
    for name, available, limit, nodes, cores, gres, _ in _rows(text):
        group = NodeGroup(
            partition=name.removesuffix("*"),
            default=name.endswith("*"),
            up=available == "up",
            limit_s=seconds(limit),
            nodes=0,
            cores=int(cores.removesuffix("+")),
            gres=gres,
        )
        found[group] = found.get(group, 0) + int(nodes)
    return tuple(replace(group, nodes=nodes) for group, nodes in found.items())


def addresses(text: str) -> tuple[str, ...]:
    """Return the nodes' addresses in the same lines."""
    return tuple(dict.fromkeys(address for *_, address in _rows(text) if address))


def _rows(text: str) -> Iterator[list[str]]:
    for line in text.splitlines():
        fields = line.strip().split("|")
        if len(fields) == 7 and fields[3].isdecimal() and re.fullmatch(r"\d+\+?", fields[4]):
            yield fields


def problem(groups: Sequence[NodeGroup], asked: AskedOf) -> RequestProblem | None:
    """The first thing that no partition asked for can give; None if there is none, or nothing is known.

    If the cluster chooses the partition, all of them are looked at for GPUs alone: a default partition says
    nothing of where a site's own plugin sends the job.
    """
    if not groups:
        return None
    if not asked.partitions:
        return next(_gpus(groups, asked, "this cluster"), None)
    return next(_problems(groups, asked), None)


def _problems(groups: Sequence[NodeGroup], asked: AskedOf) -> Iterator[RequestProblem]:
    names = list(dict.fromkeys(group.partition for group in groups))
    shown = ", ".join(names[:_MOST_NAMED]) + (" …" if len(names) > _MOST_NAMED else "")
    for name in asked.partitions:
        if name not in names:
            yield RequestProblem(
                f"there is no partition {name} here: {shown}", f"set runner.slurm.partition: {names[0]}"
            )
            return
    there = [group for group in groups if group.partition in asked.partitions]
    which = "partition " + ", ".join(dict.fromkeys(group.partition for group in there))
    if not any(group.up for group in there):
        yield RequestProblem(f"{which} is not up", "choose another runner.slurm.partition, or wait for it")
    yield from _time(there, asked, which)
    yield from _cores(there, asked, which)
    yield from _gpus(there, asked, which)
    yield from _nodes(there, asked, which)


def _time(there: Sequence[NodeGroup], asked: AskedOf, which: str) -> Iterator[RequestProblem]:
    limits = [group.limit_s for group in there]
    known = [limit for limit in limits if limit is not None]
    if asked.time_s is not None and len(known) == len(limits) and asked.time_s > max(known):
        most = max(known) / 60
        text = f"{most / 60:g}h" if most >= 60 else f"{most:g}m"
        yield RequestProblem(f"{which} allows {text} at most", f"set runner.slurm.time: {text}")


def _cores(there: Sequence[NodeGroup], asked: AskedOf, which: str) -> Iterator[RequestProblem]:
    cores = max(group.cores for group in there)
    if asked.cores is not None and asked.cores > cores:
        yield RequestProblem(
            f"no node of {which} has {asked.cores} cores, {cores} at most",
            f"set runner.slurm.cpus_per_task: {cores}",
        )


def _gpus(there: Sequence[NodeGroup], asked: AskedOf, which: str) -> Iterator[RequestProblem]:
    if not _fitting(there, asked):
        kinds = ", ".join(dict.fromkeys(g.gres for g in there if "gpu" in g.gres)) or "none"
        yield RequestProblem(
            f"no node of {which} has {asked.gpus} GPUs: {kinds}",
            "correct runner.slurm.gpus_per_node (0 asks for none), or choose another partition",
        )


def _nodes(there: Sequence[NodeGroup], asked: AskedOf, which: str) -> Iterator[RequestProblem]:
    # Of several partitions a job gets one, and a node may be in two: what they have together is too much.
    most = sum(group.nodes for group in _fitting(there, asked))
    if asked.nodes is not None and asked.nodes > most:
        yield RequestProblem(
            f"{which} has {most} such nodes, and {asked.nodes} are asked for",
            f"set runner.slurm.nodes: {most}",
        )


def _fitting(there: Sequence[NodeGroup], asked: AskedOf) -> list[NodeGroup]:
    return [group for group in there if asked.gpus is None or gpus_in(group.gres, asked.gpus)]


def gpus_in(gres: str, asked: str) -> bool:
    """Tell whether a node with `gpu:a100:4(S:0-1),nvme:1` has what is asked for: `4`, `a100:2`."""
    wanted, kind = count_of(asked), asked.rpartition(":")[0]
    if not wanted:
        return True
    have = 0
    for item in re.sub(r"\([^)]*\)", "", gres).split(","):
        words = item.split(":")
        if words[0] != "gpu" or not words[-1].isdecimal() or len(words) > 3:
            continue
        if not kind or (len(words) == 3 and words[1] == kind):
            have += int(words[-1])
    return have >= wanted


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
_PLAIN = regex(r"[\w@%+=:,./-]+", re.ASCII)


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
