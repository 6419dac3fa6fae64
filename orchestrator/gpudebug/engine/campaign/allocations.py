"""A campaign that is measured in allocations of a cluster: what of it counts in which, and which live."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpudebug.core.campaign.allocation import afresh
from gpudebug.core.cluster.jobs import JobState
from gpudebug.core.config import Config
from gpudebug.core.errors import GpudebugError
from gpudebug.edges import clusters, store
from gpudebug.engine.campaign.campaign import CampaignBaseline
from gpudebug.engine.campaign.files import read_config

_OF_NODES = ("interpreter", "device")
"""What of a baseline's identity a login node does not know: another Python may be there, and no GPU."""


def of_this_allocation(baseline: CampaignBaseline) -> CampaignBaseline:
    """Return the baseline, no valid one if this process measures in another allocation than it did."""
    here = clusters.inside()
    if here is None or baseline.why is not None:
        return baseline
    why = afresh(map(allocation_of_run, baseline.records), here.allocation)
    return replace(baseline, why=why) if why else baseline


def allocation_of_run(record: Mapping[str, Any]) -> str | None:
    """Return the allocation that a run was made in, by its record: `412.1`; None outside of any."""
    found = (record.get("node") or {}).get("allocation")
    return found if isinstance(found, str) else None


def as_on_nodes(
    identities: Mapping[str, dict[str, str]],
    records: Mapping[str, Mapping[str, Any]],
    config: Config,
    listed: Mapping[str, Sequence[str]],
) -> dict[str, dict[str, str]]:
    """Return what baselines are valid for, by role; on a login node with what nodes alone know as recorded:
    by the runs that are `listed` of a role, else by its newest."""
    if clusters.cluster_of(config.runner, Path()) is None or clusters.inside() is not None:
        return dict(identities)
    found = {}
    for role, identity in identities.items():
        mine = config.campaign, f"baseline-{role}"
        own = [records[name] for name in listed.get(role, ()) if name in records]
        found_of = own or records.values()
        made = [r for r in found_of if (r.get("campaign"), r.get("role")) == mine and r.get("node")]
        recorded: Mapping[str, str] = made[-1].get("identity", {}) if made else {}
        known = {key: recorded[key] for key in _OF_NODES if key in recorded}
        if known.get("device", "").partition(" CUDA_VISIBLE_DEVICES=")[0] != config.device:
            known.pop("device", None)
        found[role] = {**identity, **known}
    return found


def living_jobs(workspace: store.Workspace) -> store.Lives:
    """Asks the campaign's cluster whether a job has its nodes; None if it does not say or there is none."""

    def lives(job: str) -> bool | None:
        try:
            cluster = clusters.cluster_of(read_config(workspace).runner, workspace.runs / ".allocation")
            seen = cluster.states((job,))[0] if cluster is not None else None
        except GpudebugError:
            return None
        if seen is None or seen.state is JobState.UNKNOWN:
            return None
        return seen.state in (JobState.RUNNING, JobState.PAUSED, JobState.CLEANING)

    return lives
