"""The worker in a campaign's allocation: one request after the other, on the same devices.

`python -m gpudebug.engine.cycle.served FOLDER`, which the batch script starts on the first node.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from gpudebug.core.answers.next import NextAnswer
from gpudebug.core.cluster.jobs import InsideJob
from gpudebug.core.errors import BusyError, ClusterError, GpudebugError
from gpudebug.core.progress.sanitise import visible
from gpudebug.edges import clusters, launcher, opener, store
from gpudebug.edges.host import now
from gpudebug.engine.campaign.allocations import living_jobs
from gpudebug.engine.campaign.files import find, read_config
from gpudebug.engine.campaign.session import NAMES, VARIABLE
from gpudebug.engine.cycle.notice import Notice
from gpudebug.engine.cycle.worker import Outcome, defect, failed, outcome_of, stoppable
from gpudebug.engine.live.underway import COMMAND
from gpudebug.engine.run.attempts import NEAR_ITS_END, wasted
from gpudebug.engine.run.live_line import Live, Report

_LOOK_S = 1.0
MOST_WASTED = 3
"""So many allocations are tried for what does not fit into one."""


def main(root: str) -> int:
    """Serve the campaign in this folder until its allocation ends. Status 1 if the cluster ends it."""
    workspace = find(Path(root))
    job = clusters.inside()
    if job is None:
        raise ClusterError("this is no allocation", next="gpudebug next asks for one")
    for name in NAMES:
        # Whoever submitted the job is not who asks: each request says that itself.
        os.environ.pop(name, None)
    files = store.Allocations(workspace.private)
    if not _taken_up(files, job):
        return 0
    command = f"the worker of job {job.id}"
    holder = {"pid": os.getpid(), "command": command, "since": now(), "allocation": job.allocation}
    with files.take(holder, living_jobs(workspace)):
        _disown(workspace, job)
        runner = read_config(workspace).runner
        return _Served(workspace, files, job, runner.idle if runner is not None else 0.0, Notice(job)).serve()


def _taken_up(files: store.Allocations, job: InsideJob) -> bool:
    """Whether the campaign still has this job for its allocation; a job that was requeued may be late."""
    with files.changing():
        note = files.note()
        if note is None or note.job != job.id or note.ended is not None:
            return False
        files.put_note(replace(note, waits=None, left=None, left_at=None))
        return True


def _disown(workspace: store.Workspace, job: InsideJob) -> None:
    """Answer for a worker of this campaign that was killed: its request is void."""
    detached = store.Detached(workspace.private)
    left = detached.said()
    if left.killed and "id" in left.holder:
        before = str(left.holder.get("allocation", job.id))
        again = job.restarts and before.partition(".")[0] == job.id
        why = f"job {job.id} was put into the queue again" if again else f"the worker of job {before} is gone"
        detached.put_answer({**left.holder, "void": why, "ended": now()})
        detached.forget_killed()


@dataclass
class _Served:
    workspace: store.Workspace
    files: store.Allocations
    job: InsideJob
    idle_s: float
    notice: Notice
    since: float = field(default_factory=time.monotonic)

    def serve(self) -> int:
        """Requests, until there is a reason to end. The last one that a signal cut off is void."""
        why = None
        with self.notice.heeded(self._leaves):
            while (why := self._over()) is None:
                request = self.files.request()
                if request is None:
                    time.sleep(_LOOK_S)
                    continue
                self._do(request)
                self.since = time.monotonic()
        return 0 if why is not None and self.notice.why is None else 1

    def _over(self) -> str | None:
        """Why the allocation ends here, written down; None while it goes on. A request keeps an idle one."""
        if self.notice.why is not None:
            self._leaves(self.notice.why)
            return self.notice.why
        with self.files.changing():
            note = self.files.note()
            if note is None or note.job != self.job.id or note.ended is not None:
                return "it is not this campaign's allocation any more"
            if self.files.request() is not None:
                return None
            why = None
            if self.files.asked_to_end():
                why = "gpudebug stop"
            elif time.monotonic() - self.since > self.idle_s:
                why = f"idle for {self.idle_s / 60:g} min"
            if why is not None:
                self.files.put_note(replace(note, waits=None, ended=why))
            return why

    def _leaves(self, why: str) -> None:
        """Write down that the cluster ends this worker: the job is over, or goes into the queue again."""
        with self.files.changing():
            note = self.files.note()
            if note is not None and note.job == self.job.id and note.ended is None:
                self.files.put_note(replace(note, waits=None, left=why, left_at=now()))

    def _do(self, request: store.RunRequest) -> None:
        """One request, from the lock to its answer."""
        detached = store.Detached(self.workspace.private)
        holder = {"session": request.session, "id": request.id, "since": now()}
        command = {"pid": os.getpid(), "command": COMMAND, "allocation": self.job.allocation, **holder}
        try:
            lock = detached.take(command, living_jobs(self.workspace))
        except BusyError as e:
            if self._begun(request):
                detached.put_answer({**failed(e), **holder, "ended": now()})
            return
        with lock:
            if self._begun(request):
                self._answered(request, detached, holder)

    def _begun(self, request: store.RunRequest) -> bool:
        """Take the request up; False if its caller took it back since it was read."""
        with self.files.changing():
            return self.files.forget_request(request.id)

    def _answered(
        self, request: store.RunRequest, detached: store.Detached, holder: Mapping[str, object]
    ) -> None:
        with (
            stoppable(detached, request.id),
            launcher.naming_interrupts(lambda: self._origin(request)),
            _as(request.session),
        ):
            outcome = failed(defect(str(detached.log(request.id))))
            try:
                with self.notice.busy():
                    outcome = self._outcome(request, detached.log(request.id))
            finally:
                launcher.forget_held()
                if _interrupted(outcome) and not self._stopped(request):
                    outcome = self._void(outcome)
                detached.put_answer({**outcome, **holder, "ended": now()})

    def _void(self, outcome: Outcome) -> Outcome:
        """Return what was cut off is asked for again by its caller, unless that leads nowhere."""
        why = self._cut_off()
        count = wasted(self.workspace) if NEAR_ITS_END in why else 0
        if count < MOST_WASTED:
            return {**outcome, "void": why}
        return failed(
            ClusterError(
                f"{count} allocations in a row ended before a test did; each has a baseline of its own first",
                file=str(self.workspace.config),
                next="give them more time (runner.slurm.time), a partition that does not preempt, or "
                "shorter runs (protocol.run_for)",
            )
        )

    def _cut_off(self) -> str:
        """Return why what ran is void; written down if this worker ends with it."""
        if self.notice.paused and self.notice.why is None:
            return f"the cluster suspended job {self.job.id}"
        self.notice.why = self.notice.why or f"the cluster ended job {self.job.id}"
        # Before the answer is there: whoever has that asks again at once, and not this worker.
        self._leaves(self.notice.why)
        return self.notice.why

    def _stopped(self, request: store.RunRequest) -> bool:
        """Tell whether a caller asked for the end of what runs."""
        asked_to_stop = store.Detached(self.workspace.private).asked_to_stop(request.id)
        return asked_to_stop or self.files.asked_to_end()

    def _origin(self, request: store.RunRequest) -> str:
        if self._stopped(request):
            return "from the login node"
        return self.notice.origin

    def _outcome(self, request: store.RunRequest, log: Path) -> Outcome:
        """Its answer, or the error that it met; what is said meanwhile goes to the request's log."""
        to = opener.descriptor(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        with os.fdopen(to, "a", encoding="utf-8", errors="replace") as out, contextlib.redirect_stderr(out):
            try:
                return outcome_of(lambda: asked(self.workspace.root, request, _remark))
            except Exception:  # noqa: BLE001 - a defect: it is in the log before the answer sends anybody there
                traceback.print_exc()
                return failed(defect(str(log)))


def asked(root: Path, request: store.RunRequest, report: Report) -> NextAnswer:
    """Do what a request says, as the session that it names."""
    if request.verb == "next":
        from gpudebug.engine.cycle.begin import next_or_attached

        return next_or_attached(root, report, request.session, request.wish)
    if request.verb == "baseline":
        from gpudebug.engine.cycle.record_baseline import record_baseline

        return record_baseline(root, request.role, report, request.session)
    if request.verb == "aa":
        from gpudebug.engine.trial.aa import record_aa

        return record_aa(root, report, request.runs, request.session)
    if request.verb == "profile":
        from gpudebug.core.inside.torch_profile import parse_torch_profile
        from gpudebug.engine.trial.profile_run import record_profile

        spec = parse_torch_profile(request.profile or "default")
        return record_profile(root, request.role or "workload", spec, report, request.session)
    raise GpudebugError(f"the allocation's worker knows no {request.verb!r}", next="gpudebug stop")


def _remark(live: Live) -> None:
    if live.remark is not None:
        print(visible(live.remark), file=sys.stderr, flush=True)


def _interrupted(outcome: Outcome) -> bool:
    return isinstance(error := outcome.get("error"), dict) and error.get("code") == "interrupted"


@contextlib.contextmanager
def _as(session: str | None) -> Iterator[None]:
    """What a request runs is its session's, by the variable that names one."""
    if session is not None:
        os.environ[VARIABLE] = session
    try:
        yield
    finally:
        os.environ.pop(VARIABLE, None)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1]))
    except GpudebugError as e:
        sys.exit(f"gpudebug: {e}")  # The last line of its log is what its caller is told.
