"""Whether the cluster failed a run in a job of it, and not the run's own command, as its last lines say.

Slurm's texts are those of srun and slurmstepd, 20.11 to 25.05; what may be the command's own fault (a step's
own time limit, nodes that it cannot have, ranks that it kills itself) is not among them.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence

_REFUSED = (
    r"Unable to contact slurm controller|[Ss]ocket timed out|Zero Bytes were transmitted|already completing"
    r"|Invalid job id specified|[Cc]ommunication connection failure|Unexpected message received"
    r"|Protocol authentication error|backup controller|Connection (?:refused|reset|timed out)"
)
_STEP = re.compile(
    rf"srun: error: (?:Unable to (?:create step|confirm allocation) for job .*"
    r"|Task launch for .* failed on .*"
    rf"|Application launch failed.*)(?:{_REFUSED})"
    r"|srun: error: Node failure on \S"
    r"|slurmstepd: error: \*\*\* (?:JOB|STEP) .{1,200} DUE TO (?:PREEMPTION|NODE FAILURE|JOB REQUEUE)"
)
# What torchrun raises that got the signal itself; one that closes its ranks prints something else.
_TOLD_TO_END = re.compile(rf"SignalException: .*\bgot signal: {int(signal.SIGTERM)}\b")


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
