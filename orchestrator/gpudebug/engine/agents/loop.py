"""`gpudebug loop`: the campaign unattended. What gpudebug can do it does; if it is an agent's turn, one
agent's session is started. State is derived from files only, so that a loop that was killed goes on."""

from __future__ import annotations

import datetime
import os
import shlex
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gpudebug.core.answers.hypotheses import LoopAnswer, LoopSession
from gpudebug.core.answers.next import NextAnswer
from gpudebug.core.answers.status import HypothesisRow
from gpudebug.core.campaign.decide import Action, ActionKind, Ending, decide
from gpudebug.core.campaign.loop_limits import End, Limits, Spent, Stuck, end_of, next_name
from gpudebug.core.errors import BusyError, GitError, GpudebugError, InterruptedRun, InterventionError
from gpudebug.edges import git, launcher, store
from gpudebug.edges.host import now
from gpudebug.engine.agents import session as agents
from gpudebug.engine.campaign import worktrees
from gpudebug.engine.campaign.campaign import Loaded, Records, Setup
from gpudebug.engine.campaign.files import find, stored_record
from gpudebug.engine.campaign.load import load
from gpudebug.engine.campaign.session import session_of
from gpudebug.engine.campaign.settings import admit
from gpudebug.engine.cycle import detached
from gpudebug.engine.cycle.begin import next_here
from gpudebug.engine.cycle.next import STOPPED
from gpudebug.engine.cycle.request import to_correct
from gpudebug.engine.diagnosis.weights import proposes, weighed
from gpudebug.engine.live.underway import underway
from gpudebug.engine.run.live_line import Live, Report
from gpudebug.engine.status.status import status

BUSY_S = 3600.0
"""So long a loop waits for the holder of the campaign or its device."""
_BUSY_TICK_S = 5.0
_OWN = (ActionKind.RECOVER, ActionKind.RECORD_BASELINE, ActionKind.TEST)
_TURN = (ActionKind.PROPOSE.value, ActionKind.IMPLEMENT.value)
_GAVE_UP = 1


def loop(directory: Path, command: str, limits: Limits, timeout: float, report: Report) -> LoopAnswer:
    """Run the campaign at or above `directory` until it ends or a limit is reached.

    `command` starts an agent, for at most `timeout` seconds each. BusyError if a loop runs here already,
    InterruptedRun after Ctrl-C; either way, and after a kill, another loop continues.
    """
    workspace = find(directory)
    agent = agents.agent_of(command, workspace.root, timeout, os.environ)
    sessions = store.Sessions(workspace)
    holder = {"pid": os.getpid(), "command": "gpudebug loop", "since": now(), "session": session_of()}
    with store.RunClaim(sessions.lock, holder), _terminable():
        return _Loop(workspace, sessions, agent, limits, report).run()


def adopt() -> None:
    """For a process that is the loop and nothing else: what its agents orphan stays below it."""
    launcher.adopt_orphans()


@contextmanager
def _terminable() -> Iterator[None]:
    """Takes SIGTERM and SIGHUP for Ctrl-C until the end of the block."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is not signal.SIG_IGN]
    previous = {n: signal.signal(n, signal.default_int_handler) for n in numbers}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


class _Loop:
    def __init__(
        self,
        workspace: store.Workspace,
        sessions: store.Sessions,
        agent: agents.AgentCommand,
        limits: Limits,
        report: Report,
    ) -> None:
        self.workspace = workspace
        self.root = workspace.root
        self.sessions = sessions
        self.agent = agent
        self.limits = limits
        self.report = report
        self.spent = Spent()
        self.begun: list[agents.Session] = []
        self.refused: dict[int, GpudebugError] = {}
        # Who starts a loop may move the base; from the first session on no caller may.
        self.starting = session_of() is None
        self.settings = self.read_settings()
        self.tested: set[str] = set()
        self.held = 0.0
        self.checkout: git.Checkout | None = None
        self.changed: list[str] = []

    def run(self) -> LoopAnswer:
        try:
            self.mend(stop=False)
            loaded = self.look()
            pinned = admit(loaded.setup, loaded.history.records)
            if pinned is not None:
                self.say(pinned)
            self.tested, self.held = (
                _trials(loaded.setup, loaded.history.records),
                loaded.campaign.device_time,
            )
            self.checkout = loaded.setup.checkout
            return self.answer(self.run_to_end())
        except (KeyboardInterrupt, InterruptedRun):
            try:
                self.mend(stop=True)
            except GpudebugError as e:
                self.say(f"the next loop puts in order what is left: {e.message}")
            raise InterruptedRun("the loop was interrupted", next="gpudebug loop goes on from here") from None

    def run_to_end(self) -> End:
        """Return all steps. What stops every step ends the loop, or is raised before the first session."""
        try:
            while (end := self.end()) is None:
                self.step()
            return end
        except InterruptedRun:
            raise
        except GpudebugError as e:
            if not self.begun:
                raise
            return End(Stuck.ERROR, str(e))

    def mend(self, *, stop: bool) -> None:
        """Close the session that a kill or Ctrl-C cut off, whichever loop began it."""
        last = self.sessions.last()
        if last is not None and "end" not in last[1]:
            folder, record = last
            self.say(f"session {folder.name} was cut off: ending what is left of it")
            agents.abandon(agents.Session(folder, self.root, self.report, self.say, record), stop=stop)

    def say(self, text: str) -> None:
        """One line that stays, with the time of day."""
        clock = datetime.datetime.now().astimezone().strftime("%H:%M:%S")
        self.report(Live("", 0.0, None, None, None, None, None, f"{clock} {text}"))

    def shown(self, session: agents.Session) -> str:
        """Return where a session's transcript lies, from the campaign's folder on."""
        return str(session.folder.transcript.relative_to(self.root))

    def read_settings(self) -> str:
        return store.digest(store.read_file(self.workspace.config, follow=True))

    def look(self) -> Loaded:
        return load(self.root, self.name())

    def name(self) -> str | None:
        """Whom the next step is for: at first the loop's caller, then a new session each."""
        if self.starting:
            return None
        records = (stored_record(self.workspace.run(n), "run.json") for n in self.workspace.run_names())
        date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%d")
        return next_name(date, [*self.sessions.names(), *(r.get("session") for r in records)])

    def end(self) -> End | None:
        """Return why the loop ends here; None while it goes on."""
        if self.read_settings() != self.settings:
            why = "gpudebug.yaml was changed while the loop ran: look at it with `git diff`, then start again"
            return End(Stuck.SETTINGS, why)
        loaded = self.look()
        self.watch_checkout(loaded.setup.checkout)
        action = decide(loaded.campaign)
        if action.ending is not None:
            return End(action.ending, action.why)
        spent = Spent(
            hypotheses=len(_trials(loaded.setup, loaded.history.records) - self.tested),
            device_time=loaded.campaign.device_time - self.held,
            failures=self.spent.failures,
            idle=self.spent.idle,
        )
        return end_of(self.limits, spent)

    def step(self) -> None:
        """One step of gpudebug's own, or one session."""
        self.wait_for_others()
        loaded = self.look()
        action = decide(weighed(loaded))
        if self.starting and action.kind not in (ActionKind.RECOVER, ActionKind.RECORD_BASELINE):
            for note in worktrees.remember(loaded.setup, loaded.code):
                self.say(note)
            self.starting = False
        elif action.kind is ActionKind.TEST and action.hypothesis in self.refused:
            self.turn(action)
        elif action.kind in _OWN or (action.kind is ActionKind.PROPOSE and proposes(loaded)):
            self.own(action)
        else:
            self.turn(action)

    def own(self, action: Action) -> None:
        try:
            self.tell(self.cycle(self.name()))
        except (InterventionError, GitError) as e:
            # A proposal of the catalogue's may stand in the file by now, and be what cannot be tested.
            failed = decide(weighed(self.look())) if action.kind is ActionKind.PROPOSE else action
            if failed.kind is not ActionKind.TEST or failed.hypothesis is None:
                raise
            self.refused[failed.hypothesis] = e
            self.say(f"hypothesis {failed.hypothesis} cannot be tested: {e.message}")

    def cycle(self, name: str | None) -> NextAnswer:
        """Run one `next`; wait for another holder of the campaign or its device."""
        deadline = time.monotonic() + BUSY_S
        while True:
            try:
                return next_here(self.root, self.report, name)
            except BusyError as e:
                if time.monotonic() > deadline:
                    raise
                self.say(f"waiting: {e.message}")
            time.sleep(_BUSY_TICK_S)

    def wait_for_others(self) -> None:
        """Whatever runs here already, a person's run or one that outlived its session."""
        found = underway(self.workspace)
        if found is None:
            return
        self.say(f"waiting for `{found.command}`, under way since {found.since}")
        try:
            detached.wait(self.root, self.report, self.name(), None)
        except GpudebugError as e:
            self.say(f"it ended without a result: {e.message}")

    def tell(self, answer: NextAnswer) -> None:
        about = f" hypothesis {answer.hypothesis}" if answer.hypothesis else ""
        verdict = f": {answer.verdict}, {answer.why}" if answer.verdict else f": {answer.why}"
        self.say(f"{answer.action.replace('_', ' ')}{about}{verdict}")

    def turn(self, action: Action) -> None:
        """An agent's turn: one session, unless something else has come between."""
        name = self.name()
        assert name is not None
        before = agents.state(self.look().entries.document)
        folder = self.sessions.new(name)
        session = agents.begin(folder, self.agent, before, self.root, self.report, self.say)
        asked = self.asked(action, name)
        if asked.action not in _TURN:
            session.folder.discard()
            self.tell(asked)
            return
        self.begun.append(session)
        session.note(action=asked.action, hypothesis=asked.hypothesis)
        about = f" hypothesis {asked.hypothesis}" if asked.hypothesis else ""
        self.say(f"session {name}: {asked.action}{about}, see {self.shown(session)}")
        ended = agents.run(session, self.agent, asked.brief or "")
        if ended.outcome == "INTERRUPTED":
            raise InterruptedRun("the agent was interrupted")
        did = agents.settle(session, before, finished=agents.finished(ended))
        self.spent = self.spent.after(did)
        self.say(f"session {name}: {_summary(session.record)}")

    def asked(self, action: Action, name: str) -> NextAnswer:
        """What the session is asked, as by `next`. A change that cannot be tested is for it to correct."""
        number = action.hypothesis
        refused = self.refused.pop(number, None) if number is not None else None
        if action.kind is not ActionKind.TEST or refused is None:
            return self.cycle(name)
        assert number is not None
        why = f"hypothesis {number} cannot be tested: {refused.message}"
        return to_correct(load(self.root, name), number, why, str(refused.next or why))

    def watch_checkout(self, checkout: git.Checkout) -> None:
        """Name what was changed in the checkout; sessions measure the base, whatever lies there."""
        if self.checkout is None or self.starting:
            self.checkout = checkout
            return
        changed = checkout.changed_since(self.checkout)
        fresh = [path for path in changed if path not in self.changed]
        if fresh:
            self.say(f"changed in the checkout by an unknown author, not measured: {_few(fresh)}")
        self.changed = changed

    def answer(self, end: End) -> LoopAnswer:
        self.close(end)
        where = status(self.root)
        hypotheses = where.hypotheses
        accepted = sorted((h for h in hypotheses if h.accepted), key=lambda h: h.accepted or 0)
        return LoopAnswer(
            ending=str(end.ending),
            why=self.advised(end),
            campaign=where.campaign,
            sessions=tuple(map(_told, self.begun)),
            hypotheses=tuple(hypotheses),
            accepted=tuple(h.number for h in accepted),
            checkout_changed=tuple(self.changed),
            next_command=_next_command(hypotheses),
            files=(where.files.progress, *(str(s.folder.path) for s in self.begun)),
        )

    def close(self, end: End) -> None:
        """As `next` does if a campaign stops."""
        if not isinstance(end.ending, Ending):
            return
        try:
            if decide(self.look().campaign).kind is ActionKind.STOP:
                next_here(self.root, self.report, self.name())
        except GpudebugError as e:
            self.say(f"the campaign's worktrees could not be removed: {e.message}")

    def advised(self, end: End) -> str:
        """Return the sentence with what to do next, if the loop gave up."""
        if not self.begun or end.ending not in (Stuck.FAILURES, Stuck.IDLE):
            return end.why
        last = self.begun[-1]
        what = "correct --agent" if end.ending is Stuck.FAILURES else "see what the agent lacks"
        text = f"{_summary(last.record)}; read {self.shown(last)}, {what}, then start the loop again"
        return f"{end.why}; the last: {text}"


def exit_status(answer: LoopAnswer) -> int:
    """4 if the campaign or a budget ended, 1 if the loop gave up."""
    return STOPPED if answer.ending in [str(e) for e in Ending] else _GAVE_UP


def _trials(setup: Setup, records: Records) -> set[str]:
    """Return the runs that decided a hypothesis of this campaign."""
    campaign = setup.config.campaign
    return {
        name
        for name, record in records.items()
        if record.get("campaign") == campaign and setup.workspace.run(name).has("verdict.json")
    }


def _few(paths: list[str]) -> str:
    more = f" and {len(paths) - 5} more" if len(paths) > 5 else ""
    return ", ".join(shlex.quote(path) for path in paths[:5]) + more


def _summary(record: dict[str, Any]) -> str:
    """Return what a session did, in a few words."""
    outcome, code = record.get("outcome"), record.get("exit_status")
    if record.get("tested"):
        did = f"hypothesis {record['tested']} is {record['verdict']}"
    elif record.get("proposed"):
        did = f"proposed hypothesis {', '.join(map(str, record['proposed']))}"
    elif record.get("nothing"):
        did = "nothing to propose"
    elif record.get("late"):
        did = "its result was too late"
    else:
        did = "no verdict, no proposal"
    how = {"TIMED_OUT": "stopped at its time limit", "CRASHED": f"exit status {code}"}.get(str(outcome))
    if outcome == "CRASHED" and code is None:
        how = f"ended by signal {record.get('signal')}"
    left = f"{record['leaked']} left-over processes ended" if record.get("leaked") else None
    return ", ".join(filter(None, [did, how, left]))


def _told(session: agents.Session) -> LoopSession:
    record = session.record
    keys = ("exit_status", "signal", "outcome", "duration_s", "verdict", "why", "kept")
    proposed = record.get("proposed")
    return LoopSession(
        session=session.name,
        action=record["action"],
        **{key: record.get(key) for key in keys},
        proposed=None if proposed is None else tuple(proposed),
        hypothesis=record.get("tested") or record.get("hypothesis"),
        transcript=str(session.folder.transcript),
    )


def _next_command(hypotheses: Sequence[HypothesisRow]) -> str:
    """Accepting is a person's: the best that is validated and not accepted yet."""
    ready = (h for h in hypotheses if h.status == "VALIDATED" and h.verified and not h.accepted)
    best = max(ready, key=lambda h: h.delta_pp or h.improvement or 0.0, default=None)
    return f"gpudebug accept {best.number}" if best else "gpudebug status"
