"""What a user asks of `sbatch` beside the keys of `runner.slurm`: by words of `extra`, and by variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
    *(
        "--wrap",
        "--signal",
        "--output",
        "-o",
        "--error",
        "-e",
        "--input",
        "-i",
        "--open-mode",
        "--job-name",
        "-J",
    ),
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
