"""Ranks as evidence.json keeps them: hundreds of ranks, and of each what the policy and the views read."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from gpudebug.core.inside.stacks.shares import LONGEST_SOURCE
from gpudebug.core.records import RankEvidence, RankLine

MOST_LINED = 8
"""Ranks whose lines are kept: who is named is one of those that wait least, or none is."""
_DIGITS = 5
"""Significant digits of a figure: looks at a thread, of which shares are, are some hundreds."""


def compact(ranks: Sequence[RankEvidence]) -> tuple[RankEvidence, ...]:
    """The same ranks with short figures, and lines of the `MOST_LINED` that wait least for others alone.

    What the others spend in a line that is kept stands in it, since theirs may not be kept.
    """
    watched = [one for one in ranks if one.wait_share is not None and one.samples]
    lined = sorted(watched, key=lambda one: one.wait_share or 0.0)[:MOST_LINED]
    return tuple(_short(one, _beside(one, watched) if one in lined else ()) for one in ranks)


def _beside(one: RankEvidence, watched: Sequence[RankEvidence]) -> tuple[RankLine, ...]:
    others = [other for other in watched if other is not one]
    return tuple(line.model_copy(update=_of_line(line, others)) for line in one.lines)


def _of_line(line: RankLine, others: Sequence[RankEvidence]) -> dict[str, object]:
    known = [others_share(line, other) for other in others]
    return {
        "share": _rounded(line.share),
        "others": _rounded(median(known)) if known else None,
        # One more than is shown: that it goes on is shown, too.
        "code": None if line.code is None else line.code[: LONGEST_SOURCE + 1],
    }


def others_share(line: RankLine, other: RankEvidence) -> float:
    """Return the share of its time (0 to 1) that another rank spends in a line."""
    return sum(one.share for one in other.lines if (one.frame, one.line) == (line.frame, line.line))


def _short(one: RankEvidence, lines: tuple[RankLine, ...]) -> RankEvidence:
    figures = {name: _rounded(value) for name, value in one if isinstance(value, float)}
    return one.model_copy(update={**figures, "lines": lines})


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
