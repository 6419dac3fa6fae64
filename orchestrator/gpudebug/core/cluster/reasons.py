"""Why a job waits, is refused or is ended by the cluster: Slurm's words explained, and what to change."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpudebug.core.cluster.jobs import SeenJob
from gpudebug.core.config import SlurmSettings
from gpudebug.core.lazy import regex

_REFUSED = (
    r"Unable to contact slurm controller|[Ss]ocket timed out|Zero Bytes were transmitted|already completing"
    r"|Invalid job id specified|[Cc]ommunication connection failure|Unexpected message received"
    r"|Protocol authentication error|backup controller|Connection (?:refused|reset|timed out)"
)
_STEP = regex(
    rf"srun: error: (?:Unable to (?:create step|confirm allocation) for job .*"
    r"|Task launch for .* failed on .*"
    rf"|Application launch failed.*)(?:{_REFUSED})"
    r"|srun: error: Node failure on \S"
    r"|slurmstepd: error: \*\*\* (?:JOB|STEP) .{1,200} DUE TO (?:PREEMPTION|NODE FAILURE|JOB REQUEUE)"
)
# What torchrun raises that got the signal itself; one that closes its ranks prints something else.
_TOLD_TO_END = regex(rf"SignalException: .*\bgot signal: {int(signal.SIGTERM)}\b")


def failed_by_cluster(quoted: Sequence[str], tail: str, ended_by: int | None) -> str | None:
    """Return what says so of a run that crashed; None if its command may be the cause.

    `quoted` are the lines that explain its failure, the one that says most last, `tail` is its log's end,
    and `ended_by` a signal. In a job only the cluster ends a step with SIGTERM: after gpudebug's own the run
    has not crashed. But srun may do so to the ranks that are left when one raised an error.
    """
    if (line := _STEP.search(tail)) is not None:
        return line[0]
    if quoted and _TOLD_TO_END.search(quoted[-1]):
        return quoted[-1]
    if ended_by == signal.SIGTERM and "Traceback (most recent call last)" not in tail:
        return f"ended by signal {ended_by}"
    return None


_NOISE = regex(r"^(sbatch|srun|squeue|allocation failure|error|fatal|lua)\s*:\s*", re.IGNORECASE)
# Slurm's own texts (slurm_errno.c, and popt's of an option that is not known), most telling first.
_ADVICE = (
    (r"unrecognized option '(--?[\w-]+)|unknown option '?(--?[\w-]+)", "{option}"),
    (
        r"configuration source|unable to (open|stat|process).*(slurm\.conf|configuration)",
        "work on the cluster's login node: Slurm's commands are here, and no slurm.conf (or set SLURM_CONF)",
    ),
    (r"invalid partition", "correct runner.slurm.partition (here: sinfo -o %P)"),
    (r"no partition specified or system default", "set runner.slurm.partition (here: sinfo -o %P)"),
    (
        r"account.*partition|invalid account",
        "correct runner.slurm.account (yours: sacctmgr show associations)",
    ),
    (r"invalid qos|qos.*not (permitted|allowed)", "correct runner.slurm.qos"),
    (r"invalid feature", "correct runner.slurm.constraint (here: sinfo -o %f)"),
    (
        r"generic resource|gres",
        "correct runner.slurm.gpus_per_node (here: sinfo -o '%P %G'); 0 asks for none",
    ),
    (
        r"violates accounting|QOSMax\w+|AssocMax\w+|AssocGrp\w+|MaxSubmit\w+|job submit limit",
        "end or wait for other jobs of yours (squeue --me), or ask for less in runner.slurm",
    ),
    (r"job array", "test fewer hypotheses at once (here: scontrol show config | grep MaxArraySize)"),
    (r"time limit|TimeLimit", "lower runner.slurm.time (here: sinfo -o '%P %l')"),
    (
        r"node configuration is not available|more processors|too many nodes|node count",
        "lower runner.slurm.nodes, gpus_per_node or cpus_per_task, or correct constraint (here: sinfo -N -l)",
    ),
    (r"memory", "correct --mem in runner.slurm.extra"),
    (
        r"unable to contact|timed out|communication|connection refused",
        "wait for Slurm's controller, then try again",
    ),
    (r"access/permission denied|permission", "ask the cluster's administrators for access"),
)


_COMPLAINT = regex(r"^(?:sbatch|srun|squeue): (?:error|fatal): ")
_SUBMISSION = "Batch job submission failed: "
# What Slurm says for any refusal of a site's own plugin, which says why in a line before.
_EMPTY = frozenset({"Unspecified error", ""})
_MOST_LINES = 6
_MOST_SHOWN = 500


def reason(error: str) -> str:
    """Slurm's own reason and what a site's plugin says, the cause first, without the commands' names.

    Slurm names the limit in a line and the kind of refusal in the next; without lines of its complaints the
    last line counts.
    """
    lines = [line.strip() for line in error.splitlines()]
    said = [line for line in lines if _COMPLAINT.match(line)]
    if not said:
        said = [line for line in lines if line and not line.startswith("Try ")][-1:]
    texts = list(dict.fromkeys(map(_plain, said)))
    telling = [text for text in texts if text not in _EMPTY] or texts
    return "; ".join(telling[-_MOST_LINES:])[:_MOST_SHOWN]


def _plain(line: str) -> str:
    while (shorter := _NOISE.sub("", line)) != line:
        line = shorter
    # `Batch job submission failed: Invalid partition name specified`
    return line.removeprefix(_SUBMISSION)


def advice(error: str, settings: SlurmSettings) -> str:
    """Return what to change; the request itself if the reason is not known."""
    for pattern, next in _ADVICE:
        match = re.search(pattern, error, re.IGNORECASE)
        if match:
            option = next == "{option}"
            return _option(str(match[1] or match[2]), settings) if option else next
    return "gpudebug submit --dry-run prints what was asked for"


def _option(name: str, settings: SlurmSettings) -> str:
    """Return an option that this Slurm does not have: which setting gave it."""
    if name == "--gpus-per-node":
        gpus = settings.gpus_per_node
        return f"this Slurm is older than 19.05: gpus_per_node: 0 and extra: [--gres=gpu:{gpus}]"
    given = any(word.split("=")[0] == name for word in settings.extra)
    return (
        f"remove {name} from runner.slurm.extra" if given else f"this Slurm does not know {name}: report it"
    )


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
_MOST_OF_A_REASON = 200


def explained(reason: str, job: str = "JOB") -> WaitReason:
    """Explain Slurm's reason why `job` waits; an unknown one is repeated, and waiting may help."""
    shown = reason.strip("() ")[:_MOST_OF_A_REASON]
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
