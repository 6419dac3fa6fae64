"""Why a job waits: Slurm's reason in plain words, whether waiting can help, and what to change."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from gpudebug.core.cluster.jobs import SeenJob


@dataclass(frozen=True, slots=True)
class WaitReason:
    """`text` explains the cluster's word; `never`: it cannot start as it was asked for; `next`: a remedy."""

    text: str
    never: bool = False
    next: str | None = None


_CONFIG = "runner.slurm"
_RELEASE = "release it: scontrol release {job}"
_ANEW = "gpudebug stop, then gpudebug next"
_LIMITED = "end a job of yours, or wait"
_PARTITION = f"choose another {_CONFIG}.partition, or wait for it"

# Reasons that pass by themselves, or that an administrator may lift: the job stays in the queue.
_WAIT = {
    "": WaitReason("it has not been considered yet"),
    "None": WaitReason("it has not been considered yet"),
    "Resources": WaitReason("all fitting nodes are busy"),
    "Priority": WaitReason("jobs of higher priority wait before it"),
    "Licenses": WaitReason("its licences are in use"),
    "JobArrayTaskLimit": WaitReason("as many of its array run as runner.slurm.parallel allows"),
    "Reservation": WaitReason("its reservation has not begun"),
    "Dependency": WaitReason("it waits for another job"),
    "Prolog": WaitReason("its node is being prepared"),
    "Cleaning": WaitReason("its last attempt is being cleaned up"),
    "COMPLETING": WaitReason("its last attempt is being cleaned up"),
    "STAGE_OUT": WaitReason("what its last attempt wrote is being copied"),
    "BeginTime": WaitReason("it may not begin yet: a job that was requeued waits two minutes"),
    "PartitionConfig": WaitReason("it is against a limit of the partition", next=_PARTITION),
    "PartitionDown": WaitReason("the partition is down", next=_PARTITION),
    "PartitionInactive": WaitReason("the partition is inactive", next=_PARTITION),
    "JobHeldUser": WaitReason("it is held", next=_RELEASE),
    "JobHeldAdmin": WaitReason("an administrator holds it", next="ask the cluster's administrators, or wait"),
    "QOSGrpCpuLimit": WaitReason("the QOS has its CPUs in use"),
    "QOSGrpGRES": WaitReason("the QOS has its GPUs in use"),
    "MaxGRESPerAccount": WaitReason("the account has its GPUs in use"),
    "AssocGrpGRES": WaitReason("the account has its GPUs in use"),
    "AssocGrpJobsLimit": WaitReason("the account runs as many jobs as it may", next=_LIMITED),
    "AssocMaxJobsLimit": WaitReason("you run as many jobs as the account allows", next=_LIMITED),
    "QOSMaxJobsPerUserLimit": WaitReason("you run as many jobs as the QOS allows", next=_LIMITED),
    "QOSMaxGRESPerUser": WaitReason("you use as many GPUs as the QOS allows"),
    "SUSPENDED": WaitReason("it keeps its nodes and is stopped"),
    "STOPPED": WaitReason("it keeps its nodes and is stopped"),
    "ReqNodeNotAvail": WaitReason("a node that it needs is down, drained or reserved"),
}
CLEANING = frozenset({"COMPLETING", "STAGE_OUT"})
"""States in which a job's processes have ended; what becomes of it is not said yet."""


def _never(text: str, next: str) -> WaitReason:
    return WaitReason(text, never=True, next=next)


_NEVER = {
    "PartitionTimeLimit": _never("the partition allows less time", f"lower {_CONFIG}.time"),
    "PartitionNodeLimit": _never("the partition allows fewer nodes", f"lower {_CONFIG}.nodes"),
    "BadConstraints": _never(
        "no node has these features or GPUs", f"change {_CONFIG}.constraint or gpus_per_node"
    ),
    "InvalidAccount": _never("the account may not use the partition", f"correct {_CONFIG}.account"),
    "InvalidQOS": _never("the QOS may not be used", f"correct {_CONFIG}.qos"),
    "QOSNotAllowed": _never("the partition does not allow the QOS", f"correct {_CONFIG}.qos"),
    "AccountNotAllowed": _never("the partition does not allow the account", f"correct {_CONFIG}.account"),
    "MaxMemPerLimit": _never("the partition allows less memory", f"lower --mem in {_CONFIG}.extra"),
    "JobHoldMaxRequeue": _never("it was requeued too often", _ANEW),
    "DependencyNeverSatisfied": _never("the job that it waits for failed", f"correct {_CONFIG}.extra"),
    "ReservationDeleted": _never("its reservation was deleted", f"correct {_CONFIG}.extra"),
    "ReservationInvalid": _never("its reservation is invalid", f"correct {_CONFIG}.extra"),
}
# What Slurm says in a sentence (squeue prints it as it is, scontrol with `_` for each blank), first match.
_SENTENCES = (
    (
        r"Reserved for maintenance",
        WaitReason(
            "a maintenance begins before it could end",
            next=f"lower {_CONFIG}.time so that it ends before, or wait",
        ),
    ),
    (r"Nodes required for job are DOWN", WaitReason("the nodes that it needs are down, drained or reserved")),
    (r"Reservation .* was deleted", _NEVER["ReservationDeleted"]),
    (r"Reservation .* is invalid", _NEVER["ReservationInvalid"]),
    (r"launch fail.* requeued held", _never("its start failed on the node", _ANEW)),
    (
        r"user env retrieval failed requeued held",
        _never("Slurm could not read the user's login environment", f"remove --export from {_CONFIG}.extra"),
    ),
    (r"job requeued in (?:held|special exit) state", WaitReason("it is held", next=_RELEASE)),
)
# Slurm's names of limits: Assoc or QOS, Max or Grp or Min, a resource, what it is counted over.
_LIMITS = (
    (
        r"\w*Max\w*(?:PerJob|PerNode|PerJobLimit|PerNodeLimit|TimeLimit)",
        _never("it asks for more than one job may have", f"lower {_CONFIG}.time, nodes or gpus_per_node"),
    ),
    (
        r"QOSMin\w+",
        _never(
            "it asks for less than a job of the QOS has to", f"raise {_CONFIG}.gpus_per_node, or change qos"
        ),
    ),
    (r"(?:Assoc|QOS)Grp\w*RunMinutes\w*", WaitReason("running jobs have all the time that may be in use")),
    (
        r"(?:Assoc|QOS)Grp\w*(?:Minutes|Wall)\w*",
        WaitReason("the time that was granted is used up", next=f"change {_CONFIG}.account or qos, or wait"),
    ),
)
_MOST_SHOWN = 200


def explained(reason: str, job: str = "JOB") -> WaitReason:
    """Explain Slurm's reason why `job` waits; an unknown one is repeated, and waiting may help."""
    shown = reason.strip("() ")[:_MOST_SHOWN]
    found = _meaning(shown)
    if found is None:
        return WaitReason(shown)
    text = found.text if shown in ("", "None") else f"{shown}: {found.text}"
    return replace(found, text=text, next=found.next and found.next.format(job=job))


def _meaning(shown: str) -> WaitReason | None:
    sentence = shown.replace("_", " ")
    for pattern, meaning in _SENTENCES:
        if re.search(pattern, sentence):
            return meaning
    word = shown.split(",", maxsplit=1)[0]
    known = _NEVER.get(word) or _WAIT.get(word)
    return known or next((meaning for pattern, meaning in _LIMITS if re.fullmatch(pattern, word)), None)


def unknown(cluster: str, job: SeenJob) -> str | None:
    """Return what to say of a job in an unknown state; None if the cluster was not asked yet."""
    if job.word:
        return f"job {job.id} is {job.word}, a state that gpudebug does not know; it is waited for"
    return f"{cluster} does not answer ({job.reason}); job {job.id} is waited for" if job.reason else None


def unlogged(job: SeenJob, log: str) -> str:
    """Return why the program of a job never began whose log the node could not open."""
    where = f"node {', '.join(job.nodes)}" if job.nodes else "its node"
    return f"{where} could not write {log}: it does not see the folder, or may not write there"
