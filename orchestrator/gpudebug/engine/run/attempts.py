"""How often a run was begun: what the cluster, a kill or its user cut off is run again."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from gpudebug.core.cluster.reasons import failed_by_cluster
from gpudebug.core.command.program import at_time_limit
from gpudebug.core.errors import GpudebugError
from gpudebug.core.records import Evidence, RunNode
from gpudebug.core.words import Outcome
from gpudebug.edges import launcher, store
from gpudebug.engine.run.job import PreparedRun

MOST_ATTEMPTS = 3
"""A run that the cluster failed so often in a row is not void any more: the machinery failed it."""
FAILED_STEP = "interrupted by the cluster, which failed it: "
NEAR_ITS_END = "is near its end: its time limit, or a preemption"
"""What the cluster says of a job, some time before it ends it."""
_LOOKED_AT = 20
_MOST_RUNS = 200
_TAIL = 16 << 10


def in_allocation(launched: launcher.Launched, node: RunNode | None) -> launcher.Launched:
    """How a run ended, in an allocation: a memory limit that it filled is its job's, which may ask for more.

    On a host of its own a run that fills its limit shows what the change needs; there it says nothing of it.
    """
    if node is None or launched.own_limit_mb is None:
        return launched
    why = f"it filled the memory of its job, {launched.own_limit_mb:.0f} MB: ask for more, --mem of Slurm"
    return replace(launched, own_limit_mb=None, reason=launched.reason or why)


def within_limit(launched: launcher.Launched, argv: Sequence[str]) -> launcher.Launched:
    """How a run ended whose command has a time limit of its own (`timeout 2h CMD`): that is no crash."""
    why = at_time_limit(argv, launched.exit_status) if launched.outcome is Outcome.CRASHED else None
    return replace(launched, outcome=Outcome.TIMED_OUT, reason=why) if why is not None else launched


def ended_by_cluster(
    launched: launcher.Launched, evidence: Evidence, log: Path, silent: Collection[str], attempt: int
) -> launcher.Launched:
    """Return how a run in an allocation ended, given its evidence and the nodes that fell `silent` in it:
    what the cluster did to one of its steps is void and run again, and never the command's own crash."""
    if launched.outcome is not Outcome.CRASHED:
        return launched
    tail = store.read_tail(log, _TAIL).decode("utf-8", "replace") if log.is_file() else ""
    quoted = evidence.failure.lines if evidence.failure is not None else ()
    ended_by = launched.signal or (launched.exit_status or 0) - 128
    why = failed_by_cluster(quoted, tail, ended_by)
    if why is None and silent:
        why = f"node {sorted(silent)[0]} did not answer when the run failed"
    if why is None:
        return launched
    reason = f"{FAILED_STEP}{why}"
    if attempt >= MOST_ATTEMPTS:
        reason = f"the cluster failed it {attempt} times in a row: {why}"
    return replace(launched, outcome=Outcome.INTERRUPTED, reason=reason)


def wasted(workspace: store.Workspace) -> int:
    """How many of the last allocations in a row ended, by the cluster's notice, before what was begun in them
    came to a verdict: each begins with a baseline of its own, so that the next one may do no better."""
    found, cut = list[str](), set[str]()
    for name in islice(reversed(workspace.run_names()), _MOST_RUNS):
        run = workspace.run(name)
        try:
            record = run.read("run.json")
        except (GpudebugError, ValueError):
            continue  # Nothing was launched in it.
        try:
            allocation = str(record["node"]["allocation"])
        except (LookupError, TypeError):
            break
        if "_" in allocation:
            continue  # An element of a job array is no allocation of the campaign.
        if allocation not in found:
            if found and found[-1] not in cut:
                break
            found.append(allocation)
        if run.has("verdict.json"):
            cut.discard(allocation)
            break
        if record.get("outcome") == Outcome.INTERRUPTED and NEAR_ITS_END in str(record.get("reason")):
            cut.add(allocation)
    return len(cut)


def counted(node: RunNode | None, workspace: store.Workspace, job: PreparedRun) -> RunNode | None:
    """Return the node with the number of this attempt; None outside of an allocation."""
    if node is None:
        return None
    return node.model_copy(update={"attempt": 1 + _cut_off(workspace, job)})


def _cut_off(workspace: store.Workspace, job: PreparedRun) -> int:
    """Return how many of the last runs of the same role and change, in a row, were cut off."""
    found = 0
    for name in islice(reversed(workspace.run_names()), _LOOKED_AT):
        try:
            record = workspace.run(name).read("run.json")
        except (GpudebugError, ValueError):
            continue
        same = ("role", job.role), ("hypothesis", job.change.hypothesis), ("change_digest", job.change.digest)
        if not isinstance(record, dict) or any(record.get(key) != value for key, value in same):
            continue
        if record.get("outcome") is None:
            continue  # The one that is under way.
        if record.get("outcome") != Outcome.INTERRUPTED:
            break
        found += 1
    return found
