"""Whether a change reached the program, by what its command line and its own configuration show."""

from __future__ import annotations

from dataclasses import dataclass

from gpudebug.core.words import Result


@dataclass(frozen=True, slots=True)
class Effect:
    """What was found: `value` is what the program shows, None where it shows nothing; `note` says why."""

    result: Result
    value: str | None = None
    note: str | None = None
