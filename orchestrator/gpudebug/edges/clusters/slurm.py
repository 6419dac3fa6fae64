"""Slurm by its own commands on PATH: `sbatch`, `squeue`, `sacct`, `scontrol`, `scancel`."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from gpudebug.core.cluster import reasons, slurm_requests, slurm_states
from gpudebug.core.cluster.jobs import ASK_S, BatchJob, InsideJob, JobEnd, JobPlace, JobState, SeenJob
from gpudebug.core.cluster.node_reports import ClusterFact
from gpudebug.core.cluster.slurm_requests import asked_of, environment, several_clusters
from gpudebug.core.cluster.slurm_states import expanded
from gpudebug.core.config import SlurmSettings
from gpudebug.core.errors import ClusterError
from gpudebug.edges.clusters import answers, slurm_doctor
from gpudebug.edges.clusters.answers import AnswerBook
from gpudebug.edges.clusters.commands import CommandAnswer, ask, available
from gpudebug.edges.clusters.shared import elsewhere, own_to_each_host

_GONE = ("Invalid job id", "already completed", "already completing")
_NO_ACCOUNTING = "accounting storage is disabled"
SACCT_S = 20.0
"""Accounting that is slow is done without: how a job ended is also read from the queue."""
# What sbatch says if its request may have arrived and the answer did not.
_UNSURE = ("timed out", "zero bytes", "unexpected message", "connection reset", "broken pipe")
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
            return slurm_requests.rendered(job, self._settings)
        except ValueError as e:
            raise ClusterError(str(e), next="rename it") from None

    def submit(self, job: BatchJob) -> str:
        self.refuse(job)
        own = environment(os.environ, self._settings)
        answer = ask("sbatch", "--parsable", stdin=self.script(job), env=own, cwd=job.cwd)
        id = slurm_states.submitted(answer.out) if answer.status == 0 else None
        if id is None:
            id = self._submitted(job, answer)
        if id is None:
            raise _refusal(answer, self._settings)
        ids = [self.element(id, number) for number in job.elements] or [id]
        try:
            with answers.opened(self._folder) as book:
                for each in ids:
                    book.jobs[each] = _unknown(each, "")
                    book.missed.pop(each, None)
                # Nothing is known of it, and its worker's lock says when it has begun.
                book.asked(ASK_S, 1)
        except BaseException:
            # A job without a record would hold GPUs some day.
            ask("scancel", id)
            raise
        return id

    def refuse(self, job: BatchJob) -> None:
        """Raise ClusterError for what the cluster can never give, and for a folder that its nodes do not see.

        One call of `sinfo`, or none if the cluster was asked just before; what is not known is left to
        `sbatch`.
        """
        if available("sbatch") is None:
            raise _not_here()
        self._refuse_here(os.environ)
        book = self._of_nodes()
        asked = asked_of(self._settings, os.environ)
        found = slurm_requests.problem(book.nodes, asked)
        if found is not None:
            raise ClusterError(found.message, next=found.next)
        for what, path in (("the campaign's folder", job.cwd), ("this Python", job.argv[0])):
            own = None if self._settings.shared else own_to_each_host(path)
            if own is not None and book.elsewhere:
                raise ClusterError(
                    f"{what} is in {own}, which each node has its own of",
                    file=path,
                    next="move it to a folder that the nodes share, such as your home (if they share this "
                    "one: runner.slurm.shared: true)",
                )

    def _of_nodes(self) -> AnswerBook:
        """Return a book with what is known of the nodes: asked for, or lately known; else an empty one."""
        with answers.opened(self._folder) as book:
            asks = book.may_ask(ASK_S)
            if asks:
                book.asking(ASK_S)
        if not asks:
            return book if book.knows_nodes else AnswerBook()
        text = ask("sinfo", *slurm_requests.SINFO).out
        away = elsewhere(slurm_requests.addresses(text))
        with answers.opened(self._folder) as book:
            book.nodes, book.elsewhere = slurm_requests.node_groups(text), away
            book.nodes_at = time.time()
            book.asked(ASK_S, 1)
        return book

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
        """Return the id of a job whose submission was not answered, or not legibly, if it is in the queue."""
        heard = answer.status == 0 or answer.late or any(text in answer.error.lower() for text in _UNSURE)
        if not heard or answer.missing:
            return None
        with answers.opened(self._folder) as book:
            known = {id.partition("_")[0] for id in book.jobs}
        queue = ask("squeue", "-h", "-u", str(os.getuid()), f"--name={job.name}", "-o", slurm_states.QUEUED)
        return slurm_states.queued(queue.out, job.cwd, known) if queue.status == 0 else None

    def element(self, array: str, number: int) -> str:
        return f"{array}_{number}"

    def states(self, ids: tuple[str, ...]) -> tuple[SeenJob, ...]:
        if not ids:
            return ()
        with answers.opened(self._folder) as book:
            asks = book.may_ask(ASK_S)
            if asks:
                book.asking(ASK_S)
        if asks:
            # Others read the book meanwhile: a cluster that is slow delays only the command that asks it.
            look = _look(tuple({*ids, *(id for id, job in book.jobs.items() if not job.over)}), book)
            with answers.opened(self._folder) as book:
                _enter_look(book, look)
        return tuple(book.jobs.get(id) or _unknown(id, "") for id in ids)

    def cancel(self, ids: tuple[str, ...]) -> None:
        if not ids:
            return
        answer = ask("scancel", *ids)
        # What cannot be kept is no reason to say that nothing was ended.
        with contextlib.suppress(ClusterError), answers.opened(self._folder) as book:
            book.asked(ASK_S, 1)
        problems = [line for line in answer.error.splitlines() if not any(gone in line for gone in _GONE)]
        if answer.status != 0 and any(line.strip() for line in problems):
            raise ClusterError(f"scancel: {answer.why}", next=f"scancel {' '.join(ids)}")

    def where(self, id: str) -> JobPlace | None:
        answer = ask("scontrol", "-o", "-d", "show", "job", id)
        found = slurm_states.place(answer.out, id) if answer.status == 0 else None
        if found is not None:
            return found
        row = _accounted((id,))[0].get(id)
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


@dataclass(frozen=True, slots=True)
class _QueueLook:
    """What was said of `ids` when it was asked at `begun`: a job that is not in `rows` is not known there.

    `calls` counts the questions; `accounting` is None if accounting was not asked.
    """

    begun: float
    ids: tuple[str, ...]
    rows: Mapping[str, SeenJob]
    calls: int = 1
    accounting: bool | None = None


def _look(ids: tuple[str, ...], book: AnswerBook) -> _QueueLook:
    """Ask for all jobs; the book says what was known of them before."""
    begun, accounting, calls = time.time(), None, 1
    answer = ask("squeue", "-h", "--all", "-r", "-t", "all", "-j", ",".join(ids), "-o", slurm_states.SQUEUE)
    rows = slurm_states.squeue_rows(answer.out, ids)
    if not rows and not _names_none(answer, ids):
        return _QueueLook(begun, ids, {id: _unknown(id, f"squeue: {answer.why}") for id in ids})
    vanished = _not_in(ids, rows, book)
    # Accounting alone says who cancelled a job.
    cancelled = _lately_cancelled(rows, book)
    if (vanished or cancelled) and book.accounting and available("sacct") is not None:
        found, accounting = _accounted((*vanished, *cancelled))
        for id, row in found.items():
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
        if answer.out.strip() and shown.status != 0 and not any(text in shown.error for text in _GONE):
            # A wrapper's lines alone end no job.
            lost = (id for id in vanished if id not in rows)
            rows.update({id: _unknown(id, f"scontrol: {shown.why}") for id in lost})
    return _QueueLook(begun, ids, rows, calls, accounting)


def _enter_look(book: AnswerBook, look: _QueueLook) -> None:
    """Enter what was said, unless the book holds the answer to a later question already."""
    if look.begun < book.answered <= time.time():
        return
    book.answered = look.begun
    book.asked(ASK_S, look.calls)
    if look.accounting is not None:
        book.unaccounted_at = 0.0 if look.accounting else time.time()
    for id in look.ids:
        _enter(book, look.rows[id]) if id in look.rows else _miss(book, id)


def _names_none(answer: CommandAnswer, ids: tuple[str, ...]) -> bool:
    """Tell whether squeue said that there are no such jobs: nothing, or that the ids are invalid.

    Lines of a site's wrapper are nothing, unless they may be rows of its own.
    """
    if answer.status != 0:
        return "Invalid job id" in answer.error
    lines = [line for line in answer.out.splitlines() if line.strip()]
    return not any("|" in line or line.split(maxsplit=1)[0] in ids for line in lines)


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


def _accounted(ids: tuple[str, ...]) -> tuple[dict[str, SeenJob], bool]:
    """Return what accounting says of jobs, and whether there is any."""
    words = ("-X", "-n", "-P", "-j", ",".join(ids), "-o", slurm_states.SACCT)
    answer = ask("sacct", *words, within_s=SACCT_S)
    if answer.status == 0:
        return slurm_states.sacct_rows(answer.out, ids), True
    return {}, _NO_ACCOUNTING not in answer.error


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
        f"Slurm refused the job: {reasons.reason(answer.error) or answer.why}",
        next=reasons.advice(answer.error, settings),
    )
