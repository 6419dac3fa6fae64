"""Runs that outlive their caller: started in the background, waited for, their answers handed out once."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from gpudebug.core.answers.next import NextAnswer, NothingRunning, Running
from gpudebug.core.answers.status import RunProgress
from gpudebug.core.errors import BusyError, GpudebugError
from gpudebug.edges import store
from gpudebug.edges.daemon import Daemon
from gpudebug.edges.host import now
from gpudebug.engine.campaign.files import find
from gpudebug.engine.campaign.session import VARIABLE
from gpudebug.engine.cycle.allocation import Allocation, allocation_of
from gpudebug.engine.cycle.array_wait import wait_for_array
from gpudebug.engine.cycle.outcome import ending_of
from gpudebug.engine.cycle.retold import Retold, retold
from gpudebug.engine.live.underway import COMMAND, Follower, RunningCommand, live, running, underway
from gpudebug.engine.run.live_line import Live, Report

TOLD_WITHIN_S = 60.0
"""A cycle whose preparations take longer is reported as under way all the same."""
STOPPED_WITHIN_S = 60.0
LEAVES_WITHIN_S = 10.0
_POLL_S = 0.5
_BRIEF_POLL_S = 0.05


class Killed(GpudebugError):
    """A background process was killed, and its answer with it."""

    code = "killed"


def start(
    directory: Path, report: Report, session: str | None, wish: store.NextWish | None = None
) -> NextAnswer:
    """`next --detach`: as `next_or_attached`, but a run goes on in the background, answered as `running`."""
    workspace = find(directory)
    known = _known(directory, session)
    if known is not None:
        return known
    files = store.Detached(workspace.private)
    since = now()
    begun = RunningCommand(None, COMMAND, session, since, store.new_id(since))
    answer = _launched(directory, workspace, begun, wish or store.NextWish())
    if answer is not None and "done" in answer:
        return _answered(directory, answer["done"], begun)
    for remark in (answer or {}).get("remarks", ()):
        report(Live("", 0.0, None, None, None, None, None, remark))
    known = _known(directory, session)
    if known is not None:
        return known
    if answer is None:
        return running(workspace, begun, RunProgress())
    if files.said().killed:
        raise _killed(files)
    return _idle(workspace, f"run {answer['run']} has ended already; its result went to another caller")


def _known(directory: Path, session: str | None) -> NextAnswer | None:
    """Return what needs no process: the answer of one that has ended, or how far one is."""
    return attach(directory, lambda _: None, session, block=False)


def _launched(
    directory: Path, workspace: store.Workspace, begun: RunningCommand, wish: store.NextWish
) -> dict[str, Any] | None:
    """Start the background process; what it says first, None if it says nothing for long."""
    assert begun.id is not None
    log = store.Detached(workspace.private).start_log(begun.id)
    request = {
        "directory": str(directory),
        "private": str(workspace.private),
        "session": begun.session,
        "id": begun.id,
        "since": begun.since,
        "wish": asdict(wish),
    }
    ours = ("GPUDEBUG_RUN", "GPUDEBUG_RUN_DIR", "GPUDEBUG_RECORDS_DIR")
    env = {k: v for k, v in os.environ.items() if k not in ours}
    if begun.session is not None:
        # It has no ancestor any more by which it, and what it runs, could be told apart from a person.
        env[VARIABLE] = begun.session
    daemon = Daemon("gpudebug.engine.cycle.worker", json.dumps(request), cwd=os.getcwd(), env=env, log=log)
    try:
        answer = daemon.hear(TOLD_WITHIN_S)
    finally:
        daemon.leave()
    if answer == {}:
        raise Killed(
            "the background process exited before it reported anything", file=str(log), next="gpudebug next"
        )
    return answer


def _answered(directory: Path, outcome: dict[str, Any], begun: RunningCommand) -> NextAnswer:
    """An outcome as the caller's own. One that lost a race attaches to the winner's run, if that is its."""
    try:
        return retold(outcome)
    except Retold as e:
        if e.exit_code != BusyError.exit_code:
            raise
        # What runs is another's; the process that could not begin must not be taken for its owner.
        _wait_for_end(find(directory), begun, time.monotonic() + LEAVES_WITHIN_S)
        known = _known(directory, begun.session)
        if known is None:
            raise
        return known


def _wait_for_end(workspace: store.Workspace, process: RunningCommand, until: float) -> bool:
    """Until a background process holds nothing; False if the monotonic clock says `until` before."""
    while (holder := underway(workspace)) is not None and holder.id == process.id:
        if time.monotonic() >= until:
            return False
        time.sleep(_BRIEF_POLL_S)
    return True


def adopt(directory: Path, session: str | None) -> NextAnswer | None:
    """Return the answer of a background process that has ended, once, or the error that it met.

    A caller without a session takes anybody's, a session its own.
    """
    outcome = store.Detached(find(directory).private).take_answer(
        lambda kept: session is None or kept.get("session") == session
    )
    return None if outcome is None else retold(outcome)


def attach(directory: Path, report: Report, session: str | None, *, block: bool = True) -> NextAnswer | None:
    """Return what `next` answers without a cycle of its own; None if it is to do one.

    The answer of a background run that has ended, as `adopt` hands it out. While one is under way, of this
    session or asked for by a person: `running`. While a run of the same session is under way in the
    foreground, whose caller lost patience and asks again: its result, once it has ended, or `running` at
    once without `block`. Another's is left to the claim, which names its holder.
    """
    answer = adopt(directory, session)
    if answer is not None:
        return answer
    workspace = find(directory)
    found = underway(workspace)
    if found is None:
        store.Detached(workspace.private).forget_killed()
        return None
    if found.pid == os.getpid() or not _may_attach(found, session):
        return None
    if found.id is not None or not block:
        return _running(workspace, found)
    follower = Follower(workspace, found.since)
    _follow(workspace, found, follower, report, None)
    ending = ending_of(directory, follower.seen, session)
    if ending is None and follower.seen:
        raise GpudebugError(
            f"what this session had under way since {found.since} ended without a result",
            file=str(workspace.run(follower.seen[-1]).path),
            next="gpudebug next",
        )
    return ending


def _may_attach(found: RunningCommand, session: str | None) -> bool:
    """A session to what is its own; a person, who has no name, to what runs in the background."""
    return found.id is not None if session is None else found.session == session


def _running(workspace: store.Workspace, found: RunningCommand) -> Running:
    return running(workspace, found, Follower(workspace, found.since).look())


def _follow(
    workspace: store.Workspace,
    found: RunningCommand,
    follower: Follower,
    report: Report,
    until: float | None,
    there: Allocation | None = None,
) -> bool:
    """Report how far it is until it has ended, or the monotonic clock says `until`; whether it has ended.

    `there` is the allocation that it runs in, or waits for: it may end what is not begun.
    """
    while (holder := underway(workspace)) is not None and _same(holder, found):
        if until is not None and time.monotonic() >= until:
            return False
        if there is not None and (note := there.look()) is not None and note.ended is None:
            there.refuse_hopeless(note)
        report(live(follower.look()))
        time.sleep(_POLL_S if until is None else max(0.0, min(_POLL_S, until - time.monotonic())))
    return True


def _same(holder: RunningCommand, found: RunningCommand) -> bool:
    """Whether it is the same command. One that waited for an allocation has a process once that begins."""
    if found.id is not None:
        return holder.id == found.id
    return (holder.since, holder.pid) == (found.since, found.pid)


def wait(directory: Path, report: Report, session: str | None, limit: float | None) -> NextAnswer:
    """`wait`: until what runs here has ended, or for `limit` seconds; then its answer, or `running`.

    Whose run it is matters only for the answer: its session, or a person, gets the result. Raises
    what the run met, and Killed if it was killed.
    """
    workspace = find(directory)
    until = None if limit is None else time.monotonic() + limit
    answer = adopt(directory, session)
    if answer is not None:
        return answer
    there = allocation_of(directory, report)
    found = underway(workspace)
    if found is None:
        _refuse_killed(workspace, there)
        array = None if session is not None else wait_for_array(directory, report, until)
        if array is not None:
            return array
        return _had(directory, session) or _idle(workspace, "nothing is under way here")
    follower = Follower(workspace, found.since)
    if not _follow(workspace, found, follower, report, until, there):
        return running(workspace, underway(workspace) or found, follower.look())
    answer = adopt(directory, session)
    if answer is not None:
        return answer
    # Without a pid it was the warden of a gpudebug that is gone, which ended what that left.
    if found.id is not None or found.pid is None:
        _refuse_killed(workspace, there)
    if there is not None and found.id is not None:
        there.refuse_lost()
    if session is None or found.session == session:
        ending = ending_of(directory, follower.seen, session)
        if ending is not None:
            return ending
    array = None if session is not None else wait_for_array(directory, report, until)
    return array or _idle(workspace, f"what {found.told} has ended")


def _refuse_killed(workspace: store.Workspace, there: Allocation | None) -> None:
    """Killed if a background process was killed; AllocationLost if the cluster did it."""
    files = store.Detached(workspace.private)
    if not files.said().killed:
        return
    if there is not None:
        there.refuse_lost()
    raise _killed(files)


def _killed(files: store.Detached) -> Killed:
    holder = files.said().holder
    log = files.log(str(holder["id"])) if "id" in holder else files.folder
    return Killed(
        f"the detached run of {holder.get('since', 'before')} was killed before it reported",
        file=str(log),
        next="gpudebug next, which recovers what it left",
    )


def _had(directory: Path, session: str | None) -> NothingRunning | None:
    """Return the answer to a session that has its verdict; None if it has not."""
    if session is None:
        return None
    from gpudebug.engine.campaign.claims import had
    from gpudebug.engine.campaign.load import load

    loaded = load(directory, session)
    verdict = had(loaded.setup, loaded.history.records)
    if not verdict:
        return None
    result = f"hypothesis {verdict['hypothesis']} is {verdict['status']}: {verdict['why']}"
    answer = _idle(
        loaded.setup.workspace,
        f"nothing is under way here; session {session} has had its hypothesis: {result}",
    )
    return replace(answer, hypothesis=verdict["hypothesis"], verdict=verdict["status"])


def _idle(workspace: store.Workspace, why: str) -> NothingRunning:
    from gpudebug.engine.campaign.files import read_config

    return NothingRunning(campaign=read_config(workspace).campaign, why=why)


def stop(directory: Path, session: str | None = None, patience: float = STOPPED_WITHIN_S) -> bool:
    """End the background run of this campaign as Ctrl-C would, and wait for it; False if there is none.

    It is asked through a file that it alone looks for: no process is guessed by its number. Its answer,
    that it was interrupted, is taken away. A session ends its own only, a person any: BusyError otherwise,
    and if it has not ended within `patience` seconds.
    """
    workspace = find(directory)
    found = underway(workspace)
    if found is None or found.id is None:
        return False
    if session is not None and found.session != session:
        whose = f"session {found.session}" if found.session else "a person"
        raise BusyError(
            f"the detached run of {found.since} is of {whose}, and this is session {session}",
            next="gpudebug wait",
        )
    files = store.Detached(workspace.private)
    there = store.Allocations(workspace.private)
    if there.request() is not None:
        with there.changing():
            if there.forget_request(found.id):
                return True
    files.ask_to_stop(found.id)
    if not _wait_for_end(workspace, found, time.monotonic() + patience):
        raise BusyError(
            f"the detached run of {found.since} has not ended {patience:g} s after it was asked to",
            file=str(files.log(found.id)),
            next="gpudebug wait",
        )
    files.forget_request(found.id)
    files.answer_of(found.id)
    return True
