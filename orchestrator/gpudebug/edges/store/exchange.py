"""A folder of files that is written beside and put in place at once: all of it, or what was there before."""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from gpudebug.core.errors import StoreError
from gpudebug.edges.store.files import os_error, read_head, sync_folder, write_beside

_ABANDONED_S = 60.0
_HEAD = 200


def replace_folder(path: Path, files: Mapping[str, bytes], *, is_ours: Callable[[str, bytes], bool]) -> None:
    """Make `path` a folder of exactly these files, by name. StoreError leaves it as it is.

    Refused: a link, a folder below .git, anything in it that is not `is_ours` by its name and the beginning
    of its bytes. Between the two renames that put it in place nothing is there; half a folder never is.
    """
    refuse_foreign(path, is_ours)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(path)
        made = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent))
    except OSError as e:
        raise os_error(e, path, "cannot write; it is unchanged") from None
    try:
        for name, data in files.items():
            write_beside(made / name, data, 0o644)
        made.chmod(0o755)
        _put_in_place(made, path)
        sync_folder(path.parent)
    except OSError as e:
        raise os_error(e, path, "cannot write; it is unchanged") from None
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _put_in_place(made: Path, path: Path) -> None:
    if not path.exists():
        os.replace(made, path)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent))
    os.replace(path, old)
    try:
        os.replace(made, path)
    except OSError:
        os.replace(old, path)
        raise
    shutil.rmtree(old)


def refuse_foreign(path: Path, is_ours: Callable[[str, bytes], bool]) -> None:
    """Refuse a place whose content is not ours to replace."""
    where, said = str(path), "name another folder with -o"
    if path.is_symlink():
        raise StoreError("is a link", file=where, next=said)
    if ".git" in (*path.absolute().parts, *path.resolve().parts):
        raise StoreError("lies inside of .git", file=where, next=said)
    try:
        entries = sorted(path.iterdir()) if path.exists() else []
    except OSError as e:
        raise os_error(e, path, "cannot write there") from None
    for entry in entries:
        plain = entry.is_file() and not entry.is_symlink()
        if not plain or not is_ours(entry.name, read_head(entry, _HEAD)):
            raise StoreError(f"holds {entry.name}, which is not of an export", file=where, next=said)


def _remove_abandoned(path: Path) -> None:
    """Folders that a killed process left beside `path`; one of a live process is seconds old."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        # Somebody else may tidy up at the same moment.
        with contextlib.suppress(FileNotFoundError):
            if left.is_dir() and time.time() - left.stat().st_mtime > _ABANDONED_S:
                shutil.rmtree(left)
