"""The login node's side of a campaign's allocation: asked for once, given requests, followed by its files."""

from __future__ import annotations

import contextlib
import datetime
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from gpudebug.core.answers.next import NextAnswer, Running
from gpudebug.core.answers.status import RunProgress
from gpudebug.core.cluster.jobs import ASK_S, Cluster, JobEnd, JobState, SeenJob
from gpudebug.core.cluster.reasons import CLEANING, explained, unknown, unlogged
from gpudebug.core.errors import ClusterError, InterruptedRun
from gpudebug.edges import host, store
from gpudebug.edges.host import now
from gpudebug.engine.campaign.files import cluster_defaults, find, read_config
from gpudebug.engine.campaign.runner import elsewhere_of, worker_job
from gpudebug.engine.cycle.retold import AGAIN, AllocationLost, retold
from gpudebug.engine.live.tails import last_line
from gpudebug.engine.live.underway import COMMAND, Follower, RunningCommand, live, running, underway
from gpudebug.engine.run.live_line import Live, Report

POLL_S = 0.5
SPEECHLESS_S = 30.0
"""So long the cluster may take to say what became of an allocation whose worker is gone."""
SEALS_S = 60.0
"""So long a worker may still seal what it ran after its job has ended."""


@dataclass
class Allocation:
    """The allocation of one campaign, from where it is asked for."""

    workspace: store.Workspace
    cluster: Cluster
    report: Report
    _told: set[str] = field(default_factory=set)

    @property
    def files(self) -> store.Allocations:
        return store.Allocations(self.workspace.private)

    @property
    def detached(self) -> store.Detached:
        return store.Detached(self.workspace.private)

    def say(self, text: str) -> None:
        self.report(Live("", 0.0, None, None, None, None, None, text))

    def ask(self, request: store.RunRequest) -> store.AllocationNote:
        """Leave a request for the worker; an allocation is asked for if none lives.

        BusyError if another caller's request waits; ClusterError with the cluster's reason if it refuses.
        """
        self.detached.start_log(request.id)
        self._settle()
        seen = self._seen()
        with self.files.changing():
            note = self._entered(seen)
            if note is None or note.ended is not None:
                note = self._submitted(request.session)
            self.files.ask(request)
        return note

    def begin(self, session: str | None) -> store.AllocationNote:
        """Ask for an allocation if none lives, with nothing to do yet."""
        seen = self._seen()
        with self.files.changing():
            note = self._entered(seen)
            return note if note is not None and note.ended is None else self._submitted(session)

    def _settle(self) -> None:
        """Wait for the cluster's word on a job whose worker it ended: it is over, or in the queue again.

        One that it says to run for long, without a worker in it, is ended.
        """
        idle: float | None = None
        while True:
            seen = self._seen()
            with self.files.changing():
                note = self._entered(seen)
            if note is None or note.left is None or note.ended is not None:
                return
            if seen is None or seen.state is not JobState.RUNNING:
                idle = None
            else:
                idle = idle or time.monotonic()
            if idle is not None and time.monotonic() - idle > SEALS_S:
                self._end_idle(note, note.left)
                return
            time.sleep(POLL_S)

    def _end_idle(self, note: store.AllocationNote, why: str) -> None:
        """End a job whose worker left; the next command asks for another one."""
        with self.files.changing():
            if self.files.note() == note:
                self.files.put_note(replace(note, waits=None, ended=why, lost=True))
        try:
            self.cluster.cancel((note.job,))
        except ClusterError as e:
            self._once(f"job {note.job} could not be ended: {e.message}")

    def _submitted(self, session: str | None) -> store.AllocationNote:
        campaign = read_config(self.workspace).campaign
        self.files.put_defaults(cluster_defaults())
        job = self.cluster.submit(worker_job(self.workspace, campaign))
        note = store.AllocationNote(job=job, since=now(), session=session, waits="")
        try:
            self.files.begin(note)
        except BaseException:
            # It would stay in the queue without a record.
            with contextlib.suppress(ClusterError):
                self.cluster.cancel((job,))
            raise
        self.say(f"asked {self.cluster.title} for an allocation: job {job}")
        return note

    def look(self) -> store.AllocationNote | None:
        """Where the allocation stands by its files and the cluster's last answer; written down if it changed.

        A request that it did not begin goes with an allocation that has ended.
        """
        seen = self._seen()
        with self.files.changing():
            return self._entered(seen)

    def _seen(self) -> SeenJob | None:
        """What the cluster says of the job; without the lock of the files, for it may take long to answer."""
        note = self.files.note()
        if note is None or note.ended is not None:
            return None
        seen = self.cluster.states((note.job,))[0]
        title, about = self.cluster.title, f"job {note.job}"
        if seen.state is JobState.UNKNOWN and (why := unknown(title, seen)) is not None:
            # An outage ends nothing, and may last.
            self._once(why)
        elif seen.state is JobState.PAUSED:
            self._once(f"{title} stopped {about} ({seen.reason}); what ran in it is void, and is run again")
        elif seen.state is JobState.CLEANING and not self.files.served().held:
            self._once(f"{title} cleans up after {about} ({seen.word}); what becomes of it is known then")
        return seen

    def _once(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self.say(text)

    def _entered(self, seen: SeenJob | None) -> store.AllocationNote | None:
        """Return what was seen, entered into what the files say now."""
        note = self.files.note()
        if note is None or note.ended is not None or seen is None or seen.id != note.job:
            return note
        after = self._after(note, seen)
        if after != note:
            self.files.put_note(after)
        waiting = self.files.request()
        if after.ended is not None and waiting is not None:
            self.files.forget_request(waiting.id)
        return after

    def _after(self, note: store.AllocationNote, seen: SeenJob) -> store.AllocationNote:
        if seen.state is JobState.ENDED:
            if seen.unlogged:
                ended = f"job {note.job} never began: {unlogged(seen, str(self._log(note)))}"
                return replace(note, waits=None, ended=ended, failed=True)
            # By itself it writes why before it ends.
            if _failed(note, seen):
                said = last_line(self._log(note)) or self._full() or seen.how
                ended = f"the worker of job {note.job} failed: {said}"
                return replace(note, waits=None, ended=ended, failed=True)
            why = note.left if note.left and not seen.infrastructure else None
            why = why or f"{self.cluster.title} ended job {note.job}: {seen.how}"
            if seen.by is not None and seen.by == os.getuid():
                why = f"you cancelled job {note.job}"
                return replace(note, waits=None, ended=why, lost=True, wanted=True)
            return replace(note, waits=None, ended=why, lost=True)
        # The cluster's last answer may be of before the worker began.
        if seen.state is JobState.WAITING and not (_just_left(note) or self.files.served().held):
            return replace(note, waits=seen.reason, left=None, left_at=None)
        if seen.state is JobState.PAUSED:
            return replace(note, waits=seen.reason)
        if seen.state is JobState.CLEANING and not self.files.served().held:
            return replace(note, waits=seen.word)
        if seen.state is JobState.UNKNOWN and not note.waits and self._began(note):
            # The cluster was not asked since it was submitted.
            return replace(note, waits=None)
        # UNKNOWN is an outage: what was known before still holds.
        return replace(note, waits=None) if seen.state is JobState.RUNNING else note

    def _began(self, note: store.AllocationNote) -> bool:
        """Tell whether a worker of the job is at work, or was killed at it, by its lock."""
        return str(self.files.served().holder.get("allocation", "")).partition(".")[0] == note.job

    def _log(self, note: store.AllocationNote) -> Path:
        return Path(str(self.files.log).replace("{job}", note.job))

    def _full(self) -> str:
        """Return what a worker cannot say that has no room for its log."""
        return "the disk of the campaign is full" if host.free_disk_mb(self.files.folder) < 1 else ""

    def refuse_hopeless(self, note: store.AllocationNote) -> None:
        """ClusterError, with what to change, if the job can never start; it is taken out of the queue."""
        why = explained(note.waits, note.job) if note.waits else None
        if why is None or not why.never:
            return
        self.cancel(note, f"it could never start: {why.text}")
        raise ClusterError(
            f"job {note.job} can never start: {why.text}",
            file=str(self.workspace.config),
            next=f"{why.next or 'correct runner.slurm'}, then run this again",
        )

    def refuse_lost(self) -> None:
        """AllocationLost if the cluster ended the worker, and what it did with it.

        Of a worker that is gone without a word the cluster is given a moment to say what became of its job.
        """
        deadline = time.monotonic() + SPEECHLESS_S
        while (note := self.look()) is not None:
            killed = self.detached.said().killed
            if note.failed:
                raise self._worker_failed(note)
            if note.lost:
                raise AllocationLost(str(note.ended), next=AGAIN)
            cleaned = self._is_cleaned_up(note)
            if killed and note.waits is not None and not cleaned:
                raise AllocationLost(self._requeued(note), next=AGAIN)
            if not killed or note.ended is not None or (time.monotonic() > deadline and not cleaned):
                return
            time.sleep(POLL_S)

    def _is_cleaned_up(self, note: store.AllocationNote) -> bool:
        """Tell whether the cluster is yet to say what becomes of a job whose processes have ended."""
        return note.ended is None and note.waits in CLEANING

    def _worker_failed(self, note: store.AllocationNote) -> ClusterError:
        log = self._log(note)
        read = "read it, correct runner.slurm" if log.exists() else "gpudebug doctor --cluster"
        return ClusterError(str(note.ended), file=str(log), next=f"{read}, then run this again")

    def _requeued(self, note: store.AllocationNote) -> str:
        return f"{self.cluster.title} put job {note.job} into the queue again"

    def refuse_unwanted(self) -> None:
        """InterruptedRun if the user of this command cancelled the allocation: another one is not wanted."""
        self._settle()
        note = self.files.note()
        if note is not None and note.wanted and note.ended is not None:
            raise self._unwanted(note)

    def _unwanted(self, note: store.AllocationNote) -> InterruptedRun:
        return InterruptedRun(f"job {note.job} is over: {note.ended}", next="gpudebug next")

    def cancel(self, note: store.AllocationNote, why: str) -> None:
        """End the job, by the wish of gpudebug or its user."""
        with self.files.changing():
            now_there = self.files.note()
            if now_there is None or now_there.job == note.job:
                waiting = self.files.request()
                if waiting is not None:
                    self.files.forget_request(waiting.id)
                self.files.put_note(replace(now_there or note, waits=None, ended=why, wanted=True))
        self.cluster.cancel((note.job,))

    @contextlib.contextmanager
    def interruptible(self, request: store.RunRequest) -> Iterator[None]:
        """Take Ctrl-C, from the asking on, for the wish that the request is not begun, or ends."""
        try:
            yield
        except KeyboardInterrupt:
            self._interrupt(request)
            raise InterruptedRun("interrupted", next="gpudebug next") from None

    def follow(self, request: store.RunRequest) -> NextAnswer:
        """Until the request has its answer: that, or the error that it met.

        AllocationLost if the cluster ended the allocation before.
        """
        follower: Follower | None = None
        told: str | None = None
        gone: float | None = None
        while (answer := self._answer(request)) is None:
            note = self.look()
            lives = note is not None and note.ended is None
            if lives and self._serves(request):
                follower = follower or Follower(self.workspace, self._since(request))
                self.report(live(follower.look()))
            elif note is not None and lives and self.files.request() == request:
                told = self._tell(note, told)
            else:
                gone = gone or time.monotonic()
                self._give_up(request, note, time.monotonic() - gone)
            time.sleep(POLL_S)
        return answer

    def _answer(self, request: store.RunRequest) -> NextAnswer | None:
        outcome = self.detached.answer_of(request.id)
        return None if outcome is None else retold(outcome)

    def _serves(self, request: store.RunRequest) -> bool:
        said = self.detached.said()
        return said.held and said.holder.get("id") == request.id

    def _since(self, request: store.RunRequest) -> str:
        """When the request was begun: runs before that are another's."""
        return str(self.detached.said().holder.get("since") or request.since)

    def _tell(self, note: store.AllocationNote, told: str | None) -> str | None:
        """Say why the job waits, once for each reason."""
        self.refuse_hopeless(note)
        if not note.waits or note.waits == told:
            return told
        why = explained(note.waits, note.job)
        self.say(f"job {note.job} waits: {why.text}{f'; {why.next}' if why.next else ''}")
        return note.waits

    def _give_up(self, request: store.RunRequest, note: store.AllocationNote | None, since: float) -> None:
        """AllocationLost once neither an answer nor the cluster's word can be expected any more."""
        if self._serves(request) and since < SEALS_S:
            return
        why = note.ended if note is not None else None
        if note is not None and self._is_cleaned_up(note):
            return
        if note is not None and why is None and note.waits is not None:
            why = self._requeued(note)
        # The answer is put before the lock is left; a moment passes between two files.
        if since < 2 * POLL_S or (why is None and since < SPEECHLESS_S):
            return
        self.files.forget_request(request.id)
        if note is not None and note.failed:
            raise self._worker_failed(note)
        if note is not None and note.wanted:
            raise self._unwanted(note)
        raise AllocationLost(why or "the worker in the allocation is gone", next=AGAIN)

    def _interrupt(self, request: store.RunRequest) -> None:
        with self.files.changing():
            if self.files.forget_request(request.id):
                return
        self.detached.ask_to_stop(request.id)
        deadline = time.monotonic() + SEALS_S
        while self._serves(request) and time.monotonic() < deadline:
            time.sleep(POLL_S)
        self.detached.forget_request(request.id)
        self.detached.answer_of(request.id)

    def waiting(self, request: store.RunRequest) -> Running:
        """`next --detach`'s answer while nothing runs yet."""
        found = underway(self.workspace)
        if found is None or found.id != request.id:
            found = RunningCommand(None, COMMAND, request.session, request.since, request.id)
        return running(self.workspace, found, RunProgress())


def _failed(note: store.AllocationNote, seen: SeenJob) -> bool:
    """Tell whether the worker, or its script before it, ended by itself and without a word in the files."""
    by_itself = seen.end in (JobEnd.COMPLETED, JobEnd.FAILED)
    return by_itself and note.left is None and (seen.exit_status or 0) < 128


def allocation_of(directory: Path, report: Report) -> Allocation | None:
    """The allocation of the campaign at or above `directory`; None if its runs are made on this host."""
    cluster = elsewhere_of(directory)
    return None if cluster is None else Allocation(find(directory), cluster, report)


def _just_left(note: store.AllocationNote) -> bool:
    """Tell whether the worker ended so lately that the cluster's last answer may be of before."""
    if note.left_at is None:
        return False
    try:
        left = datetime.datetime.fromisoformat(note.left_at)
        return (datetime.datetime.now(datetime.timezone.utc) - left).total_seconds() <= ASK_S + 1
    except (TypeError, ValueError):
        return False
