"""`gpudebug submit`: ask for the campaign's allocation ahead of a run, or print its batch script."""

from __future__ import annotations

from pathlib import Path

from gpudebug.core.answers.next import SubmitAnswer
from gpudebug.core.campaign.decide import over
from gpudebug.edges import clusters
from gpudebug.engine.campaign.files import find, read_config
from gpudebug.engine.campaign.load import load
from gpudebug.engine.campaign.runner import array_job, named_cluster, worker_job
from gpudebug.engine.campaign.settings import admit
from gpudebug.engine.cycle.allocation import Allocation
from gpudebug.engine.cycle.array import chosen, submit_array
from gpudebug.engine.run.live_line import Report
from gpudebug.engine.run.prepare import remarks


def submit(
    directory: Path, report: Report, session: str | None = None, *, dry_run: bool = False
) -> SubmitAnswer:
    """Ask for an allocation if none lives; with `dry_run` nothing is asked, written or pinned.

    With `runner.slurm.parallel` above 1 a person has every hypothesis tested that waits and needs no code, in
    a job array; a session has one, as always.

    ConfigError without `runner:`, ClusterError with the cluster's reason if it refuses.
    """
    workspace = find(directory)
    config = read_config(workspace)
    cluster = named_cluster(workspace, config)
    alone = session is not None or config.runner is None or config.runner.parallel == 1
    if dry_run:
        numbers, left_out = ((), ()) if alone else chosen(load(directory, session))
        for line in left_out:
            remarks(report)(line)
        job = worker_job(workspace, config.campaign)
        script = cluster.script(array_job(workspace, config, numbers) if len(numbers) > 1 else job)
        return SubmitAnswer(
            action="printed", campaign=config.campaign, job=None, script=script, why="nothing was submitted"
        )
    around = clusters.inside()
    if around is not None:
        why = f"this is node {around.node} of job {around.id} already: runs are made in it"
        return SubmitAnswer(action="inside", campaign=config.campaign, job=around.id, script=None, why=why)
    if not alone and (array := submit_array(directory, cluster, report)) is not None:
        return array
    loaded = load(directory, session)
    admit(loaded.setup, loaded.history.records)
    if (ended := over(loaded.campaign)) is not None:
        return SubmitAnswer(action="stop", campaign=config.campaign, job=None, script=None, why=ended.why)
    allocation = Allocation(workspace, cluster, report)
    before = allocation.look()
    note = allocation.begin(session)
    allocation.refuse_hopeless(note)
    old = before is not None and before.job == note.job
    return SubmitAnswer(
        action="waiting" if note.waits is not None else "running",
        campaign=config.campaign,
        job=note.job,
        script=None,
        why=f"job {note.job} {'is there already' if old else f'was submitted to {cluster.title}'}",
    )
