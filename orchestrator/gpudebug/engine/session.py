"""Whose call this is: the session of an agent, or none for a person."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from gpudebug.core.digests import short_digest
from gpudebug.core.errors import UsageError

VARIABLE = "GPUDEBUG_SESSION"

# Set by the agents themselves in the commands that they run, each to a name of the session:
# Claude Code 2.1.132, Codex, Amp, opencode.
AGENT_VARIABLES = (
    "CLAUDE_CODE_SESSION_ID",
    "CODEX_THREAD_ID",
    "AMP_CURRENT_THREAD_ID",
    "OPENCODE_SESSION_ID",
)
LONGEST = 64
_NAME = re.compile(r"[A-Za-z0-9._:@-]{1,64}")


def session_of(env: Mapping[str, str] | None = None) -> str | None:
    """The session of an environment, by default this process's; None for a person.

    An empty GPUDEBUG_SESSION says that a person calls, whatever an agent has set. UsageError where it is no
    name: at most 64 letters, digits and `._:@-`, and no secret.
    """
    env = os.environ if env is None else env
    named = env.get(VARIABLE)
    if named is not None:
        return checked(named, env) if named else None
    found = next((v for name in AGENT_VARIABLES if (v := env.get(name))), None)
    if found is None:
        return None
    fits = _NAME.fullmatch(found) and not _secret(found, env)
    return found if fits else f"agent-{short_digest(found.encode('utf-8', 'replace'))[:16]}"


def checked(name: str, env: Mapping[str, str]) -> str:
    """A name of a session as it is; UsageError where it is none, or a secret: the progress file shows it."""
    if _secret(name, env):
        raise UsageError(
            f"{VARIABLE} is a secret, or looks like one, and a session's name is for everyone to read",
            next="give the session a plain name",
        )
    if _NAME.fullmatch(name):
        return name
    raise UsageError(
        f"{VARIABLE} is no name of a session: {name[:40]!r}",
        next=f"at most {LONGEST} letters, digits and any of . _ : @ -",
    )


def _secret(name: str, env: Mapping[str, str]) -> bool:
    from gpudebug.core.redact import Redactor

    return Redactor(env).redact(name) != name
