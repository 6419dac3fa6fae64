"""A section report, as the profiling library writes it, read without trusting it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from gpudebug.core.answers.sections import Section, SectionNode
from gpudebug.core.errors import GpudebugError
from gpudebug.core.inside.sections.cost import MeasuredOn, Report
from gpudebug.core.inside.sections.others import of_trace
from gpudebug.core.text.json_lines import line_of, parse

NOTE = "the report has no tree: shares are of the sum of all sections, also of those that enclose others"
_MEMORY = {"mem_peak_mb": "memory_peak_mb", "gpu_peak_mb": "gpu_memory_peak_mb"}
_TIMES = {"total_s": "total_time", "mean_s": "avg_time", "min_s": "min_time", "max_s": "max_time"}


def operations_of(found: object) -> Mapping[str, Any] | None:
    """Return the operations of such a report by their names; None for any other document."""
    summary = found.get("summary") if isinstance(found, dict) else None
    inner = summary if isinstance(summary, dict) else found
    operations = inner.get("operations") if isinstance(inner, dict) else None
    return operations if isinstance(operations, dict) else None


def as_entry(name: str, figures: object) -> tuple[dict[str, object], str | None]:
    """(a section as our own reports have it, the figure that is missing or None).

    A peak of 0 was not measured or not raised: unknown.
    """
    if not isinstance(figures, dict):
        return {"name": name}, "call_count"
    calls = figures.get("call_count")
    if calls == 0:
        return {"name": name, "calls": 0}, None
    entry: dict[str, Any] = {"name": name, "calls": calls}
    entry |= {ours: figures.get(theirs) for ours, theirs in _TIMES.items()}
    entry |= {ours: figures.get(theirs) or None for ours, theirs in _MEMORY.items()}
    entry["self_s"] = entry["total_s"]
    missing = (theirs for ours, theirs in {"calls": "call_count", **_TIMES}.items() if entry[ours] is None)
    return entry, next(missing, None)


FORMAT = "gpudebug-sections"
VERSION = 1
# What lies deeper counts in the sections above it.
_DEEPEST = 100
_DEEPEST_TEXT = 500
# Thirty thousand years: sums of such numbers still are numbers.
_LARGEST = 1e12
_MOST = 2**63
_AGAIN = "record it again, and let the training end by itself"
_DAMAGED = "the clock went backwards or the file was edited; record it again"
_MARKS = frozenset('{}[],:"')
_Place = tuple[str | int, ...]


def read_report(data: bytes, file: str) -> Report:
    """The report in the bytes of `file`. GpudebugError says what is wrong with it, where and what to do."""
    text = data.decode("utf-8-sig", "replace")
    try:
        found = parse(text, deepest=_DEEPEST_TEXT)
    except json.JSONDecodeError as e:
        raise _no_json(text, e, file) from None
    except ValueError:
        # Brackets without end, or a number of thousands of digits.
        raise GpudebugError("is not a section report", file=file, next=_AGAIN) from None
    if (operations := operations_of(found)) is not None:
        return _ReportReader(text, file).operations(operations)
    if (traced := of_trace(found)) is not None:
        return traced
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise GpudebugError(
            f'is not a section report: its "format" is not "{FORMAT}"',
            file=file,
            next="give the sections.json of a run, or the file that GPUDEBUG_PROFILE names",
        )
    if found.get("version") != VERSION:
        raise GpudebugError(
            f"is a section report of version {_shown(found.get('version'))}, this gpudebug reads {VERSION}",
            file=file,
            next="use the gpudebug that wrote it: pip install --upgrade gpudebug",
        )
    return _ReportReader(text, file).report(found)


def _no_json(text: str, e: json.JSONDecodeError, file: str) -> GpudebugError:
    # A number or a word may be cut too: then nothing but it follows.
    ends = e.msg != "Extra data" and not _MARKS.intersection(text[e.pos :])
    if ends or e.msg.startswith("Unterminated string"):
        return GpudebugError("is cut off: its JSON has no end", file=file, next=_AGAIN)
    return GpudebugError(f"is not JSON: {e.msg}", file=file, line=e.lineno, next=_AGAIN)


def _shown(value: object) -> str:
    return repr(value)[:40]


def _clean(name: str) -> str:
    """Return a name that can be written as UTF-8: JSON can hold half a surrogate pair."""
    return name.encode("utf-8", "replace").decode()


def _whose(entry: Mapping[str, Any]) -> str:
    name = entry.get("name")
    return f"section {name!r}: " if isinstance(name, str) else ""


class _ReportReader:
    """Finds the line of a value in the file, for its errors."""

    def __init__(self, text: str, file: str) -> None:
        self._text = text
        self._file = file

    def report(self, found: Mapping[str, Any]) -> Report:
        sections = [
            self._section(s, ("sections", i)) for i, s in enumerate(self._list(found, "sections", ()))
        ]
        self._refuse_twins(sections)
        python, sync, categories = (found.get(key) for key in ("python", "sync", "categories"))
        return Report(
            sections=tuple(s for s in sections if s.calls),
            tree=self._nodes(found.get("tree") or [], ("tree",)),
            rank=self._count_if(found, "rank"),
            pid=self._count_if(found, "pid"),
            python=_clean(python) if isinstance(python, str) else None,
            surroundings=_surroundings(found.get("surroundings")),
            wall_s=self._number_if(found, "wall_s"),
            enabled_s=self._number_if(found, "enabled_s"),
            warmup=self._count_if(found, "warmup") or 0,
            iterations=self._count_if(found, "iterations"),
            sync=sync is True,
            categories=_texts(categories) if isinstance(categories, dict) else {},
            capped=self._count_if(found, "capped") or 0,
            open=self._names(found, "open"),
            notes=self._names(found, "notes"),
        )

    def operations(self, found: Mapping[str, Any]) -> Report:
        """Of a profiler that counts operations by name."""
        sections = []
        for name, figures in found.items():
            at = ("summary", "operations", name)
            entry, missing = as_entry(name, figures)
            if missing:
                self._refuse(f"operation {name!r}: {missing} is missing", at)
            sections.append(self._section(entry, at))
        timed = tuple(s for s in sections if s.calls)
        return Report(sections=timed, notes=(NOTE,) if timed else ())

    def _section(self, entry: Any, at: _Place) -> Section:
        self._refuse_nameless(entry, at)
        calls = self._count(entry, "calls", at)
        if not calls:
            # Nothing was measured, so nothing is asked for.
            return Section(_clean(entry["name"]), 0, 0.0, 0.0, 0.0, 0.0, 0.0)
        total, own, mean, least, most = (
            self._number(entry, key, at) for key in ("total_s", "self_s", "mean_s", "min_s", "max_s")
        )
        category = entry.get("category")
        return Section(
            name=_clean(entry["name"]),
            calls=calls,
            total_s=total,
            self_s=own,
            mean_s=mean,
            min_s=least,
            max_s=most,
            p50_s=self._number_if(entry, "p50_s", at),
            p95_s=self._number_if(entry, "p95_s", at),
            errors=self._count_if(entry, "errors", at) or 0,
            category=_clean(category) if isinstance(category, str) else None,
            mem_peak_mb=self._number_if(entry, "mem_peak_mb", at),
            gpu_peak_mb=self._number_if(entry, "gpu_peak_mb", at),
        )

    def _nodes(self, entries: Any, at: _Place, depth: int = 0) -> tuple[SectionNode, ...]:
        if not isinstance(entries, list):
            self._refuse(f"{at[-1]} is no list", at)
        nodes = []
        for i, entry in enumerate(entries):
            here = (*at, i)
            self._refuse_nameless(entry, here)
            below = (entry.get("children") or []) if depth < _DEEPEST else []
            nodes.append(
                SectionNode(
                    name=_clean(entry["name"]),
                    calls=self._count(entry, "calls", here),
                    total_s=self._number(entry, "total_s", here),
                    children=self._nodes(below, (*here, "children"), depth + 1),
                )
            )
        return tuple(nodes)

    def _number(self, entry: Mapping[str, Any], key: str, at: _Place) -> float:
        """Return a figure that must be there: finite and not negative."""
        value = self._there(entry, key, at)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self._refuse(f"{_whose(entry)}{key} is no number: {_shown(value)}", (*at, key))
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            self._refuse(f"{_whose(entry)}{key} is {number}, no figure", (*at, key), _DAMAGED)
        if number < 0:
            self._refuse(f"{_whose(entry)}{key} is negative: {number:g}", (*at, key), _DAMAGED)
        if number > _LARGEST:
            self._refuse(f"{_whose(entry)}{key} cannot be: {number:g}", (*at, key), _DAMAGED)
        return number

    def _number_if(self, entry: Mapping[str, Any], key: str, at: _Place = ()) -> float | None:
        value = entry.get(key)
        lacking = value is None or (isinstance(value, float) and math.isnan(value))
        return None if lacking else self._number(entry, key, at)

    def _count(self, entry: Mapping[str, Any], key: str, at: _Place) -> int:
        value = self._there(entry, key, at)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST:
            self._refuse(f"{_whose(entry)}{key} is no count: {_shown(value)}", (*at, key))
        return value

    def _count_if(self, entry: Mapping[str, Any], key: str, at: _Place = ()) -> int | None:
        return None if entry.get(key) is None else self._count(entry, key, at)

    def _there(self, entry: Mapping[str, Any], key: str, at: _Place) -> Any:
        if entry.get(key) is None:
            self._refuse(f"{_whose(entry)}{key} is missing", at)
        return entry[key]

    def _list(self, entry: Mapping[str, Any], key: str, at: _Place) -> list[Any]:
        value = self._there(entry, key, at)
        if not isinstance(value, list):
            self._refuse(f"{key} is no list", (*at, key))
        return value

    def _names(self, found: Mapping[str, Any], key: str) -> tuple[str, ...]:
        names = self._list(found, key, ()) if found.get(key) else []
        return tuple(_clean(v) for v in names if isinstance(v, str))

    def _refuse_nameless(self, entry: Any, at: _Place) -> None:
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            self._refuse("a section has no name", at)

    def _refuse_twins(self, sections: Sequence[Section]) -> None:
        seen = set()
        for i, section in enumerate(sections):
            if section.name in seen:
                self._refuse(f"section {section.name!r} is in it twice", ("sections", i))
            seen.add(section.name)

    def _refuse(self, what: str, at: _Place, next: str = _AGAIN) -> NoReturn:
        raise GpudebugError(what, file=self._file, line=line_of(self._text, at), next=next)


def _surroundings(found: object) -> MeasuredOn:
    """Return what is of another type than it should be is unknown: nothing is computed from it."""
    if not isinstance(found, dict):
        return MeasuredOn()
    texts = _texts({key: found.get(key) for key in ("machine", "device", "torch")})
    cpus, compiled, settings = (found.get(key) for key in ("cpus", "compiled", "settings"))
    return MeasuredOn(
        **texts,
        cpus=cpus if type(cpus) is int and 0 < cpus < _MOST else None,
        compiled=compiled if isinstance(compiled, bool) else None,
        settings=_texts(settings) if isinstance(settings, dict) else {},
    )


def _texts(found: Mapping[str, Any]) -> dict[str, str]:
    return {_clean(k): _clean(v) for k, v in found.items() if isinstance(v, str)}
