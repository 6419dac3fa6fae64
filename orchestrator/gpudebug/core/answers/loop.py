"""What `loop` answers."""

from __future__ import annotations

from dataclasses import dataclass

from gpudebug.core.answers.answer import Answer
from gpudebug.core.answers.status import HypothesisRow


@dataclass(frozen=True, kw_only=True)
class LoopSession:
    """An agent's session: what it was asked (`action`), how it ended, and what came of it.

    `exit_status` is null if a `signal` ended it; these and `outcome` are null if its end was not seen.
    `proposed` are numbers of hypotheses; `kept` is the change that was begun and given back. `hypothesis` is
    the one that was tested, else the one that was asked for.
    """

    session: str
    exit_status: int | None
    signal: int | None
    outcome: str | None
    duration_s: float | None
    action: str
    proposed: tuple[int, ...] | None
    verdict: str | None
    why: str | None
    kept: str | None
    hypothesis: int | None
    transcript: str


@dataclass(frozen=True, kw_only=True)
class LoopAnswer(Answer):
    """`hypotheses` are those of `status`, all of them.

    `ending` is `failures`, `idle`, `settings changed` or `error` if the loop gave up, else the word for how
    the campaign or a budget ended. `accepted` are numbers in the order of their acceptance,
    `checkout_changed` paths that changed meanwhile, not by gpudebug.
    """

    action: str = "stop"
    ending: str
    why: str
    campaign: str
    sessions: tuple[LoopSession, ...]
    hypotheses: tuple[HypothesisRow, ...]
    accepted: tuple[int, ...]
    checkout_changed: tuple[str, ...]
    next_command: str
    files: tuple[str, ...]
