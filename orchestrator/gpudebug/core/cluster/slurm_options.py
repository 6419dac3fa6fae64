"""What a user asks of `sbatch` beside the keys of `runner.slurm`: by words of `extra`, and by variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpudebug.core.config import SlurmSettings

_GPUS = ("--gres", "--gpus", "-G", "--gpus-per-node", "--gpus-per-task", "--gpus-per-socket")


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
    """The value of the last of these options in `words`: `--mem=1G`, `-pgpu`; `""` without one."""
    found = None
    for word in words:
        for name in names:
            if name.startswith("--"):
                given, _, value = word.partition("=")
                found = value if given == name else found
            elif word.startswith(name) and not word.startswith("--"):
                found = word[len(name) :]
    return found


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
