"""What a cause's fix can bring at most."""

from __future__ import annotations

from dataclasses import dataclass

MOST = 0.95
"""Beyond it a ratio says nothing: no step is without work."""


@dataclass(frozen=True)
class Ceiling:
    """Points of utilisation, utilisation after it (percent), throughput as a ratio and in steps a second."""

    pp: float | None = None
    util: float | None = None
    ratio: float | None = None
    steps_per_s: float | None = None


def ceiling(exposed: float | None, util: float | None, rate: float | None, *, shows: bool) -> Ceiling:
    """Without a share `exposed` of the time the same work takes 1 - `exposed` of it: utilisation becomes
    G / (1 - c), throughput 1 / (1 - c) of what it was (knowledge of DS-Analyzer's kind, arXiv 2007.06775).

    `util` is percent, `rate` steps a second. `shows` says that utilisation can show the cause at all.
    """
    if exposed is None:
        return Ceiling()
    left = 1.0 - min(MOST, max(0.0, exposed))
    after = min(100.0, util / left) if shows and util is not None else None
    # Two roundings may make it less than it was.
    gained = max(0.0, after - util) if after is not None and util is not None else None
    return Ceiling(gained, after, 1.0 / left, rate / left if rate is not None else None)
