"""`gpudebug doctor --cluster`: what the login node and two nodes see of a campaign."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gpudebug.core.answers.setup import DoctorAnswer, DoctorCheck
from gpudebug.core.cluster.jobs import BatchJob, Cluster
from gpudebug.core.cluster.node_reports import ClusterFact
from gpudebug.edges import store
from gpudebug.engine.campaign.files import find, read_config
from gpudebug.engine.campaign.runner import named_cluster, worker_job


def of_cluster(directory: Path) -> DoctorAnswer:
    """Every check with its finding; two nodes are asked for a minute of their time if the first ones pass.

    ConfigError for a campaign that runs on this host itself.
    """
    workspace = find(directory)
    config = read_config(workspace)
    cluster = named_cluster(workspace, config)
    found = list(cluster.login_facts(worker_job(workspace, config.campaign)))
    if not any(fact.result == "failed" for fact in found):
        found += _of_nodes(workspace, cluster, worker_job(workspace, config.campaign))
    checks = tuple(DoctorCheck(f.name, f.result, f.text, f.next) for f in found)
    return DoctorAnswer(ok=all(c.result != "failed" for c in checks), checks=checks)


def _of_nodes(workspace: store.Workspace, cluster: Cluster, job: BatchJob) -> Iterator[ClusterFact]:
    files = store.Allocations(workspace.runs)
    token = files.put_token()
    yield from cluster.node_facts(job, str(files.trial), token)
