"""What `sinfo` says of a cluster's partitions, and what of a request they can never give."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from gpudebug.core.cluster.slurm_script import AskedOf
from gpudebug.core.cluster.slurm_states import seconds
from gpudebug.core.config.runners import count_of

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
