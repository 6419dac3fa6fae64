"""The files of root causes and frameworks: those that gpudebug ships, and the user's own causes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from gpudebug.core.errors import CatalogueError
from gpudebug.edges import opener

LARGEST_BYTES = 1 << 17
MOST_FILES = 500
_DEEPEST = 4
_SUFFIXES = (".yaml", ".yml")
_PACKAGE = Path(__file__).resolve().parents[1]


class File(NamedTuple):
    """One file. `shown` names it in messages, `group` is its folder within a catalogue."""

    shown: str
    group: str | None
    text: str


def shipped(kind: str = "catalogue") -> tuple[File, ...]:
    """Return the files of `catalogue` or `frameworks` that came with gpudebug. CatalogueError if none did."""
    top = shipped_folder(kind)
    return tuple(
        File(str(path), path.parent.name if path.parent != top else None, _text(path.resolve(), str(path)))
        for path in _below(top, str(top))
    )


@lru_cache(maxsize=2)
def shipped_folder(kind: str) -> Path:
    """Inside the installed package; in a clone or an editable install in the repository beside it."""
    for folder in (_PACKAGE / kind, _PACKAGE.parents[1] / "hypotheses" / kind):
        if folder.is_dir():
            return folder
    raise CatalogueError(
        f"gpudebug's {kind.removesuffix('s')} files are missing",
        file=str(_PACKAGE / kind),
        next="install gpudebug again",
    )


def own(root: Path) -> tuple[File, ...]:
    """Return the causes that the repository at `root` adds: `hypotheses/*.yaml` and `hypotheses/catalogue/`.

    Folders that are links and hidden files are left out; a file that leads out of the repository, is not one,
    or is larger than 128 KiB is refused. Raises CatalogueError.
    """
    top = root / "hypotheses"
    paths = [*_flat(top), *_below(top / "catalogue", "hypotheses/catalogue")]
    shipped_top = shipped_folder("catalogue")
    if len(paths) > MOST_FILES:
        raise CatalogueError(
            f"more than {MOST_FILES} files", file="hypotheses", next="keep one YAML file a root cause"
        )
    files = []
    for path in paths:
        target = _inside(path, root)
        if target.is_relative_to(shipped_top):
            continue
        shown = str(path.relative_to(root))
        group = path.parent.name if path.parent not in (top, top / "catalogue") else None
        files.append(File(shown, group, _text(target, shown)))
    return tuple(files)


def _flat(folder: Path) -> list[Path]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except FileNotFoundError:
        return []
    except OSError as e:
        raise _unreadable(e, str(folder)) from None
    return [
        Path(entry) for entry in entries if _wanted(entry.name) and not entry.is_dir(follow_symlinks=False)
    ]


def _below(top: Path, shown: str, depth: int = 0) -> Iterator[Path]:
    """Yield the YAML files below a folder, in the order of their names."""
    try:
        entries = sorted(os.scandir(top), key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    except OSError as e:
        raise _unreadable(e, shown) from None
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            if not entry.name.startswith(".") and depth < _DEEPEST:
                yield from _below(Path(entry), f"{shown}/{entry.name}", depth + 1)
        elif _wanted(entry.name):
            yield Path(entry)


def _wanted(name: str) -> bool:
    return name.endswith(_SUFFIXES) and not name.startswith(".")


def _inside(path: Path, root: Path) -> Path:
    try:
        target = path.resolve()
    except (OSError, RuntimeError):  # RuntimeError up to Python 3.12
        raise CatalogueError("links lead in a circle", file=str(path), next="remove the link") from None
    if not target.is_relative_to(root.resolve()):
        raise CatalogueError(
            f"leads out of the repository, to {target}", file=str(path), next="keep it inside the repository"
        )
    return target


def _text(path: Path, shown: str) -> str:
    try:
        with opener.opened(path) as f:
            data = opener.read(f, LARGEST_BYTES + 1)
    except OSError as e:
        raise _unreadable(e, shown) from None
    if len(data) > LARGEST_BYTES:
        raise CatalogueError(
            f"larger than {LARGEST_BYTES >> 10} KiB", file=shown, next="keep one root cause in it"
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as e:
        line = data[: e.start].count(b"\n") + 1
        raise CatalogueError("not UTF-8", file=shown, line=line, next="save it as UTF-8") from None


def _unreadable(e: OSError, shown: str) -> CatalogueError:
    return CatalogueError(
        f"cannot read: {e.strerror or e}", file=shown, next="make it readable, or remove it"
    )
