"""Where a campaign's runs are made: on this host, or in a cluster's allocation that this host is not in."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from gpudebug.core.cluster.jobs import BatchJob, Cluster
from gpudebug.core.config import Config
from gpudebug.core.errors import ConfigError, GpudebugError
from gpudebug.core.text.shell_words import module_argv
from gpudebug.edges import clusters, store
from gpudebug.edges.clusters import shared
from gpudebug.engine.campaign.files import find, read_config

CLUSTER_FILE = shared.VARIABLE
WORKER = "gpudebug.engine.cycle.served"
ELEMENT = "gpudebug.engine.cycle.element"


class RunsElsewhere(GpudebugError):
    """The runs of this campaign are made in an allocation that this process is not in."""

    code = "elsewhere"


def refuse(cluster: str, command: str, workspace: store.Workspace) -> NoReturn:
    """Raise RunsElsewhere: `command` needs devices, and this host is in no allocation of the cluster."""
    raise RunsElsewhere(
        f"`{command}` needs the devices of an allocation, and this host is in none of {cluster}",
        file=str(workspace.config),
        next=f"run it on a node of an allocation: {command}",
    )


def cluster_of(workspace: store.Workspace, config: Config) -> Cluster | None:
    """Return the cluster that gpudebug.yaml names; None if runs are made on this host."""
    return clusters.cluster_of(config.runner, store.Allocations(workspace.private).folder)


def named_cluster(workspace: store.Workspace, config: Config) -> Cluster:
    """Return the cluster that gpudebug.yaml names; ConfigError if it names none."""
    found = cluster_of(workspace, config)
    if found is None:
        raise ConfigError(
            "runs are made on this host itself: there is no runner",
            file=str(workspace.config),
            next="add runner: {slurm: {partition: NAME}}",
        )
    return found


def elsewhere(workspace: store.Workspace, config: Config) -> Cluster | None:
    """Return the cluster whose allocation the runs are made in; None if this process may make them itself.

    Whoever sits inside an allocation already runs in that one.
    """
    found = cluster_of(workspace, config)
    return None if found is None or clusters.inside() is not None else found


def elsewhere_of(directory: Path) -> Cluster | None:
    """`elsewhere` of the campaign at or above `directory`; None also if it has none that can be read."""
    try:
        workspace = find(directory)
        return elsewhere(workspace, read_config(workspace))
    except GpudebugError:
        return None  # What is wrong is for the command itself to say.


def worker_job(workspace: store.Workspace, campaign: str) -> BatchJob:
    """Return the job of a campaign's allocation: the worker, with this Python, in the campaign's folder."""
    return _job(workspace, WORKER, f"gpudebug-{campaign}")


def array_job(workspace: store.Workspace, config: Config, hypotheses: tuple[int, ...]) -> BatchJob:
    """Return a job array with an element for each of these hypotheses, numbered as they are."""
    job = _job(workspace, ELEMENT, f"gpudebug-{config.campaign}-array")
    at_once = config.runner.parallel if config.runner is not None else 1
    return replace(job, elements=hypotheses, at_once=min(at_once, len(hypotheses)))


def _job(workspace: store.Workspace, worker: str, name: str) -> BatchJob:
    files = store.Allocations(workspace.private)
    return BatchJob(
        name=name,
        argv=(*module_argv(sys.executable, worker), str(workspace.root)),
        cwd=str(workspace.root),
        log=str(files.log),
        env=((CLUSTER_FILE, str(files.defaults)),),
    )
