"""Slurm by its own commands on PATH: `sbatch`, `squeue`, `sacct`, `scontrol`, `scancel`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from gpudebug.core.cluster import slurm_partitions, slurm_refusals, slurm_script, slurm_states
from gpudebug.core.cluster.hostlists import expanded
from gpudebug.core.cluster.jobs import ASK_S, BatchJob, InsideJob, JobEnd, JobPlace, JobState, SeenJob
from gpudebug.core.cluster.node_reports import ClusterFact
from gpudebug.core.cluster.slurm_options import asked_of, environment, several_clusters
from gpudebug.core.config import SlurmSettings
from gpudebug.core.errors import ClusterError
from gpudebug.edges.clusters import answers, slurm_doctor
from gpudebug.edges.clusters.answers import AnswerBook
from gpudebug.edges.clusters.commands import CommandAnswer, ask, available
from gpudebug.edges.clusters.shared import elsewhere, own_to_each_host

_ID = re.compile(r"([0-9]+(?:_[0-9]+)?)(?:;\S*)?", re.ASCII)
_GONE = ("Invalid job id", "already completed", "already completing")
_NO_ACCOUNTING = ("accounting storage is disabled", "accounting_storage")
_FORGOTTEN = "it knows no such job"
MISSES = 2
"""A job that so many answers in turn do not name has ended: one answer may come from a controller that
has just started."""


class SlurmCluster:
    """`core.cluster.jobs.Cluster` for Slurm. `folder` keeps its answers between processes."""

    title = "Slurm"

    def __init__(self, settings: SlurmSettings, folder: Path) -> None:
        self._settings = settings
        self._folder = folder

    def script(self, job: BatchJob) -> str:
        try:
            return slurm_script.rendered(job, self._settings)
        except ValueError as e:
            raise ClusterError(str(e), next="rename it") from None

    def submit(self, job: BatchJob) -> str:
        self.refuse(job)
        own = environment(os.environ, self._settings)
        answer = ask("sbatch", "--parsable", stdin=self.script(job), env=own, cwd=job.cwd)
        match = _ID.fullmatch(answer.out.strip().splitlines()[-1] if answer.out.strip() else "")
        if answer.status == 0 and match:
            id = match[1]
        elif (lost := self._submitted(job, answer)) is not None:
            id = lost
        else:
            raise _refusal(answer, self._settings)
        ids = [self.element(id, number) for number in job.elements] or [id]
        with answers.opened(self._folder) as book:
            book.jobs.update({each: SeenJob(each, JobState.WAITING, "PENDING") for each in ids})
        return id

    def refuse(self, job: BatchJob) -> None:
        """Raise ClusterError for what the cluster can never give, and for a folder that its nodes do not see.

        One call of `sinfo`; what it does not say is left to `sbatch`.
        """
        if available("sbatch") is None:
            raise _not_here()
        self._refuse_here(os.environ)
        groups = ask("sinfo", "-h", "-a", "-o", slurm_partitions.SINFO)
        asked = asked_of(self._settings, os.environ)
        found = slurm_partitions.problem(slurm_partitions.node_groups(groups.out), asked)
        if found is not None:
            raise ClusterError(found.message, next=found.next)
        for what, path in (("the campaign's folder", job.cwd), ("this Python", job.argv[0])):
            own = None if self._settings.shared else own_to_each_host(path)
            if own is not None and elsewhere(_hosts()):
                raise ClusterError(
                    f"{what} is in {own}, which each node has its own of",
                    file=path,
                    next="move it to a folder that the nodes share, such as your home (if they share this "
                    "one: runner.slurm.shared: true)",
                )

    def _refuse_here(self, environ: Mapping[str, str]) -> None:
        """Raise ClusterError for what this shell would make of any job."""
        cluster = several_clusters(self._settings, environ)
        if cluster is not None:
            raise ClusterError(
                f"the job would go to cluster {cluster}, and only sbatch would know: squeue asks another",
                next="name one cluster for all commands: export SLURM_CLUSTERS=NAME, instead of --clusters "
                "in runner.slurm.extra or SBATCH_CLUSTERS",
            )
        held = environ.get("SLURM_JOB_ID")
        if held and not environ.get("SLURMD_NODENAME"):
            raise ClusterError(
                f"this shell holds job {held} (salloc) and is not on its nodes: a second job would leave its "
                "GPUs idle",
                next="work in it: srun --pty bash, then run this again; or leave it (exit; unset "
                "SLURM_JOB_ID if it is over)",
            )

    def _submitted(self, job: BatchJob, answer: CommandAnswer) -> str | None:
        """The id of a job whose submission was not answered in time, if it is in the queue all the same."""
        if not (answer.late or "timed out" in answer.error.lower()):
            return None
        queue = ask("squeue", "-h", "-u", str(os.getuid()), f"--name={job.name}", "-o", "%F|%Z")
        rows = [line.strip().split("|", 1) for line in queue.out.splitlines() if "|" in line]
        ids = [id for id, folder in rows if folder == job.cwd and _ID.fullmatch(id)]
        return ids[-1] if queue.status == 0 and ids else None

    def element(self, array: str, number: int) -> str:
        return f"{array}_{number}"

    def states(self, ids: tuple[str, ...]) -> tuple[SeenJob, ...]:
        if not ids:
            return ()
        with answers.opened(self._folder) as book:
            if book.may_ask(ASK_S):
                asked = tuple({*ids, *(id for id, job in book.jobs.items() if not job.over)})
                book.asked(ASK_S, _look(asked, book))
            return tuple(book.jobs.get(id) or _unknown(id, "") for id in ids)

    def cancel(self, ids: tuple[str, ...]) -> None:
        if not ids:
            return
        answer = ask("scancel", *ids)
        problems = [line for line in answer.error.splitlines() if not any(gone in line for gone in _GONE)]
        if answer.status != 0 and any(line.strip() for line in problems):
            raise ClusterError(f"scancel: {answer.why}", next=f"scancel {' '.join(ids)}")

    def where(self, id: str) -> JobPlace | None:
        answer = ask("scontrol", "-o", "-d", "show", "job", id)
        found = slurm_states.place(answer.out, id) if answer.status == 0 else None
        if found is not None:
            return found
        row = _accounted((id,)).get(id)
        return JobPlace(id, row.nodes) if row is not None and row.nodes else None

    def login_facts(self, job: BatchJob) -> Iterator[ClusterFact]:
        return slurm_doctor.login_facts(job, self._settings)

    def node_facts(self, job: BatchJob, folder: str, token: str) -> Iterator[ClusterFact]:
        return slurm_doctor.node_facts(job, self._settings, folder, token)


def inside_slurm(environ: Mapping[str, str]) -> InsideJob | None:
    """Slurm sets SLURMD_NODENAME on the nodes of an allocation alone; a shell of `salloc` has the rest."""
    id, node = environ.get("SLURM_JOB_ID", ""), environ.get("SLURMD_NODENAME", "")
    if not id.isdecimal() or not node:
        return None
    nodes = expanded(environ.get("SLURM_JOB_NODELIST", "")) or (node,)
    restarts, cpus = (environ.get(name, "") for name in ("SLURM_RESTART_COUNT", "SLURM_CPUS_PER_TASK"))
    step, element = environ.get("SLURM_STEP_ID", ""), environ.get("SLURM_ARRAY_TASK_ID", "")
    return InsideJob(
        id=id,
        node=node,
        nodes=nodes,
        index=nodes.index(node) if node in nodes else 0,
        restarts=int(restarts) if restarts.isdecimal() else 0,
        step=step if step.isdecimal() and int(step) < 2**31 else None,
        cpus_per_task=int(cpus) if cpus.isdecimal() else None,
        array=environ.get("SLURM_ARRAY_JOB_ID") if element.isdecimal() else None,
        element=int(element) if element.isdecimal() else None,
    )


def _look(ids: tuple[str, ...], book: AnswerBook) -> int:
    """Ask for all jobs and enter what is said; how many calls of the controller it took."""
    answer = ask("squeue", "-h", "--all", "-r", "-t", "all", "-j", ",".join(ids), "-o", slurm_states.SQUEUE)
    rows = slurm_states.squeue_rows(answer.out, ids)
    if not rows and not _answered(answer):
        for id in ids:
            _enter(book, _unknown(id, f"squeue: {answer.why}"))
        return 1
    calls = 1
    vanished = _not_in(ids, rows, book)
    # Accounting alone says who cancelled a job.
    cancelled = _lately_cancelled(rows, book)
    if (vanished or cancelled) and book.accounting:
        for id, row in _accounted((*vanished, *cancelled), book).items():
            # It may lag behind: a job that the controller does not know does not run.
            if row.over:
                rows[id] = replace(rows.get(id, row), by=row.by)
        vanished = _not_in(ids, rows, book)
    # So does scontrol alone by which signal an older Slurm's batch script ended.
    if unsure := (*vanished, *_lately_unsaid(rows, book)):
        calls += 1
        which = unsure if len(unsure) == 1 else ()
        shown = ask("scontrol", "-o", "show", "job", *which)
        rows.update(slurm_states.scontrol_rows(shown.out, unsure))
    for id in ids:
        _enter(book, rows[id]) if id in rows else _miss(book, id)
    return calls


def _answered(answer: CommandAnswer) -> bool:
    """Whether squeue said that there are no such jobs: nothing at all, or that the ids are invalid."""
    if answer.status == 0:
        return not answer.out.strip()
    return "Invalid job id" in answer.error


def _not_in(ids: tuple[str, ...], rows: Mapping[str, SeenJob], book: AnswerBook) -> tuple[str, ...]:
    ended = {id for id, job in book.jobs.items() if job.over}
    return tuple(id for id in ids if id not in rows and id not in ended)


def _lately_cancelled(rows: Mapping[str, SeenJob], book: AnswerBook) -> tuple[str, ...]:
    return tuple(id for id, job in rows.items() if job.end is JobEnd.CANCELLED and not _was_over(id, book))


def _lately_unsaid(rows: Mapping[str, SeenJob], book: AnswerBook) -> tuple[str, ...]:
    unsaid = (id for id, job in rows.items() if job.over and job.reason == slurm_states.UNSAID)
    return tuple(id for id in unsaid if rows[id].exit_status is None and not _was_over(id, book))


def _was_over(id: str, book: AnswerBook) -> bool:
    return (before := book.jobs.get(id)) is not None and before.over


def _accounted(ids: tuple[str, ...], book: AnswerBook | None = None) -> dict[str, SeenJob]:
    answer = ask("sacct", "-X", "-n", "-P", "-j", ",".join(ids), "-o", slurm_states.SACCT)
    if book is not None and answer.status != 0:
        book.accounting = not (answer.missing or any(text in answer.error for text in _NO_ACCOUNTING))
    return slurm_states.sacct_rows(answer.out, ids) if answer.status == 0 else {}


def _enter(book: AnswerBook, job: SeenJob) -> None:
    """Keep an answer. Not knowing never replaces an end, nor what was known beside the state."""
    before = book.jobs.get(job.id)
    if job.state is JobState.UNKNOWN and before is not None:
        if before.over:
            return
        job = replace(before, state=JobState.UNKNOWN, word=job.word, reason=job.reason)
    else:
        book.missed.pop(job.id, None)
        if before is not None and before.over and job.over:
            by = before.by if job.by is None else job.by
            job = replace(job, by=by, unlogged=job.unlogged or before.unlogged)
    book.jobs[job.id] = job


def _miss(book: AnswerBook, id: str) -> None:
    """An answer does not name the job: after `MISSES` of them it is over, and no success."""
    before = book.jobs.get(id)
    if before is not None and before.over:
        return
    count = book.missed.get(id, 0) + 1
    book.missed[id] = count
    known = before or SeenJob(id, JobState.UNKNOWN)
    if count < MISSES:
        book.jobs[id] = replace(known, state=JobState.UNKNOWN, word="", reason=_FORGOTTEN)
    else:
        book.jobs[id] = replace(
            known, state=JobState.ENDED, word="", reason=_FORGOTTEN, end=JobEnd.OTHER, left_s=None
        )


def _unknown(id: str, reason: str) -> SeenJob:
    return SeenJob(id, JobState.UNKNOWN, reason=reason)


def _hosts() -> tuple[str, ...]:
    """The addresses of all nodes; none if Slurm does not say."""
    return tuple(set(ask("sinfo", "-h", "-a", "-N", "-o", "%o").out.split()))


def _not_here() -> ClusterError:
    return ClusterError(
        "no Slurm here: sbatch is not on PATH",
        next="run it on the cluster's login node (module load slurm?), or remove runner.slurm",
    )


def _refusal(answer: CommandAnswer, settings: SlurmSettings) -> ClusterError:
    if answer.missing:
        return _not_here()
    if answer.status == 0:
        return ClusterError(f"sbatch printed no job id: {answer.out.strip()[:200]!r}", next="squeue --me")
    return ClusterError(
        f"Slurm refused the job: {slurm_refusals.reason(answer.error) or answer.why}",
        next=slurm_refusals.advice(answer.error, settings),
    )
