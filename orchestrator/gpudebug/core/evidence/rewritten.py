"""Files of the code that were written while a run was under way, and are as before."""

from __future__ import annotations

from collections.abc import Collection, Iterable

# What decides how the program runs; beside it, programs rewrite settings and metrics that git tracks.
_CODE = (".py", ".pyx", ".so")
MOST_FILES = 2000


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
