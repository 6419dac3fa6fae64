"""One agent's session: its brief handed over, its process run to the end, what it left put in order."""

from __future__ import annotations

import codecs
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpudebug.core.campaign.decide import Claimed
from gpudebug.core.campaign.loop_limits import Did
from gpudebug.core.errors import GpudebugError, InterruptedRun, UsageError
from gpudebug.core.progress import ProgressFile
from gpudebug.core.redaction.records import RedactedStream
from gpudebug.core.redaction.redact import Redactor
from gpudebug.core.text import shell_words
from gpudebug.core.words import Outcome
from gpudebug.edges import launcher, store
from gpudebug.edges.host import now
from gpudebug.engine.agents.release import release
from gpudebug.engine.campaign import worktrees
from gpudebug.engine.campaign.campaign import Entries, Loaded
from gpudebug.engine.campaign.claims import had
from gpudebug.engine.campaign.load import load
from gpudebug.engine.campaign.session import AGENT_VARIABLES, VARIABLE
from gpudebug.engine.cycle import detached
from gpudebug.engine.cycle.begin import next_here
from gpudebug.engine.live.underway import underway
from gpudebug.engine.run.live_line import Report

MOST_TRANSCRIPT = 64 << 20
"""Bytes of a transcript at most: an agent that repeats itself must not fill the disk."""
# A baseline that has to be recorded first, a recovery, and the trial itself.
_STEPS = 4

Say = Callable[[str], None]
State = list[tuple[int, str, str | None]]


@dataclass(frozen=True)
class AgentCommand:
    """The command that starts an agent, and the variables that it starts with."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    timeout: float

    @property
    def redactor(self) -> Redactor:
        return Redactor(self.env, self.argv)


def agent_of(command: str, cwd: Path, timeout: float, env: Mapping[str, str]) -> AgentCommand:
    """Return the agent that `--agent` names, found before anything is done. UsageError, LaunchError."""
    try:
        variables, rest = shell_words.leading_assignments(command)
        argv = tuple(word.value for word in shell_words.split(rest))
    except shell_words.ShellSyntaxError as e:
        raise UsageError(
            f"--agent: {e} (at character {e.position + 1})",
            next="quote it, or name a script that does what a shell would",
        ) from None
    if not argv:
        raise UsageError("--agent is empty", next="gpudebug loop --agent 'claude -p'")
    theirs = {k: v for k, v in env.items() if k not in (*AGENT_VARIABLES, VARIABLE)}
    agent = AgentCommand(argv, {**theirs, **variables, "PATH": _path(env)}, cwd, timeout)
    launcher.find_command(agent.argv, str(cwd), agent.env)
    return agent


def _path(env: Mapping[str, str]) -> str:
    """PATH, on which `gpudebug` is found: that of this interpreter if there is no other."""
    path = env.get("PATH", os.defpath)
    beside = Path(sys.executable).parent
    if shutil.which("gpudebug", path=path) or not (beside / "gpudebug").exists():
        return path
    return os.pathsep.join([path, str(beside)])


@dataclass
class Session:
    """One session that has a folder: `record` is its record so far, as session.json has it."""

    folder: store.SessionFolder
    root: Path
    report: Report
    say: Say
    record: dict[str, Any]

    @property
    def name(self) -> str:
        return self.folder.name

    def note(self, **facts: Any) -> None:
        self.record.update(facts)
        self.folder.write(self.record)

    def load(self) -> Loaded:
        return load(self.root, self.name)


def begin(
    folder: store.SessionFolder, agent: AgentCommand, before: State, root: Path, report: Report, say: Say
) -> Session:
    """From now on the session can be found after a kill."""
    session = Session(folder, root, report, say, {})
    session.note(
        session=folder.name,
        command=list(agent.redactor.redact_argv(agent.argv)),
        start=now(),
        last=max((number for number, _, _ in before), default=0),
    )
    return session


def run(session: Session, agent: AgentCommand, brief: str) -> launcher.AgentEnded:
    """The agent's process from its brief to its end; what it says goes to the transcript, without secrets."""
    redactor = agent.redactor
    session.folder.write_brief(redactor.redact(brief))
    spec = launcher.AgentSpec(
        argv=agent.argv,
        cwd=str(agent.cwd),
        env={**agent.env, VARIABLE: session.name},
        stdin=str(session.folder.brief),
        marker=str(session.folder.path),
        timeout=agent.timeout,
    )
    with session.folder.open_transcript() as file:
        transcript = _Transcript(file.write, redactor)
        try:
            ended = launcher.run_agent(spec, transcript.feed)
        finally:
            transcript.close()
    session.note(
        outcome=str(ended.outcome),
        exit_status=ended.exit_status,
        signal=ended.signal,
        duration_s=round(ended.duration_s, 3),
        leaked=ended.leaked,
    )
    return ended


class _Transcript:
    """Writes what an agent says, redacted, up to MOST_TRANSCRIPT bytes."""

    def __init__(self, write: Callable[[bytes], object], redactor: Redactor) -> None:
        self._write = write
        self._decode = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode
        self._stream = RedactedStream(redactor.redact)
        self._left = MOST_TRANSCRIPT

    def feed(self, data: bytes) -> None:
        if self._left > 0:
            self._put(self._stream.feed(self._decode(data)))

    def close(self) -> None:
        if self._left > 0:
            self._put(self._stream.feed(self._decode(b"", True)) + self._stream.finish())

    def _put(self, text: str) -> None:
        data = text.encode("utf-8", "surrogateescape")
        self._write(data[: self._left])
        self._left -= len(data)
        if self._left <= 0:
            self._write(b"\n[the transcript is cut here]\n")


def settle(session: Session, before: State, *, finished: bool) -> Did:
    """What became of a session whose agent is gone: its run waited for, its claim ended by a verdict or
    given back. `finished` says that the agent ended by itself and well: then a change that it wrote counts.

    `before` are the hypotheses as the session found them.
    """
    _await(session)
    loaded = session.load()
    if had(loaded.setup, loaded.history.records) is None and (number := _held(loaded.entries)) is not None:
        if finished and worktrees.is_written(loaded.setup, number):
            _test(session, number)
            loaded = session.load()
        _give_back(session, loaded.entries)
        loaded = session.load()
    return _account(session, loaded, before, finished=finished)


def state(document: ProgressFile) -> State:
    """Return the hypotheses, as far as a session may have changed them."""
    return [(h.number, str(h.status), h.intervention) for h in document.hypotheses]


def _await(session: Session) -> None:
    """The run that the agent started in the background, if there is one."""
    workspace = session.load().setup.workspace
    found = underway(workspace)
    if found is None and not store.Detached(workspace.private).has_answer():
        return
    if found is not None:
        session.say(f"session {session.name} is over, its run goes on: waiting for it")
    try:
        detached.wait(session.root, session.report, session.name, None)
    except GpudebugError as e:
        session.say(f"session {session.name}: its background run failed: {e.message}")


def _held(entries: Entries) -> int | None:
    """Return the hypothesis that this session has claimed to implement."""
    mine = (h for h in entries.document.hypotheses if entries.claimed(h) is Claimed.MINE)
    return next((h.number for h in mine), None)


def _test(session: Session, number: int) -> None:
    """The last command that the agent forgot: once, with any result."""
    session.say(f"session {session.name} left a change of hypothesis {number} untested: testing it")
    try:
        for _ in range(_STEPS):
            answer = next_here(session.root, session.report, session.name)
            if answer.action not in ("recovered", "recorded_baseline"):
                return
    except InterruptedRun:
        raise
    except GpudebugError as e:
        session.say(f"the change of hypothesis {number} cannot be tested: {e.message}")


def _give_back(session: Session, entries: Entries) -> None:
    """Whatever this session still holds. What it wrote is kept as a patch."""
    number = _held(entries)
    if number is None:
        return
    try:
        answer = release(session.root, number, session.name)
    except GpudebugError as e:
        session.say(f"hypothesis {number} could not be released, its claim expires by itself: {e.message}")
        return
    session.note(released=number, kept=answer.kept)
    session.say(answer.why)


def _account(session: Session, loaded: Loaded, before: State, *, finished: bool) -> Did:
    """Write down what the session did; whether that was something."""
    verdict, nothing = had(loaded.setup, loaded.history.records), session.name in loaded.campaign.nothing
    after = state(loaded.entries.document)
    last = session.record.get("last", 0)
    session.note(
        tested=verdict.get("hypothesis") if verdict else None,
        verdict=verdict.get("status") if verdict else None,
        late=verdict == {},
        why=verdict.get("why") if verdict else None,
        proposed=[number for number, _, _ in after if number > last],
        nothing=nothing,
        end=now(),
    )
    if verdict or nothing:
        return Did.SOMETHING
    if not finished:
        return Did.FAILED
    return Did.SOMETHING if after != before else Did.NOTHING


def finished(ended: launcher.AgentEnded) -> bool:
    return ended.outcome is Outcome.COMPLETED


def abandon(session: Session, *, stop: bool) -> None:
    """A session that a kill or Ctrl-C cut off: end its agent, give back what it held, close its record.

    Its run in the background is waited for, or ended too with `stop`.
    """
    left = launcher.end_agent(str(session.folder.path))
    if stop:
        found = underway(session.load().setup.workspace)
        if found is not None and found.session == session.name:
            detached.stop(session.root)
    leaked = session.record.get("leaked", 0) + len(left)
    session.note(outcome=session.record.get("outcome", str(Outcome.INTERRUPTED)), leaked=leaked)
    settle(session, state(session.load().entries.document), finished=False)
