"""The catalogue of root causes: those that gpudebug ships and those of the user's repository."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from time import perf_counter

from gpudebug.core.catalogue import Catalogue, Cause, collect, read_cause
from gpudebug.core.inside.stacks.shares import limit
from gpudebug.edges import catalogue as files
from gpudebug.engine.run import adapters


def load(root: Path | None, *, strict: bool = False) -> Catalogue:
    """Return every root cause that is known in the repository at `root`; None: those that gpudebug ships.

    The user's files are checked in full, those that gpudebug ships only where `strict` asks for it: the
    tests check them. Raises CatalogueError with file and line for a file that is broken, and where two
    files say one id.
    """
    return collect((*_shipped(strict), *(_own(root) if root else ())))


@lru_cache(maxsize=2)
def _shipped(strict: bool) -> tuple[tuple[Cause, str, bool], ...]:
    known = adapters.known() if strict else None
    return tuple(
        (
            read_cause(file.text, file.shown, group=file.group, frameworks=known, trusted=not strict),
            file.shown,
            False,
        )
        for file in files.shipped()
    )


def _own(root: Path) -> Iterator[tuple[Cause, str, bool]]:
    limit(perf_counter)
    for file in files.own(root):
        cause = read_cause(file.text, file.shown, group=file.group, frameworks=adapters.known())
        yield cause, file.shown, True
