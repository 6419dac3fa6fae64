"""What a change of a setting means, and which of two values is weaker.

`ordered`: a value is weaker or stricter than the pinned one. `different`: another value measures something
else, and asks for a new baseline. `free`: no run and no verdict depends on it; it is not pinned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from gpudebug.core.words import Word


class Class(Word):
    """What a change of a setting means."""

    ORDERED = "ordered"
    DIFFERENT = "different"
    FREE = "free"


Weaker = Callable[[Any, Any], bool | None]
"""Whether the first value is weaker than the second; None if they cannot be compared."""


class Rule(NamedTuple):
    """The class of one setting, in words and, if it is ordered, as a comparison."""

    kind: Class
    text: str
    weaker: Weaker | None = None


def ordered(text: str, weaker: Weaker) -> Rule:
    return Rule(Class.ORDERED, text, weaker)


def different(text: str) -> Rule:
    return Rule(Class.DIFFERENT, text)


def free(text: str) -> Rule:
    return Rule(Class.FREE, text)


def lower(value: Any, pinned: Any) -> bool | None:
    return None if None in (value, pinned) else value < pinned


def higher(value: Any, pinned: Any) -> bool | None:
    return None if None in (value, pinned) else value > pinned


def fewer(value: Any, pinned: Any) -> bool | None:
    return more(pinned, value)


def more(value: Any, pinned: Any) -> bool | None:
    return bool(set(value or ()) - set(pinned or ()))


def more_of_each(value: Any, pinned: Any) -> bool | None:
    value, pinned = value or {}, pinned or {}
    return any(more(words, pinned.get(name)) for name, words in value.items())


def fewer_figures(value: Any, pinned: Any) -> bool | None:
    value, pinned = value or {}, pinned or {}
    return any(
        name not in value
        or value[name]["direction"] != term["direction"]
        or value[name]["not_worse"] > term["not_worse"]
        for name, term in pinned.items()
    )


def any_other(_value: Any, _pinned: Any) -> bool | None:
    return True


def later_in(*words: Any) -> Weaker:
    def compare(value: Any, pinned: Any) -> bool | None:
        if value not in words or pinned not in words:
            return None
        return words.index(value) > words.index(pinned)

    return compare


OTHER_BASELINE = different("another value asks for a new baseline")
OTHER_FIGURE = different("another figure: a verdict on one does not hold for the other")
ELSEWHERE = different("runs on other nodes, or after other commands")
LONGER = ordered("longer is weaker: a slower run still counts", higher)
MORE = ordered("more is weaker", higher)
MORE_OF_THE_CLUSTER = ordered("more is weaker: it holds more of the cluster", higher)
READ = free("read by people and agents only")
