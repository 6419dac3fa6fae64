"""What follows from a line's skeleton, worked out once for all lines that share it."""

from __future__ import annotations

import re
from typing import NamedTuple

from gpudebug.core.lazy import regex
from gpudebug.core.trainlog.failure import ALERT, USAGE
from gpudebug.core.trainlog.occasions import may_turn, mentions_state, occasion
from gpudebug.core.trainlog.origin import may_quote
from gpudebug.core.trainlog.quantities import QuantityLine, read_quantities
from gpudebug.core.trainlog.sections import announced
from gpudebug.core.trainlog.shape import Shape, read_shape

MAX_HELD = 16384
"""Fields of all kept shapes together."""
LONGEST_KEPT = 1024

_TOPICS = {
    "samples": regex(rb"(?:sample|image|img|example|sequence|seq)s?[ _]?(?:/|per)[ _]?s", re.I),
    "batch": regex(rb"batch[ _-]?size", re.I),
    "environments": regex(rb"number of environments", re.I),
    "tokens": regex(rb"tokens (?:per|/) ?(?:iter|step|update|global)", re.I),
    "latency": regex(
        rb"latenc|infer|forward|respon|predict|(?:time|duration)[ _-]+per[ _-]"
        rb"|^\W*(?:loop|request|frame|image|video) ?#?0",
        re.I,
    ),
}


class LearnedLine(NamedTuple):
    """What lines of a skeleton have in common.

    `alert`: it may tell of a failure; `about`: the topics of its speech; `work`: its quantities of work;
    `occasion`, `section`: what it tells of, what it announces; `state`: it may say that a run goes on, or
    that a cache was found; `turn`: it may turn to another objective; `usage`: it is a parser's, whose options
    are no readings; `speaks`: any of these but alert and work, so that it is more than readings.
    """

    shape: Shape | None
    alert: bool
    about: tuple[str, ...]
    work: QuantityLine | None
    occasion: str
    section: str
    state: bool
    turn: bool
    usage: bool
    speaks: bool


def topics(skeleton: bytes) -> tuple[str, ...]:
    """Return what lines of this skeleton speak of: samples, batch, environments, tokens, latency."""
    return tuple(name for name, pattern in _TOPICS.items() if pattern.search(skeleton))


class LearnedLines(dict[bytes, LearnedLine]):
    """Lines by skeleton, in bounded memory; copies of a state share them."""

    held = 0

    def learn(self, key: bytes) -> LearnedLine:
        """Work out what follows from a skeleton, and keep it unless it is long."""
        text = key.decode("ascii")
        about, tells, section = topics(key), occasion(text), announced(text)
        state, turn, usage = mentions_state(key), may_turn(key), USAGE.match(key) is not None
        speaks = bool(about or tells or section) or state or turn or usage or may_quote(key)
        shape, work, alert = read_shape(text), read_quantities(text), ALERT.search(key) is not None
        line = LearnedLine(shape, alert, about, work, tells, section, state, turn, usage, speaks)
        if len(key) <= LONGEST_KEPT:
            self._keep(key, line)
        return line

    def _keep(self, key: bytes, line: LearnedLine) -> None:
        if self.held > MAX_HELD:
            self.clear()
            self.held = 0
        size = (line.shape.size if line.shape else 0) + (len(line.work.found) if line.work else 0)
        self.held += 1 + len(key) // 64 + size
        self[key] = line

    def __deepcopy__(self, memo: object) -> LearnedLines:
        return self
