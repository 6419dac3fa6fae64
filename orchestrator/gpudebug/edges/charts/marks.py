"""The colours and shapes of a status, a gate's result, and the two sides of a trial."""

from __future__ import annotations

from typing import NamedTuple


class PlotMark(NamedTuple):
    """A colour and matplotlib's letter of a shape: what is seen without colour, too."""

    colour: str
    shape: str


BEFORE, AFTER = "#c8701e", "#1f6fb4"
INK, PALE = "#222222", "#d9d9d9"

_STATUS = {
    "VALIDATED": PlotMark("#1a7f4b", "o"),
    "REJECTED": PlotMark("#c0392b", "X"),
    "INCONCLUSIVE": PlotMark("#b7860b", "D"),
    "INVALID": PlotMark("#7d4f9e", "v"),
}
_RESULT = {"pass": "#1a7f4b", "fail": "#c0392b", "unknown": "#b7860b"}


def of_status(status: str) -> PlotMark:
    """Of a verdict; grey for what has none."""
    return _STATUS.get(status, PlotMark("#6b6b6b", "s"))


def of_result(result: str) -> str:
    """The colour of a gate's result."""
    return _RESULT.get(result, "#6b6b6b")


def statuses() -> list[str]:
    """The verdicts, in the order in which a legend names them."""
    return list(_STATUS)
