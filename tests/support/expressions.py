"""Texts that a regular expression is found in, made from the expression itself."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from itertools import islice, product
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import sre_constants
    import sre_parse

_MOST = 400
_SAMPLES = {
    sre_constants.CATEGORY_WORD: "a",
    sre_constants.CATEGORY_DIGIT: "1",
    sre_constants.CATEGORY_SPACE: " ",
}
_ANY = "ab1_ .-=/("


def texts(expression: str) -> Iterator[str]:
    """Some that it may be found in; look-arounds are for the caller to check."""
    yield from islice(_of(list(sre_parse.parse(expression, re.IGNORECASE))), _MOST)


def found_in(expression: str, *, whole: bool = False) -> Iterator[str]:
    """Those that it is found in, without regard to case; with `whole` those that it is all of."""
    compiled = re.compile(expression, re.IGNORECASE)
    match = compiled.fullmatch if whole else compiled.search
    yield from (text for text in texts(expression) if match(text))


def _of(items: list[Any]) -> Iterator[str]:
    if not items:
        yield ""
        return
    for head, rest in product(_each(items[0]), list(islice(_of(items[1:]), _MOST))):
        yield head + rest


def _each(item: Any) -> Iterator[str]:
    kind, value = item
    if kind is sre_constants.LITERAL:
        yield chr(value)
    elif kind is sre_constants.NOT_LITERAL:
        yield from (c for c in _ANY if c != chr(value))
    elif kind is sre_constants.ANY:
        yield "a"
    elif kind is sre_constants.IN:
        yield from _in(value)
    elif kind is sre_constants.BRANCH:
        for branch in value[1]:
            yield from _of(list(branch))
    elif kind is sre_constants.SUBPATTERN:
        yield from _of(list(value[3]))
    elif kind in (sre_constants.MAX_REPEAT, sre_constants.MIN_REPEAT):
        least, most, inner = value
        yield from (text * least for text in islice(_of(list(inner)), _MOST))
        if most > least == 0:
            yield from islice(_of(list(inner)), 8)
    elif kind is sre_constants.ASSERT:
        yield ""
    else:
        # Anchors and negative look-arounds take no text.
        yield ""


def _in(members: list[Any]) -> Iterator[str]:
    if members[0][0] is sre_constants.NEGATE:
        compiled = {chr(v) for k, v in members[1:] if k is sre_constants.LITERAL}
        yield from (c for c in _ANY if c not in compiled)
        return
    for kind, value in members:
        if kind is sre_constants.LITERAL:
            yield chr(value)
        elif kind is sre_constants.RANGE:
            yield chr(value[1])
        elif kind is sre_constants.CATEGORY and value in _SAMPLES:
            yield _SAMPLES[value]
