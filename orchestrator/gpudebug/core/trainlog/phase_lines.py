"""Lines by which a program says which phase it is in: by expressions of the user's, else by words for it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from gpudebug.core.lazy import regex
from gpudebug.core.trainlog.names import phase_of, words
from gpudebug.core.words import PHASE

MOST_STRETCHES = 512
"""Of more, a program changes within its steps: what came last then goes on to the end."""
_WHAT = rb"(?:phase|stage)"
_NAME = rb"(?P<name>[A-Za-z](?:[\w-]{0,38}\w)?)"
# `phase=ppo`, `"stage": "ppo"`, `| phase | ppo |`, `=== Phase: PPO ===`
_GIVEN = regex(
    rb"(?<![a-z])"
    + _WHAT
    + rb"['\"]?\s*[:=|]\s*['\"]?"
    + _NAME
    # No prose behind it, and no assignment.
    + rb"\b(?![:(/.]|\s*=\s*['\"\w]|\s+[a-z]\D*$)",
    re.I,
)
# `Starting the PPO phase`, `switching to ppo stage`
_BEGINS = regex(
    rb"\b(?:start|begin|enter|switch|mov)\w*\s+(?:(?:in)?to\s+)?(?:the\s+)?"
    + _NAME
    + rb"\s+"
    + _WHAT
    + rb"\b(?!\s*[=:(/.\d])",
    re.I,
)
# A line of its own: `--- PPO phase ---`
_TITLE = regex(rb"^\W*" + _NAME + rb"\s+" + _WHAT + rb"\W*$", re.I)
_NUMBERED = regex(
    rb"(?<![a-z])(?P<what>stage|phase|curriculum(?:[ _](?:level|step|stage))?)['\"]?[ _]?[:=#|]?[ _]?"
    rb"(?P<at>\d{1,2})\b(?!\.\d|%|\s*(?:[mu]?s|min|sec\w*)\b)",
    re.I,
)
# What is said of any phase, and values that say that there is none.
_NO_NAMES = frozenset(
    word
    for words_of in (
        "next new first second third last final previous current this that each every another any same one",
        "main an the of in none null nan true false unknown off on done finished complete completed",
    )
    for word in words_of.split()
)


@dataclass(frozen=True, slots=True)
class LoggedPhase:
    """A stretch of the log in which it names one phase: the first and the last time that a line does, in
    seconds since launch (None without them), and how many lines do."""

    name: str
    start_s: float | None
    last_s: float | None
    lines: int = 1


def phase_in(text: bytes) -> str | None:
    """Return the phase that a line names, in its own word; None if it names none.

    `phase=val` may stand below what it is of, so that only a line that begins an evaluation names one.
    """
    for expression in (_BEGINS, _GIVEN, _TITLE):
        match = expression.search(text)
        if match is not None:
            name = match["name"].decode("ascii")
            known = words(name)
            if _NO_NAMES.isdisjoint(known) and (expression is _BEGINS or not phase_of(known)):
                return name
    match = _NUMBERED.search(text)
    return f"{match['what'].decode('ascii').lower()} {int(match['at'])}" if match is not None else None


def declared_in(matching: Sequence[str], current: str | None, order: Sequence[str]) -> str | None:
    """Return which of the declared phases that match a line begins there: `from supervised to ppo` matches
    both, and the one that comes after the `current` one is meant."""
    at = order.index(current) + 1 if current in order else 0
    return next((name for name in (*order[at:], *order[:at]) if name in matching), None)


class PhaseLines:
    """Follows the phases of a log."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        self.order = tuple(names)
        self.stretches: list[LoggedPhase] = []
        self._spelt: dict[str, str] = {}

    @property
    def current(self) -> str | None:
        return self.stretches[-1].name if self.stretches else None

    def take(self, name: str, time: float | None) -> bool:
        """Take in that a line names this phase; whether no line did before."""
        new = name.casefold() not in self._spelt
        name = self._spelt.setdefault(name.casefold(), name)
        if name == self.current:
            last = self.stretches[-1]
            self.stretches[-1] = replace(last, last_s=time, lines=last.lines + 1)
        elif len(self.stretches) < MOST_STRETCHES:
            self.stretches.append(LoggedPhase(name, time, time))
        return new


def separated(patterns: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the patterns of figures, and those of phases by the phase's name."""
    phases = {name.removeprefix(PHASE): text for name, text in patterns.items() if name.startswith(PHASE)}
    return {name: text for name, text in patterns.items() if not name.startswith(PHASE)}, phases
