"""When an unattended loop ends by itself: its limits beside what its sessions did so far."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from gpudebug.core.campaign.decide import Ending
from gpudebug.core.words import Word, counted

SESSION = "loop-"
# A longer number is no session's of ours, whoever made it up.
_DIGITS = 6


class Stuck(Word):
    """Why a loop ends though its campaign has not."""

    FAILURES = "failures"
    IDLE = "idle"
    SETTINGS = "settings changed"
    ERROR = "error"


class Did(Word):
    """What came of one agent's session: something for the campaign, nothing, or the agent failed."""

    SOMETHING = "something"
    NOTHING = "nothing"
    FAILED = "failed"


@dataclass(frozen=True)
class Limits:
    """The limits of one invocation; None for no limit. Device time in seconds."""

    hypotheses: int | None = None
    device_time: float | None = None
    failures: int = 3
    idle: int = 3


@dataclass(frozen=True)
class Spent:
    """What this invocation used: trials, device time in seconds, and sessions in a row without a gain.

    A failed session does not end a row of idle ones, so that the two in turn end the loop as well.
    """

    hypotheses: int = 0
    device_time: float = 0.0
    failures: int = 0
    idle: int = 0

    def after(self, did: Did) -> Spent:
        """With one more session."""
        if did is Did.FAILED:
            return replace(self, failures=self.failures + 1)
        return replace(self, failures=0, idle=0 if did is Did.SOMETHING else self.idle + 1)


class End(NamedTuple):
    """Why the loop ends: the word for it, and a sentence."""

    ending: Word
    why: str


def end_of(limits: Limits, spent: Spent) -> End | None:
    """Return the limit that is reached, the agent's failures first; None while there is none."""
    if spent.failures >= limits.failures:
        return End(Stuck.FAILURES, f"{_sessions(spent.failures)} in a row failed")
    if spent.idle >= limits.idle:
        return End(Stuck.IDLE, f"{_sessions(spent.idle)} in a row did nothing for the campaign")
    if limits.hypotheses is not None and spent.hypotheses >= limits.hypotheses:
        text = f"{counted(spent.hypotheses, 'hypothesis', 'hypotheses')} tested"
        return End(Ending.OUT_OF_BUDGET, f"out of budget: {text}, --hypotheses is {limits.hypotheses}")
    if limits.device_time is not None and spent.device_time >= limits.device_time:
        text = f"{spent.device_time:.0f} s of device time used, --device-time is {limits.device_time:.0f} s"
        return End(Ending.OUT_OF_BUDGET, f"out of budget: {text}")
    return None


def _sessions(count: int) -> str:
    return counted(count, "session")


def next_name(date: str, used: Iterable[str | None]) -> str:
    """A name for the next session: `loop-DATE-N`, N above that of every name that was used on that date."""
    prefix = f"{SESSION}{date}-"
    tails = (name.removeprefix(prefix) for name in used if name and name.startswith(prefix))
    numbers = [int(t) for t in tails if t.isascii() and t.isdecimal() and len(t) <= _DIGITS]
    return f"{prefix}{max(numbers, default=0) + 1}"
