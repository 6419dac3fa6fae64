"""Statuses and results in their colours, on a terminal that has them."""

from __future__ import annotations

import os
import sys

_COLOURS = {
    "VALIDATED": "32",
    "REJECTED": "31",
    "INCONCLUSIVE": "33",
    "INVALID": "35",
    "TESTING": "36",
    "pass": "32",
    "fail": "31",
    "unknown": "33",
}


def coloured(word: str, width: int = 0) -> str:
    """Colour a status or gate result on a terminal; leave it plain in a pipe or under NO_COLOR."""
    text = word.ljust(width)
    code = _COLOURS.get(word)
    return text if code is None or not in_colour() else f"\033[{code}m{text}\033[0m"


def in_colour() -> bool:
    """Tell whether standard output is a terminal with colours, and NO_COLOR is not set."""
    return "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb" and sys.stdout.isatty()
