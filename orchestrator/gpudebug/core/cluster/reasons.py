"""Why a job waits: Slurm's reason in plain words, whether waiting can help, and what to change."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WaitReason:
    """`text` explains the cluster's word; `never`: it cannot start as it was asked for; `next`: a remedy."""

    text: str
    never: bool = False
    next: str | None = None


_CONFIG = "runner.slurm"
_WAIT = {
    "": "it has not been considered yet",
    "None": "it has not been considered yet",
    "Resources": "all fitting nodes are busy",
    "Priority": "jobs of higher priority wait before it",
    "Licenses": "its licences are in use",
    "JobArrayTaskLimit": "as many of its array run as runner.slurm.parallel allows",
    "Reservation": "its reservation has not begun",
    "Dependency": "it waits for another job",
    "Prolog": "its node is being prepared",
    "Cleaning": "its last attempt is being cleaned up",
    "COMPLETING": "its last attempt is being cleaned up",
    "STAGE_OUT": "what its last attempt wrote is being copied",
    "PartitionConfig": "the partition has not been considered yet",
    "QOSGrpCpuLimit": "the QOS has its CPUs in use",
    "QOSGrpGRES": "the QOS has its GPUs in use",
    "MaxGRESPerAccount": "the account has its GPUs in use",
    "AssocGrpGRES": "the account has its GPUs in use",
    "AssocGrpJobsLimit": "the account runs as many jobs as it may",
    "AssocMaxJobsLimit": "you run as many jobs as the account allows",
    "QOSMaxJobsPerUserLimit": "you run as many jobs as the QOS allows",
    "QOSMaxGRESPerUser": "you use as many GPUs as the QOS allows",
    "SUSPENDED": "it keeps its nodes and is stopped",
    "STOPPED": "it keeps its nodes and is stopped",
    "ReqNodeNotAvail": "a node that it needs is down, drained or reserved",
    "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions": (
        "the nodes that it needs are down, drained or reserved"
    ),
}
CLEANING = frozenset({"COMPLETING", "STAGE_OUT"})
"""States in which a job's processes have ended; what becomes of it is not said yet."""
_LIMITED = frozenset({"AssocMaxJobsLimit", "AssocGrpJobsLimit", "QOSMaxJobsPerUserLimit"})
_NEVER = {
    "PartitionTimeLimit": ("the partition allows less time", f"lower {_CONFIG}.time"),
    "PartitionNodeLimit": ("the partition allows fewer nodes", f"lower {_CONFIG}.nodes"),
    "PartitionDown": ("the partition is down", f"choose another {_CONFIG}.partition, or wait for it"),
    "PartitionInactive": ("the partition is inactive", f"choose another {_CONFIG}.partition"),
    "BadConstraints": ("no node has these features or GPUs", f"change {_CONFIG}.constraint or gpus_per_node"),
    "InvalidAccount": ("the account may not use the partition", f"correct {_CONFIG}.account"),
    "InvalidQOS": ("the QOS may not be used", f"correct {_CONFIG}.qos"),
    "QOSNotAllowed": ("the partition does not allow the QOS", f"correct {_CONFIG}.qos"),
    "AccountNotAllowed": ("the partition does not allow the account", f"correct {_CONFIG}.account"),
    "JobHeldUser": ("it is held", "release it: scontrol release JOB"),
    "JobHeldAdmin": ("an administrator holds it", "ask the cluster's administrators"),
    "JobHoldMaxRequeue": ("it was requeued too often", "gpudebug stop, then gpudebug next"),
    "launch failed requeued held": ("its start failed on the node", "gpudebug stop, then gpudebug next"),
    "DependencyNeverSatisfied": ("the job that it waits for failed", f"correct {_CONFIG}.extra"),
    "Reservation deleted": ("its reservation was deleted", f"correct {_CONFIG}.extra"),
}
# Limits of what one job may ask for, in Slurm's names: Assoc or QOS, Max, a resource, PerJob or PerNode.
_TOO_MUCH = ("PerJob", "PerJobLimit", "PerNode", "PerNodeLimit", "WallDurationPerJobLimit", "TimeLimit")


def explained(reason: str) -> WaitReason:
    """Explain Slurm's reason of a waiting job; an unknown one is repeated, and waiting may help."""
    word = reason.strip("() ").split(",")[0]
    if word in _NEVER:
        why, change = _NEVER[word]
        return WaitReason(f"{word}: {why}", never=True, next=change)
    if "Max" in word and word.endswith(_TOO_MUCH):
        why = "it asks for more than one job may have"
        return WaitReason(f"{word}: {why}", never=True, next=f"lower {_CONFIG}.time, nodes or gpus_per_node")
    meaning = _WAIT.get(word)
    shown = meaning if word in ("", "None") else f"{word}: {meaning}" if meaning else word
    return WaitReason(str(shown), next="end a job of yours, or wait" if word in _LIMITED else None)
