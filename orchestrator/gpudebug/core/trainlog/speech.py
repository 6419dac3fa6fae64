"""Lines that tell of speed in other words than steps: samples a second, the size of a step, a latency.

Only an even spread of them is kept here, with their times; what their figures mean is read from them later,
when the steady window is known. Lines of latencies are only recognised.
"""

from __future__ import annotations

import re

from gpudebug.core.trainlog.series import Thinned

Line = tuple[str, float | None]
"""A line's text and when it was there, in seconds since launch; None without times."""

LONGEST_LINE = 512
_TOPICS = {
    "samples": re.compile(rb"(?:sample|image|img|example|sequence|seq)s?[ _]?(?:/|per)[ _]?s", re.I),
    "batch": re.compile(rb"batch[ _-]?size", re.I),
    "environments": re.compile(rb"number of environments", re.I),
    "tokens": re.compile(rb"tokens (?:per|/) ?(?:iter|step|update|global)", re.I),
    "latency": re.compile(
        rb"latenc|infer|forward|respon|predict|(?:time|duration)[ _-]+per[ _-]"
        rb"|^\W*(?:loop|request|frame|image|video) ?#?0",
        re.I,
    ),
}


def topics(skeleton: bytes) -> tuple[str, ...]:
    """Return what lines of this skeleton speak of: samples, batch, environments, tokens, latency."""
    return tuple(name for name, pattern in _TOPICS.items() if pattern.search(skeleton))


class Speech:
    """The lines kept, by topic."""

    def __init__(self) -> None:
        self._lines: dict[str, Thinned[Line]] = {}

    def keep(self, about: tuple[str, ...], text: bytes, time: float | None) -> None:
        line = text[:LONGEST_LINE].decode("ascii")
        for topic in about:
            if topic == "latency":
                continue  # `LatencyReader` keeps the values themselves.
            self._lines.setdefault(topic, Thinned()).add((line, time))

    def items(self) -> dict[str, tuple[Line, ...]]:
        return {topic: lines.items() for topic, lines in self._lines.items()}
