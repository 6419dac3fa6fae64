"""What a login node and two nodes of a Slurm say of a campaign, for `gpudebug doctor --cluster`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import replace

from gpudebug.core.cluster import reasons, slurm_requests
from gpudebug.core.cluster.jobs import BatchJob
from gpudebug.core.cluster.node_reports import ClusterFact, NodeReport, facts, reports
from gpudebug.core.cluster.slurm_requests import asked_of, environment, for_srun
from gpudebug.core.config import SlurmSettings
from gpudebug.core.text.shell_words import module_argv
from gpudebug.edges import opener
from gpudebug.edges.clusters import nodecheck
from gpudebug.edges.clusters.commands import ask, available
from gpudebug.edges.clusters.shared import cluster_file, elsewhere, own_to_each_host

_COMMANDS = ("sbatch", "squeue", "scontrol", "scancel", "srun", "sinfo")
QUEUES_S = 60
"""So long the two nodes are waited for."""


def login_facts(job: BatchJob, settings: SlurmSettings) -> Iterator[ClusterFact]:
    """Yield what can be known without an allocation."""
    missing = [name for name in _COMMANDS if available(name) is None]
    if missing:
        advice = "run it on the login node (module load slurm?)"
        yield ClusterFact("slurm", "failed", f"not on PATH: {', '.join(missing)}", advice)
        return
    version = ask("sbatch", "--version").out.strip()
    yield ClusterFact("slurm", "ok", f"{version or 'unknown version'}; {_wrappers()}")
    queue = ask("squeue", "-h", "-u", str(os.getuid()), "-o", "%i")
    if queue.status != 0:
        advice = reasons.advice(queue.error, settings)
        why = reasons.reason(queue.error) or queue.why
        yield ClusterFact("controller", "failed", f"squeue: {why}", advice)
        return
    jobs = len(queue.out.split())
    yield ClusterFact("controller", "ok", f"it answers; {jobs} job{'s' if jobs != 1 else ''} of yours there")
    yield _accounting()
    text = ask("sinfo", *slurm_requests.SINFO).out
    yield _request(slurm_requests.node_groups(text), settings)
    yield _folder(job, settings, slurm_requests.addresses(text))
    defaults = cluster_file()
    yield ClusterFact("defaults", "ok", defaults[1] if defaults is not None else "no file of the cluster's")


def node_facts(job: BatchJob, settings: SlurmSettings, folder: str, token: str) -> Iterator[ClusterFact]:
    """What two nodes say, in a job of some seconds: `folder` holds `token`, and takes what they write."""
    nodes = _nodes(settings)
    program = (*module_argv(sys.executable, nodecheck.__name__), folder, token, str(nodes))
    said, why = _on_nodes(job, settings, nodes, program)
    if not said:
        advice = f"try it again when {nodes} nodes are free"
        yield ClusterFact("nodes", "unknown", f"not tried: {why}", advice)
        return
    yield from facts(said, nodes)


def _wrappers() -> str:
    """Commands that are a script: what they print is this site's own."""
    found = [name for name in _COMMANDS if (path := available(name)) is not None and _is_script(path)]
    return f"scripts of this site: {', '.join(found)}" if found else "Slurm's own commands"


def _is_script(path: str) -> bool:
    try:
        with opener.opened(path, follow=True) as file:
            return file.read(2) == b"#!"
    except OSError:
        return False


def _accounting() -> ClusterFact:
    answer = ask("sacct", "-X", "-n", "-P", "-S", "now", "-o", "JobID")
    if answer.status == 0:
        return ClusterFact("accounting", "ok", "sacct answers")
    return ClusterFact("accounting", "ok", "off: how a job ended is read from squeue while it remembers it")


def _request(groups: tuple[slurm_requests.NodeGroup, ...], settings: SlurmSettings) -> ClusterFact:
    asked = asked_of(settings, os.environ)
    found = slurm_requests.problem(groups, asked)
    if found is not None:
        return ClusterFact("request", "failed", found.message, found.next)
    if not groups:
        return ClusterFact("request", "unknown", "sinfo says nothing of partitions", "gpudebug submit tries")
    nodes = f"{settings.nodes} node{'s' if settings.nodes != 1 else ''}"
    gpus = f" with gpu:{asked.gpus}" if asked.gpus not in (None, "0") else ""
    by_default = tuple({group.partition for group in groups if group.default})
    fits = by_default and not slurm_requests.problem(groups, replace(asked, partitions=by_default))
    known = asked.partitions or fits
    which = "the partition" if known else "the cluster, which chooses the partition,"
    return ClusterFact("request", "ok", f"{which} has {nodes}{gpus}")


def _folder(job: BatchJob, settings: SlurmSettings, hosts: tuple[str, ...]) -> ClusterFact:
    for path in () if settings.shared else (job.cwd, job.argv[0]):
        own = own_to_each_host(path)
        if own is not None and elsewhere(hosts):
            advice = "move it to a folder that the nodes share, such as your home"
            return ClusterFact(
                "place", "failed", f"{path} is in {own}, which each node has its own of", advice
            )
    return ClusterFact("place", "ok", f"{job.cwd} and {job.argv[0]} may be shared")


def _nodes(settings: SlurmSettings) -> int:
    """Two, unless the partition has one."""
    groups = slurm_requests.node_groups(ask("sinfo", *slurm_requests.SINFO).out)
    asked = asked_of(settings, os.environ).partitions
    there = [g for g in groups if g.partition in asked or (not asked and g.default)]
    return 1 if sum(group.nodes for group in there) == 1 else 2


def _on_nodes(
    job: BatchJob, settings: SlurmSettings, nodes: int, program: tuple[str, ...]
) -> tuple[tuple[NodeReport, ...], str]:
    """What each node reports, and Slurm's reason if none does. It is asked for as the campaign's job is."""
    named = ("partition", "account", "qos", "constraint", "cpus_per_task")
    asked = (f"--{n.replace('_', '-')}={v}" for n in named if (v := getattr(settings, n)) is not None)
    gpus = (f"--gpus-per-node={settings.gpus_per_node}",) if settings.gpus_per_node != "0" else ()
    answer = ask(
        "srun",
        "--quiet",
        "--job-name=gpudebug-doctor",
        f"--nodes={nodes}",
        f"--ntasks={nodes}",
        "--ntasks-per-node=1",
        "--time=5",
        f"--immediate={QUEUES_S}",
        f"--chdir={job.cwd}",
        *asked,
        *gpus,
        *settings.srun,
        *for_srun(settings.extra),
        *_after_setup(settings.setup, program),
        env=environment(os.environ, settings),
        within_s=QUEUES_S + 2 * nodecheck.PATIENCE_S + 30,
    )
    return reports(answer.out), reasons.reason(answer.error) or answer.why


def _after_setup(setup: str, program: tuple[str, ...]) -> tuple[str, ...]:
    """Return the program behind the lines that the job's script runs before it."""
    if not setup:
        return program
    return ("/bin/bash", "-c", f'{{\n{setup}\n}} >&2 || exit\nexec "$@"', "bash", *program)
