"""Which files of the code a run's processes imported, as they told at their end; which a patch changes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from gpudebug.core.models import LoadedFiles

MOST_FILES = 2000
_SHOWN = 3


def read_loaded(text: str) -> LoadedFiles | None:
    """What the lines of loaded.jsonl say together; None where no process told anything.

    A line that is not what the record writes counts for nothing: the training can write there too.
    """
    lines = [line for raw in text.splitlines() if (line := _line(raw))]
    if not lines:
        return None
    tree = lines[0]["tree"]
    lines = [line for line in lines if line["tree"] == tree]
    others = sorted({other for line in lines for other in line["elsewhere"]})
    return LoadedFiles(
        tree=tree,
        files=_union(line["files"] for line in lines),
        elsewhere={o: _union(line["elsewhere"].get(o, ()) for line in lines) for o in others},
    )


def _line(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    sound = (
        isinstance(found, dict)
        and isinstance(found.get("tree"), str)
        and _names(found.get("files"))
        and isinstance(found.get("elsewhere"), dict)
        and all(_names(files) for files in found["elsewhere"].values())
    )
    return found if sound else None


def _names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _union(lists: Iterable[Sequence[str]]) -> tuple[str, ...]:
    return tuple(sorted({name for names in lists for name in names})[:MOST_FILES])


def strays(loaded: LoadedFiles) -> tuple[str, ...]:
    """What came from another checkout, both paths named; of many files the first ones."""
    found = [
        f"{name} came from {other}/{name}, not from {loaded.tree}/{name}"
        for other, names in sorted(loaded.elsewhere.items())
        for name in names
    ]
    more = len(found) - _SHOWN
    return (*found[:_SHOWN], *((f"{more} more files came from there",) if more > 0 else ()))


def has_package(loaded: LoadedFiles, name: str) -> bool:
    """Whether files of the package `name` came from the tested tree."""
    return any(name in file.split("/")[:-1] for file in loaded.files)


_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_ESCAPE = re.compile(rb'\\([0-7]{3}|["\\abfnrtv])')
_ESCAPED = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}


def touched(patch: bytes) -> tuple[str, ...]:
    """The files that `git apply` of this patch would write, relative to the top."""
    found: dict[str, None] = {}
    lines = iter(patch.splitlines())
    for line in lines:
        if hunk := _HUNK.match(line):
            _skip(lines, *(int(count) if count is not None else 1 for count in hunk.groups()))
        elif line.startswith(b"+++ ") and (name := _name(line[4:])).startswith(b"b/"):
            found[name[2:].decode("utf-8", "surrogateescape")] = None
        elif line.startswith((b"rename to ", b"copy to ")):
            found[_name(line.split(b" to ", 1)[1]).decode("utf-8", "surrogateescape")] = None
    return tuple(found)


def _skip(lines: Iterator[bytes], old: int, new: int) -> None:
    """Read over a hunk, in which a line may look like a header."""
    while old > 0 or new > 0:
        kind = next(lines, b"")[:1]
        if kind not in (b"-", b"+", b" ", b"", b"\\"):
            return
        old -= kind in (b"-", b" ", b"")
        new -= kind in (b"+", b" ", b"")


def _name(text: bytes) -> bytes:
    """A path as git writes it: quoted where it holds anything unusual."""
    if not text.startswith(b'"'):
        return text.rstrip(b"\t")
    inner = text[1 : text.rindex(b'"')]
    return _ESCAPE.sub(lambda m: _character(m[1]), inner)


def _character(escape: bytes) -> bytes:
    return bytes([int(escape, 8) & 0xFF]) if escape.isdigit() else _ESCAPED.get(escape, escape)
