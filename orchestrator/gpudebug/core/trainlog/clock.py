"""Time stamps that a program prints at the head of its lines."""

from __future__ import annotations

import re

_TIME = re.compile(r"(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?")
_FULL = re.compile(r"(\d{4})[-/.](\d\d)[-/.](\d\d)|(\d\d)/(\d\d)/(\d{4})|(\d\d)[-/](\d\d)")
DAY = 86400.0


def stamp_seconds(text: str) -> float | None:
    """Seconds of a stamp on a scale of its own: only differences between stamps of one log mean anything.

    Months count 31 days, so a run across a month's end shows a gap of up to three days there.
    """
    clock = _TIME.search(text)
    if clock is None:
        return None
    seconds = int(clock[1]) * 3600 + int(clock[2]) * 60 + int(clock[3]) + float(f"0.{clock[4] or 0}")
    date = _FULL.search(text)
    if date is None:
        return seconds
    year, month, day = (
        (date[1], date[2], date[3])
        if date[1]
        else (date[6], date[4], date[5])
        if date[6]
        else ("0", date[7], date[8])
    )
    return ((int(year) * 12 + int(month)) * 31 + int(day)) * DAY + seconds
