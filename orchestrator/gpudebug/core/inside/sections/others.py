"""Section times in other forms: the calls in a trace of our own, and a tree that a program printed."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from gpudebug.core.answers.log import PrintedSection, PrintedSections
from gpudebug.core.lazy import regex

if TYPE_CHECKING:
    from gpudebug.core.inside.sections.cost import Report

CATEGORY = "section"
KEPT = "from a trace: of the calls that it kept"
_DEEPEST = 100
_LATEST_US = 1e18
_RULE = regex(r"\s*([=\-_*#])\1{9,}\s*$")
_ROW = regex(
    r"(?P<indent>\s*)(?:[-*+\u2022\u00b7]\s+)?(?P<name>\S.{0,200}?):\s+(?P<time>\d{1,9}(?:\.\d{1,9})?)\s*"
    r"(?P<unit>ms|us|\u00b5s|\u03bcs|s)\b"
)
_UNITS = {"s": 1.0, "ms": 1e-3}
_MICRO = 1e-6
_Path = tuple[str, ...]


def of_trace(found: object) -> Report | None:
    """Return the report of a document with calls of sections; None of any other."""
    from gpudebug.core.answers.sections import Section, SectionNode
    from gpudebug.core.inside.sections.cost import Report

    events = found.get("traceEvents") if isinstance(found, dict) else None
    calls = [e for e in events if _is_call(e)] if isinstance(events, list) else []
    if not calls:
        return None
    times = defaultdict[str, list[float]](list)
    own, whole = (defaultdict[str, float](float) for _ in range(2))
    places = defaultdict[_Path, list[float]](list)
    for call in _placed(calls):
        times[call.name].append(call.seconds)
        own[call.name] += max(0.0, call.seconds - call.within)
        whole[call.name] += call.seconds if call.outermost else 0.0
        if call.path:
            places[call.path].append(call.seconds)
    sections = [
        Section(name, len(s), whole[name], own[name], math.fsum(s) / len(s), min(s), max(s))
        for name, s in times.items()
    ]
    below = defaultdict[_Path, list[_Path]](list)
    for path in places:
        below[path[:-1]].append(path)

    def nodes(at: _Path) -> tuple[SectionNode, ...]:
        return tuple(
            SectionNode(path[-1], len(places[path]), math.fsum(places[path]), nodes(path))
            for path in below[at]
        )

    return Report(sections=tuple(sorted(sections, key=lambda s: -s.total_s)), tree=nodes(()), notes=(KEPT,))


def _is_call(event: Any) -> bool:
    if not isinstance(event, dict) or (event.get("ph"), event.get("cat")) != ("X", CATEGORY):
        return False
    times: list[Any] = [event.get("ts"), event.get("dur")]
    finite = all(type(t) in (int, float) and abs(t) < _LATEST_US for t in times)
    return finite and event["dur"] >= 0 and isinstance(event.get("name"), str)


class _TimedCall(NamedTuple):
    """`within` is the time of the calls in it, `path` its name behind those around it; () of a deep one."""

    name: str
    path: _Path
    seconds: float
    within: float
    outermost: bool


def _placed(calls: Sequence[Mapping[str, Any]]) -> Iterator[_TimedCall]:
    threads = defaultdict[tuple[str, str], list[Mapping[str, Any]]](list)
    for one in calls:
        threads[str(one.get("pid")), str(one.get("tid"))].append(one)
    for own in threads.values():
        around, names = list[tuple[Mapping[str, Any], list[float]]](), Counter[str]()
        ordered: list[Mapping[str, Any] | None] = [*sorted(own, key=lambda c: (c["ts"], -c["dur"])), None]
        for call in ordered:
            # One that began in another is inside it: that it seems to end later is rounding.
            while around and (call is None or call["ts"] >= around[-1][0]["ts"] + around[-1][0]["dur"]):
                deep = len(around) > _DEEPEST
                path = () if deep else tuple(outer["name"] for outer, _ in around)
                ended, within = around.pop()
                names[ended["name"]] -= 1
                inside = math.fsum(within)
                yield _TimedCall(ended["name"], path, ended["dur"] / 1e6, inside, not names[ended["name"]])
            if call is not None:
                if around:
                    around[-1][1].append(call["dur"] / 1e6)
                around.append((call, []))
                names[call["name"]] += 1


def printed(text: str, redact: Callable[[str], str]) -> PrintedSections | None:
    """Return the last tree of times that a program printed between rules under a title; None without one."""
    lines = text.splitlines()
    rules = [n for n, line in enumerate(lines) if _RULE.match(line)]
    framed = [
        (top, end)
        for (above, top), (_, end) in pairwise(pairwise(rules))
        if top == above + 2 and end > top + 2
    ]
    for top, end in reversed(framed):
        rows = [_ROW.match(line) for line in lines[top + 1 : end]]
        known = [row for row in rows if row is not None]
        if len(known) > 1 and len(known) == len(rows):
            return PrintedSections(
                title=redact(lines[top - 1].strip()), sections=tuple(_indented(known, redact))
            )
    return None


def _indented(rows: Sequence[re.Match[str]], redact: Callable[[str], str]) -> Iterator[PrintedSection]:
    around: list[tuple[int, float]] = []
    for row in rows:
        indent, seconds = len(row["indent"]), float(row["time"]) * _UNITS.get(row["unit"], _MICRO)
        while around and around[-1][0] >= indent:
            around.pop()
        share = seconds / around[0][1] if around and around[0][1] else None
        yield PrintedSection(name=redact(row["name"]), depth=len(around), time_s=seconds, share=share)
        around.append((indent, seconds))
