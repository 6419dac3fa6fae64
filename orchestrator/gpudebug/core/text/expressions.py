"""Regular expressions that a user or an agent wrote: taken only if the time of a match is bounded.

`re` tries one way after another. An expression of whose choices each is decided by the next character, inside
whatever repeats, takes no longer than the square of the text; every open choice outside multiplies that. The
bound follows from the expression alone, and so does the length of text that it is matched on.
"""

from __future__ import annotations

import importlib
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import factorial
from typing import Any

from gpudebug.core.lazy import regex

LONGEST = 4096
"""Characters of a text that any expression is matched on at most."""

LEAST = 200
"""An expression that cannot be matched on so many characters in time is refused."""

LONGEST_PATTERN = 1000
_MOST_WORK = 2e8
# Repeats up to this count are so many copies; more of them are a loop.
_COPIES = 4
_MOST_STEPS = 5000

# Sets of characters are bits: one for each of ASCII, and for the others one of each class.
_DIGIT, _SPACE, _WORD, _REST = (1 << bit for bit in range(128, 132))
_BEYOND = _DIGIT | _SPACE | _WORD | _REST
_ANY = (1 << 132) - 1
_UPPER = sum(1 << c for c in range(65, 91))
_LOWER = _UPPER << 32
# These letters have another case beyond ASCII.
_ABROAD = sum(1 << ord(c) for c in "iksIKS")
_CLASSES = {
    "DIGIT": sum(1 << c for c in range(48, 58)) | _DIGIT,
    "SPACE": sum(1 << ord(c) for c in " \t\n\r\f\v\x1c\x1d\x1e\x1f") | _SPACE,
    "WORD": sum(1 << c for c in range(48, 58)) | _UPPER | _LOWER | 1 << ord("_") | _WORD | _DIGIT,
}


_DOTALL = regex(r"\(\?[a-z]*s[a-z]*[-:)]")
_ASCII = regex(r"\(\?[a-z]*a[a-z]*[-:)]")


class Unbounded(ValueError):
    """The expression may take for ever on some text; the message says which part."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression and the characters of a text that it is matched on."""

    pattern: re.Pattern[str]
    longest: int

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        return self.pattern.finditer(text[: self.longest])


@lru_cache(maxsize=1024)
def bounded(pattern: str, *, least: int = LEAST) -> Expression:
    """Return the expression, if matching it on `least` characters is quick whatever they are.

    Raises Unbounded if it is not, and what `re.compile` raises.
    """
    compiled = re.compile(pattern)
    if len(pattern) > LONGEST_PATTERN:
        raise Unbounded(f"is longer than {LONGEST_PATTERN} characters")
    if _ASCII.search(pattern):
        raise Unbounded("has the flag (?a), by which sets end at ASCII")
    work = _Work(_tree(pattern), bool(compiled.flags & re.DOTALL or _DOTALL.search(pattern)))
    longest = work.longest()
    if longest < least:
        raise Unbounded(f"may end its repeats in too many ways for a line of {least} characters")
    return Expression(compiled, longest)


def _tree(pattern: str) -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            parser = importlib.import_module("re._parser")
        except ImportError:  # Python 3.10
            parser = importlib.import_module("sre_parse")
        return list(parser.parse(pattern))


class _Work:
    """Walks an expression from its end to its beginning, with the characters that may come next."""

    def __init__(self, tree: list[Any], dotall: bool) -> None:
        self._dotall = dotall
        self._loops = 0
        self._ways = 1.0
        self._steps = 0
        self._sequence(tree, 0, looped=False)
        self._prefix = _period(_literals(tree))

    def longest(self) -> int:
        """Characters on which the work stays bounded: starts, times ways through them, times their length."""
        power = self._loops + 2
        room = _MOST_WORK * factorial(power) * self._prefix / self._ways
        return min(LONGEST, int(room ** (1 / power)))

    def _sequence(self, items: list[Any], after: int, *, looped: bool) -> int:
        """Return what a sequence may begin with, if `after` may follow it."""
        for index in range(len(items) - 1, -1, -1):
            after = self._item(items[index], after, items[index + 1 :], looped=looped)
        return after

    def _item(self, item: Any, after: int, rest: list[Any], *, looped: bool) -> int:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise Unbounded("repeats too much within what it repeats")
        name, value = str(item[0]), item[1]
        if name in ("LITERAL", "NOT_LITERAL", "ANY", "IN"):
            return _characters(item, self._dotall)
        if name in ("AT", "FAILURE"):
            # What is asked of a place can fail there, whatever the next character is.
            return after if str(value) == "AT_BEGINNING" else _ANY
        if name in ("ASSERT", "ASSERT_NOT"):
            self._sequence(list(value[1]), _ANY, looped=looped)
            return _ANY
        if name == "BRANCH":
            return self._branch(value[1], after, looped=looped)
        if name.endswith("REPEAT"):
            return self._repeat(value, after, rest, looped=looped)
        if (inside := _inside(item)) is not None:
            return self._sequence(inside, after, looped=looped)
        raise Unbounded("refers back to what it matched before")

    def _branch(self, branches: Any, after: int, *, looped: bool) -> int:
        """One alternative is tried after the other: their ways add up."""
        firsts, alike = 0, 1
        before, most, ways = (self._loops, self._ways), self._loops, 0.0
        for number, branch in enumerate(branches):
            self._loops, self._ways = before
            first = self._sequence(list(branch), after, looped=looped)
            overlaps = bool(number and firsts & first)
            alike += overlaps
            firsts |= first
            if self._loops > most:
                most, ways = self._loops, 0.0
            if self._loops == most:
                ways = ways + self._ways if overlaps else max(ways, self._ways)
        self._loops, self._ways = most, ways
        if alike > 1 and looped and not _decided(branches):
            raise self._many("tries alternatives that begin alike")
        return firsts

    def _repeat(self, value: Any, after: int, rest: list[Any], *, looped: bool) -> int:
        least, most, body = int(value[0]), int(value[1]), list(value[2])
        if most <= _COPIES:
            behind = after
            for copy in range(most, 0, -1):
                first = self._sequence(body, after, looped=looped)
                if copy > least:
                    if first & behind:
                        if looped:
                            raise self._many("may leave out what the rest of it can match, too,")
                        self._ways *= 2
                    first |= behind
                after = first
            return after
        if _nullable(body):
            raise Unbounded("repeats what may be empty")
        within = self._first(body)
        first = self._sequence(body, within | after, looped=True)
        if least != most and within & after:
            if looped:
                raise self._many("repeats what the rest of it can match, too,")
            self._many_ends(most - least, rest)
        return first if least else first | after

    def _first(self, items: list[Any]) -> int:
        """Return what a sequence begins with, counted for nothing."""
        kept = self._loops, self._ways
        first = self._sequence(items, 0, looped=False)
        self._loops, self._ways = kept
        return first

    def _many_ends(self, span: int, rest: list[Any]) -> None:
        """A loop that may end at many places, or at so many as it is long."""
        apart = _period(_literals(rest))
        if span <= LEAST:
            self._ways *= max(2.0, (span + 1) / apart)
        else:
            self._loops += 1
            self._ways /= apart

    @staticmethod
    def _many(what: str) -> Unbounded:
        return Unbounded(f"{what} within a repeat: one text is matched in too many ways")


def _inside(item: Any) -> list[Any] | None:
    """Return what a group holds; None for what is no group."""
    name, value = str(item[0]), item[1]
    if name == "SUBPATTERN":
        return list(value[3])
    return list(value) if name == "ATOMIC_GROUP" else None


def _characters(item: Any, dotall: bool) -> int:
    """Return the set of a single character's item, letter case aside."""
    name, value = str(item[0]), item[1]
    if name == "ANY":
        return _ANY if dotall else _ANY & ~(1 << 10)
    if name == "LITERAL":
        return _folded(_bit(value))
    if name == "NOT_LITERAL":
        return _ANY & ~_bit(value) | _BEYOND
    found, negated = 0, False
    for kind, part in value:
        word = str(kind)
        if word == "NEGATE":
            negated = True
        elif word == "CATEGORY":
            found |= _category(str(part))
        else:
            some = _bit(part) if word == "LITERAL" else _range(*part)
            # Of a class beyond ASCII they leave the other characters out of nothing.
            found |= some & ~_BEYOND if negated else some
    return _folded(_ANY & ~found if negated else found)


def _category(name: str) -> int:
    found = _CLASSES[name.rpartition("_")[2]]
    return _ANY & ~found if "NOT" in name else found


def _bit(code: int) -> int:
    if code < 128:
        return 1 << code
    letter = chr(code)
    if letter.isspace():
        return _SPACE
    return _DIGIT if letter.isdecimal() else _WORD if letter.isalnum() else _REST


def _range(low: int, high: int) -> int:
    found = sum(1 << c for c in range(low, min(high, 127) + 1))
    return found | (_BEYOND if high > 127 else 0)


def _folded(found: int) -> int:
    """With the other letter case."""
    return found | (found & _UPPER) << 32 | (found & _LOWER) >> 32 | (_WORD if found & _ABROAD else 0)


def _nullable(items: list[Any]) -> bool:
    return all(_empty(item) for item in items)


def _empty(item: Any) -> bool:
    name, value = str(item[0]), item[1]
    if name in ("AT", "ASSERT", "ASSERT_NOT"):
        return True
    if name == "BRANCH":
        return any(_nullable(list(branch)) for branch in value[1])
    inside = _inside(item)
    if inside is not None:
        return _nullable(inside)
    return name.endswith("REPEAT") and (int(value[0]) == 0 or _nullable(list(value[2])))


def _decided(branches: Any) -> bool:
    """Whether each alternative is plain text, and none begins another: no text is matched by two of them."""
    if not all(str(item[0]) == "LITERAL" for branch in branches for item in branch):
        return False
    texts = sorted(tuple(_caseless(item[1]) for item in branch) for branch in branches)
    return not any(b[: len(a)] == a for a, b in pairwise(texts))


def _caseless(code: int) -> str:
    """Return the same for all that `re` takes for one another where letter case is ignored: `s` and `ſ`."""
    return chr(code).lower()[0].upper().casefold()


def _literals(items: list[Any]) -> tuple[str, ...]:
    """Return the plain text that a sequence begins with, letter case aside."""
    text: tuple[str, ...] = ()
    for item in items:
        if not text and (inside := _inside(item)):
            return _literals(inside)
        if str(item[0]) == "AT" and not text:
            continue
        if str(item[0]) != "LITERAL":
            break
        text += (_caseless(item[1]),)
    return text


def _period(text: tuple[str, ...]) -> int:
    """Return how far apart two places of `text` must be; 1 for none."""
    return next((p for p in range(1, len(text)) if text[: len(text) - p] == text[p:]), len(text)) or 1
