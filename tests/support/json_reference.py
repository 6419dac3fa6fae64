"""docs/reference/json.md: what each command answers, as the types of its answer say."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from tests.support.answer_commands import ANSWERS

from gpudebug.cli.options import GROUPS
from gpudebug.core.answers.answer import Answer, key_of, may_be_left_out

_WORDS = {
    str: "text",
    int: "integer",
    float: "number",
    bool: "true or false",
    object: "anything",
    Any: "anything",
}


def described() -> Iterator[str]:
    """A chapter for each command, then one for the records that several share."""
    seen: dict[type, None] = {}
    told: set[type[Answer]] = set()
    same: dict[tuple[type[Answer], ...], list[str]] = {}
    for name in (name for names in GROUPS.values() for name in names if name in ANSWERS):
        same.setdefault(ANSWERS[name], []).append(name)
    # Answers that others hold are linked to.
    inside = {kind for kinds in ANSWERS.values() for answer in kinds for kind in _answers_in(answer)}
    for kinds, names in same.items():
        yield f"## {', '.join(f'`{name}`' for name in names)}"
        base = _base(kinds)
        every = ((base,) if base else ()) + kinds
        known = [kind for kind in every if kind in told]
        if known:
            yield f"As above: {', '.join(_linked(kind) for kind in known)}."
        for kind in every:
            if kind in told:
                continue
            told.add(kind)
            if len(every) > 1 or kind in inside:
                yield f"### {kind.__name__}"
            yield from _record(kind, seen, without=_names(base) if base and kind is not base else ())
    yield "## Records"
    for kind in _closed(seen):
        yield f"### {kind.__name__}"
        yield from _record(kind, seen, without=())


def _base(kinds: Sequence[type[Answer]]) -> type[Answer] | None:
    """What all of several kinds derive from, besides being answers."""
    first = next(kind for kind in kinds[0].__mro__ if all(issubclass(k, kind) for k in kinds))
    return first if len(kinds) > 1 and first is not Answer else None


def _closed(seen: dict[type, None]) -> list[type]:
    """The records below those that were seen, and below these, by name."""
    found = dict(seen)
    while True:
        more = {kind: None for record in found for kind in _below(record)} | found
        if len(more) == len(found):
            return sorted(found, key=lambda kind: kind.__name__)
        found = more


def _below(kind: type) -> Iterator[type]:
    hints = get_type_hints(kind)
    for field in fields(kind):
        yield from _records_in(hints[field.name])


def _answers_in(kind: type) -> Iterator[type]:
    for hint in get_type_hints(kind).values():
        for part in (hint, *get_args(hint)):
            if isinstance(part, type) and issubclass(part, Answer):
                yield part


def _records_in(hint: Any) -> Iterator[type]:
    if isinstance(hint, type) and is_dataclass(hint) and not issubclass(hint, Answer):
        yield hint
    for part in get_args(hint):
        yield from _records_in(part)


def _names(kind: type) -> set[str]:
    return {field.name for field in fields(kind)} - {"action"}


def _record(kind: type, seen: dict[type, None], without: Any) -> Iterator[str]:
    """The text of a record and a table of its keys; records that it names are added to `seen`."""
    if issubclass(kind, Answer):
        seen.update(dict.fromkeys(_below(kind)))
    hints = get_type_hints(kind)
    rows = []
    for field in fields(kind):
        if field.name in without:
            continue
        left_out = ", or left out" if may_be_left_out(field) else ""
        constant = isinstance(field.default, str) and field.name in ("action", "kind")
        told = f'`"{field.default}"`' if constant else f"{_type(hints[field.name])}{left_out}"
        rows.append(f"| `{key_of(field.name)}` | {told} |")
    yield re.sub(r"\s*\n\s*\n\s*", "\n\n", re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.getdoc(kind) or ""))
    yield "\n".join(["| key | value |", "| --- | --- |", *rows])


def _type(hint: Any) -> str:
    if hint is NoneType:
        return "null"
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(_type(part) for part in parts)
    if (origin is tuple and len(parts) == 2 and parts[1] is Ellipsis) or origin in (list, Sequence):
        return f"list of {_type(parts[0])}"
    if origin is tuple:
        return f"[{', '.join(_type(part) for part in parts)}]"
    if parts:
        return f"object of {_type(parts[-1])} by name"
    if is_dataclass(hint):
        return _linked(hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return " or ".join(f"`{word.value}`" for word in hint)
    return _WORDS.get(hint) or f"as `{hint.__name__}` in a run folder"


def _linked(kind: type) -> str:
    return f"[{kind.__name__}](#{kind.__name__.lower()})"
