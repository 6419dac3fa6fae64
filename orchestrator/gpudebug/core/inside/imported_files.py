"""Which files of the code a run's processes imported, and which were written while it was under way."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from gpudebug.core.records import LoadedFiles
from gpudebug.core.text.json_lines import parse

MOST_FILES = 2000
_SHOWN = 3


def read_loaded(text: str) -> LoadedFiles | None:
    """Parse the lines of loaded.jsonl together; None if no process reported anything.

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
        found = parse(text)
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
    """Return what came from another checkout, both paths named; of many files the first ones."""
    found = [
        f"{name} was loaded from {other}/{name}, not from {loaded.tree}/{name}"
        for other, names in sorted(loaded.elsewhere.items())
        for name in names
    ]
    more = len(found) - _SHOWN
    return (*found[:_SHOWN], *((f"{more} more files were loaded from there",) if more > 0 else ()))


def has_package(loaded: LoadedFiles, name: str) -> bool:
    """Tell whether files of the package `name` came from the tested tree."""
    return any(name in file.split("/")[:-1] for file in loaded.files)


# What decides how the program runs; beside it, programs rewrite settings and metrics that git tracks.
_CODE = (".py", ".pyx", ".so")


def recorded(written: Iterable[str]) -> tuple[str, ...]:
    """Return what run.json keeps of the paths, Python's first."""
    return tuple(sorted(written, key=lambda path: (not path.endswith(_CODE), path))[:MOST_FILES])


def spoiling(written: Iterable[str], beside: Collection[Collection[str] | None] = ()) -> list[str]:
    """Return the paths for which a run counts for nothing. `beside` is what each run of the baseline wrote,
    None if that is not known: what is no Python file is excused if it is rewritten in every run."""
    return [
        path
        for path in written
        if path.endswith(_CODE) or not all(known is None or path in known for known in beside)
    ]
