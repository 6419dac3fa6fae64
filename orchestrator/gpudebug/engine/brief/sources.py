"""The files of the repository that a training command names: what a reader needs first to understand it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

_TEXTS = frozenset({".py", ".sh", ".yaml", ".yml", ".toml", ".json", ".jsonnet", ".cfg", ".ini", ".gin"})
_WORDS = 400
_LONGEST = 500


def named_files(root: Path, cwd: str, argv: Sequence[str], limit: int = 5) -> list[str]:
    """Scripts, modules and configurations in `argv` that lie below `root`, relative to it, in their order."""
    top = Path(os.path.realpath(root))
    found: dict[str, None] = {}
    for name in _candidates(argv[:_WORDS]):
        path = Path(os.path.realpath(top / cwd / name))
        if path.is_relative_to(top) and path.is_file():
            found.setdefault(str(path.relative_to(top)))
        if len(found) == limit:
            break
    return list(found)


def _candidates(argv: Sequence[str]) -> Iterator[str]:
    words = [part for word in argv for part in (word.split() if " " in word else [word])]
    for before, word in zip(["", *words], words, strict=False):
        if before == "-m":
            module = word.replace(".", "/")
            yield from (f"{module}.py", f"{module}/__main__.py")
        for name in (word, word.partition("=")[2]):
            if len(name) < _LONGEST and "\0" not in name and Path(name).suffix in _TEXTS:
                yield name
