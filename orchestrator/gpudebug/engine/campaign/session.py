"""Whose call this is: the session of an agent, or none for a person.

Any process can set its variables again; what the processes above were started with, and what they are,
cannot be changed from below. The outermost that names a session counts, so a session that takes another name
stays what it was started as.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from gpudebug.core.agents import setups
from gpudebug.core.agents.setups import OF_AGENT
from gpudebug.core.errors import GpudebugError, UsageError
from gpudebug.core.text.values import short_digest
from gpudebug.edges import ancestry
from gpudebug.edges.ancestry import AncestorProcess

VARIABLE, RUN, NAMES = setups.VARIABLE, setups.RUN, setups.NAMES
AGENT_VARIABLES = tuple(OF_AGENT.values())
LONGEST = 64
_NAME = re.compile(r"[A-Za-z0-9._:@-]{1,64}")


class Caller(NamedTuple):
    """Who calls: `session` is None for a person; `why` says what made it one of an agent."""

    session: str | None
    why: str = ""


Chain = Callable[[], Sequence[AncestorProcess]]
"""This process and those above it, the nearest first."""


def session_of(env: Mapping[str, str] | None = None, chain: Chain | None = None) -> str | None:
    """Return the session that calls, None for a person; as `caller_of`."""
    return caller_of(env, chain).session


def caller_of(env: Mapping[str, str] | None = None, chain: Chain | None = None) -> Caller:
    """Who calls, by the variables of this process (by default os.environ), and by the processes above it.

    The outermost process that names a session counts, that is a client of `gpudebug mcp` (then it is the
    session of that server: what an agent runs in a shell beside it is the same agent's), or that is a coding
    agent: then the session that this agent itself names in what it starts, else that process. Where the way
    up cannot be seen to its end, the caller is a session too.

    UsageError if this process's GPUDEBUG_SESSION decides and is not a name: at most 64 letters, digits and
    `._:@-`, and no secret.
    """
    mine = os.environ if env is None else env
    own, *above = (chain or _chain)()
    own = own._replace(env={name: mine[name] for name in NAMES if name in mine})
    outermost_first = [*reversed(above), own]
    return _caller(outermost_first, mine) or _unseen(outermost_first) or Caller(None)


def served_session(env: Mapping[str, str], chain: Chain | None = None) -> str:
    """Return the session of the client of this process, which is `gpudebug mcp`; errors as of `caller_of`."""
    return session_of(env, chain) or _name_of_server((chain or _chain)()[0])


def _caller(outermost_first: Sequence[AncestorProcess], mine: Mapping[str, str] | None) -> Caller | None:
    """Who calls; `mine` are all variables of the last process, if it is this one."""
    own = outermost_first[-1]
    for place, process in enumerate(outermost_first):
        named = _named(process, mine if process is own else None)
        if named is not None:
            return named
        if process.server and process.server[0].pid != own.pid:
            return _of_server(process.pid, process.server)
        if process.agent not in (None, ancestry.UNSEEN):
            return _of_agent(process, process.agent, outermost_first[place + 1 :])
    return None


def _unseen(outermost_first: Sequence[AncestorProcess]) -> Caller | None:
    """Return a session for a caller whose way up cannot be seen to its end: an agent may be above that."""
    if outermost_first[0].agent != ancestry.UNSEEN:
        return None
    names = [f"{process.pid}-{process.started}" for process in outermost_first[1:2]]
    why = f"process {outermost_first[0].pid}, and what is above it, cannot be seen"
    return Caller("-".join([ancestry.UNSEEN, *names]), why)


def _of_server(client: int, server: Sequence[AncestorProcess]) -> Caller:
    """Return the session of a `gpudebug mcp`, for what its client runs beside it."""
    found = _caller([*reversed(server)], None)
    return Caller(
        (found and found.session) or _name_of_server(server[0]),
        f"process {client} is the client of `gpudebug mcp`, process {server[0].pid}",
    )


def _name_of_server(server: AncestorProcess) -> str:
    return f"mcp-{server.pid}-{server.started}"


class NotAPerson(GpudebugError):
    """A session asks for what a person decides: a command that is new, or what a campaign is judged by."""

    code = "session"


def persons_only(what: str, next: str, caller: Caller | None = None) -> None:
    """NotAPerson, naming what made the caller a session, unless a person calls."""
    caller = caller or caller_of()
    if caller.session is not None:
        raise NotAPerson(
            f"{what} is for a person, and this is session {caller.session} ({caller.why})",
            next=f"{next}; a person runs it in a terminal that no agent started",
        )


def _chain() -> Sequence[AncestorProcess]:
    return _chain_of(os.getpid())


@lru_cache(maxsize=1)
def _chain_of(_pid: int) -> Sequence[AncestorProcess]:
    """Asked once a process: who started it, and for whom, does not change while it lives."""
    return ancestry.chain(NAMES)


def _named(process: AncestorProcess, mine: Mapping[str, str] | None) -> Caller | None:
    """Return the session that a process's variables name; an empty name is none.

    `mine` are all variables of this process: its own name is refused if it is none; one above is passed over.
    """
    where = f"of process {process.pid}" if mine is None else "of this process"
    name = process.env.get(VARIABLE)
    if name and mine is not None:
        return Caller(checked(name, mine), f"{VARIABLE} {where}")
    if name and _NAME.fullmatch(name) and not _secret(name, process.env):
        return Caller(name, f"{VARIABLE} {where}")
    variable = next((v for v in AGENT_VARIABLES if process.env.get(v)), None)
    if variable is not None:
        return Caller(_plain(process.env[variable], mine or process.env), f"{variable} {where}")
    if process.env.get(RUN):
        return Caller(f"run-{short_digest(os.fsencode(process.env[RUN]))[:16]}", f"{RUN} {where}")
    return None


def _of_agent(process: AncestorProcess, agent: str, below: Sequence[AncestorProcess]) -> Caller:
    """Return the session that an agent names by its own variable in what it starts, else its process."""
    variable = OF_AGENT.get(agent)
    found = next((p.env[variable] for p in below if p.env.get(variable)), None) if variable else None
    name = _plain(found, {}) if found else f"{agent}-{process.pid}-{process.started}"
    what = "a child of gpudebug loop" if agent == ancestry.LOOP else agent
    return Caller(name, f"process {process.pid} is {what}")


def _plain(name: str, env: Mapping[str, str]) -> str:
    """Return an agent's own name of its session; a digest of one that is odd, or a secret."""
    if _NAME.fullmatch(name) and not _secret(name, env):
        return name
    return f"agent-{short_digest(name.encode('utf-8', 'replace'))[:16]}"


def checked(name: str, env: Mapping[str, str]) -> str:
    """A name of a session as it is; UsageError if it is none, or a secret: the progress file shows it."""
    if _secret(name, env):
        raise UsageError(
            f"{VARIABLE} is a secret, or looks like one, and a session's name is for everyone to read",
            next="give the session a plain name",
        )
    if _NAME.fullmatch(name):
        return name
    raise UsageError(
        f"{VARIABLE} is not a session name: {name[:40]!r}",
        next=f"at most {LONGEST} letters, digits and any of . _ : @ -",
    )


def _secret(name: str, env: Mapping[str, str]) -> bool:
    from gpudebug.core.redaction.redact import Redactor

    return Redactor(env).redact(name) != name
