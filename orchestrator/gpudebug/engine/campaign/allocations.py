"""A campaign that is measured in allocations of a cluster: what of it counts in which, and which live."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpudebug.core.cluster.jobs import JobState
from gpudebug.core.errors import GpudebugError
from gpudebug.edges import store
from gpudebug.engine.campaign.files import read_config
from gpudebug.engine.campaign.runner import cluster_of

"""What of a baseline's identity a login node does not know: another Python may be there, and no GPU."""


def allocation_of_run(record: Mapping[str, Any]) -> str | None:
    """Return the allocation that a run was made in, by its record: `412.1`; None outside of any."""
    found = (record.get("node") or {}).get("allocation")
    return found if isinstance(found, str) else None


def living_jobs(workspace: store.Workspace) -> store.Lives:
    """Asks the campaign's cluster whether a job has its nodes; None if it does not say or there is none."""

    def lives(job: str) -> bool | None:
        try:
            cluster = cluster_of(workspace, read_config(workspace))
            seen = cluster.states((job,))[0] if cluster is not None else None
        except GpudebugError:
            return None
        if seen is None or seen.state is JobState.UNKNOWN:
            return None
        return seen.state in (JobState.RUNNING, JobState.PAUSED, JobState.CLEANING)

    return lives
