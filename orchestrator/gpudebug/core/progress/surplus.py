"""What an entry says in gpudebug's own lines beside what it writes there.

The keys of gpudebug in an entry are its own: each is there once, and the Result and the lines of the runs
hold nothing but what follows from the runs. Every other line of the file is its author's, whatever it says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from gpudebug.core.lazy import regex
from gpudebug.core.progress.blocks import unescaped
from gpudebug.core.progress.entries import BaselineEntry, HypothesisEntry, ProgressFile
from gpudebug.core.progress.fields import (
    EARLIER_RESULT,
    RESULT_KEYS,
    Field,
    earlier,
    is_result,
    read_fields,
    read_status,
    result_pairs,
    run_names,
)
from gpudebug.core.words import VERDICTS

TWICE = "a second line of this key: gpudebug writes one"
OUTSIDE = "a figure that no run of this entry supports"
BESIDE = "own text with a figure inside of the Result: move it out of there"
REMARK = "a remark behind the status: gpudebug writes none"
UNJUDGED = "a figure of a hypothesis that has no verdict"
NAMES = "more than the names of runs"

_ONCE = frozenset({"status", "accepted", "intervention", "result", "runs"})
_BASELINE = frozenset({"command", "gpu util", "metric", "work", "throughput", "training", "loss"})
_VERDICTS = "VALIDATED|REJECTED|INCONCLUSIVE|INVALID"
_WORDS = rf"(?:{_VERDICTS}|SUCCESS|FAILED|CONVERGING|PLATEAU|DIVERGING)"
_MEASURED = regex(rf"\d|\b{_WORDS}\b")
_FIGURE = regex(
    rf"(?i:\d\s?(?:%|pp\b|x\b|×|-?fold\b|percent|points\b|times\b|[a-z]+/s\b))|\b(?:{_VERDICTS})\b"
)
# Targets of links, addresses, comments, what is struck out, `:signs:`, and a template's unfilled choice.
_NO_VALUE = regex(
    r"\]\([^()\s]*\)|\b[a-z][a-z0-9+.-]{0,20}://\S+|<!--.{0,200}?-->|~~[^~]{0,200}~~|:[a-z][a-z0-9_+-]{0,40}:"
    rf"|\b(?:{_WORDS}|UNTESTED)(?:\s*[|/]\s*(?:[A-Z]+|NaN)\b)+"
)
_SEE = regex(r"\(\s*(?:see|cf)\b[^()]*\)", re.IGNORECASE)


class Surplus(NamedTuple):
    """What gpudebug did not write in a line of its own: the key, the 1-based line, the text, and why."""

    key: str
    line: int
    text: str
    why: str


def measured(text: str) -> bool:
    """Tell whether the value of a key says a number, a verdict or an outcome."""
    return _MEASURED.search(_value(text)) is not None


def figured(text: str) -> bool:
    """Tell whether words behind a value say a figure with a unit, or a verdict."""
    return _FIGURE.search(_value(text)) is not None


def _value(text: str) -> str:
    return _NO_VALUE.sub(" ", unescaped(text))


def in_hypothesis(document: ProgressFile, entry: HypothesisEntry) -> list[Surplus]:
    """Return what a hypothesis says beside what is checked of it, in the order of the file."""
    judged = entry.status in VERDICTS
    bare = not judged and not entry.runs
    found: list[Surplus] = []
    seen: set[str] = set()
    for field in entry.fields:
        name, text = field.name, field.text(" ")
        if name in seen and (name in _ONCE or earlier(name)):
            found.append(_at(document, field.first.offset, name, text, TWICE))
        elif is_result(name):
            found += _in_result(document, field, bare=bare and not earlier(name))
        elif name == "status":
            found += _behind_status(document, field, judged)
        elif name == "runs" or earlier(name):
            found += _beside_runs(document, field.first.offset, name, text)
        elif name in RESULT_KEYS and name != "notes" and measured(text):
            found.append(_at(document, field.first.offset, name, text, UNJUDGED if bare else OUTSIDE))
        seen.add(name)
    return found


def in_baseline(document: ProgressFile, entry: BaselineEntry) -> list[Surplus]:
    """Return what a baseline says beside what is checked of it, in the order of the file."""
    place = entry.place
    found: list[Surplus] = []
    seen: set[str] = set()
    for field in read_fields(document.data, place.fields_start, place.fields_end, place.opaque):
        name, text = field.name, field.text(" ")
        if name in seen and (name == "runs" or name in _BASELINE):
            found.append(_at(document, field.first.offset, name, text, TWICE))
        elif name == "runs":
            found += _beside_runs(document, field.first.offset, name, text)
        elif (is_result(name) or name in RESULT_KEYS - _BASELINE - {"notes"}) and measured(text):
            found.append(_at(document, field.first.offset, name, text, OUTSIDE))
        seen.add(name)
    return found


def _in_result(document: ProgressFile, result: Field, *, bare: bool) -> Iterator[Surplus]:
    """Yield twins and own figures of a Result, of an entry without a verdict every figure."""
    seen: set[str] = set()
    for item in result_pairs(result):
        ours = item.name in RESULT_KEYS
        if ours and item.name in seen:
            yield _at(document, item.start, item.name, item.text, TWICE)
        elif ours and not bare:
            if item.name == "runs":
                yield from _beside_runs(document, item.start, item.name, item.text)
        elif figured(item.text) if item.name == "notes" else measured(f"{item.name.upper()} {item.text}"):
            key = "result" if item.name in ("", "summary") else item.name
            yield _at(document, item.start, key, item.text, UNJUDGED if bare else BESIDE)
        seen.add(item.name)


def _beside_runs(document: ProgressFile, offset: int, key: str, text: str) -> Iterator[Surplus]:
    rest = text
    for name in run_names(text):
        rest = rest.replace(name, "")
    if figured(rest):
        yield _at(document, offset, key, text, NAMES)


def _behind_status(document: ProgressFile, status: Field, judged: bool) -> Iterator[Surplus]:
    shown = b" ".join([status.value, *(line.text.strip() for line in status.rest if not line.hidden)])
    text = shown.decode("utf-8", "replace").strip()
    reading = read_status(status)
    rest = _SEE.sub("", _NO_VALUE.sub(" ", text).replace(reading.word, "", 1).replace("_", " "))
    if figured(rest) or (judged and re.search(r"\w", rest)):
        yield _at(document, reading.start, "status", text, REMARK)


def _at(document: ProgressFile, offset: int, key: str, text: str, why: str) -> Surplus:
    line = len((document.data[:offset] + b"x").splitlines())
    return Surplus(EARLIER_RESULT if earlier(key) else key, line, text, why)
