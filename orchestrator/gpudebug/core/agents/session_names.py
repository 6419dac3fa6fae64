"""The variables that name a session: gpudebug's own, and those that agents set in what they run."""

from __future__ import annotations

from collections.abc import Mapping

VARIABLE = "GPUDEBUG_SESSION"
RUN = "GPUDEBUG_RUN"

# Claude Code 2.1.132, Codex, Amp, opencode.
OF_AGENT = {
    "claude": "CLAUDE_CODE_SESSION_ID",
    "codex": "CODEX_THREAD_ID",
    "amp": "AMP_CURRENT_THREAD_ID",
    "opencode": "OPENCODE_SESSION_ID",
}
NAMES = frozenset({VARIABLE, RUN, *OF_AGENT.values()})


def named(env: Mapping[str, str]) -> bool:
    """Tell whether these variables name a session, so that an agent reads what is printed."""
    return any(env.get(name) for name in NAMES)
