"""The files of the repository that a training command names: what a reader needs first to understand it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
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


def placed(root: Path, seen: Iterable[tuple[str, int | None]], known: Sequence[str]) -> dict[str, int | None]:
    """Files of the repository in which a cause was seen, first seen first, each with its first line.

    A frame has a file's last folder at most: it is the one of `known` that ends so, else what it names.
    """
    found: dict[str, int | None] = {}
    for frame, line in seen:
        ends = [name for name in known if f"/{name}".endswith(f"/{frame}")]
        if not ends and (root / frame).is_file() and len(frame) < _LONGEST:
            ends = [frame]
        for name in ends[:1]:
            found.setdefault(name, line)
    return found


def by_folder(names: Iterable[str], lines: Mapping[str, int | None]) -> list[tuple[str, list[str]]]:
    """Paths, those of one folder as a shell's `folder/{a.py,b.py}`, and where in them `lines` are."""
    folders: dict[str, list[str]] = {}
    for name in names:
        folder = name.rpartition("/")[0]
        folders.setdefault(folder or name, []).append(name)
    groups = []
    for folder, inside in folders.items():
        files = [name.rpartition("/")[2] for name in inside]
        text = inside[0] if len(inside) == 1 else f"{folder}/{{{','.join(files)}}}"
        at = zip(files, map(lines.get, inside), strict=True)
        seen = [
            f"{f}:{line}" if line else f for (f, line), name in zip(at, inside, strict=True) if name in lines
        ]
        groups.append((text, seen))
    return groups


def _candidates(argv: Sequence[str]) -> Iterator[str]:
    words = [part for word in argv for part in (word.split() if " " in word else [word])]
    for before, word in zip(["", *words], words, strict=False):
        if before == "-m":
            module = word.replace(".", "/")
            yield from (f"{module}.py", f"{module}/__main__.py")
        for name in (word, word.partition("=")[2]):
            if len(name) < _LONGEST and "\0" not in name and Path(name).suffix in _TEXTS:
                yield name
