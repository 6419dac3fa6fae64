"""Why `sbatch` refused a job, and what to change in `runner.slurm`."""

from __future__ import annotations

import re

from gpudebug.core.config import SlurmSettings

_NOISE = re.compile(r"^(sbatch|srun|squeue|allocation failure|error|fatal|lua)\s*:\s*", re.IGNORECASE)
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


_COMPLAINT = re.compile(r"^(?:sbatch|srun|squeue): (?:error|fatal): ")
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
