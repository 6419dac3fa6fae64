"""The folders that `gpudebug why` left in a place: recognised by their record, never by their name alone."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

from gpudebug.edges import launcher, store
from gpudebug.engine.campaign.files import stored_record
from gpudebug.engine.diagnosis.why import FOLDER, ROLE

_NAME = re.compile(rf"{FOLDER}-[1-9][0-9]*")
STILL_S = 60.0
"""A look that was not finished is under way if something of it was written in so many seconds."""


def looks_in(place: Path) -> Iterator[store.RunFolder]:
    """Yield the looks that lie in a folder, in the order of their numbers; none if it cannot be listed."""
    try:
        found = [path for path in place.iterdir() if _NAME.fullmatch(path.name)]
    except OSError:
        return
    for path in sorted(found, key=lambda path: int(path.name.rpartition("-")[2])):
        look = store.RunFolder(path, lambda text: text)
        if path.is_symlink() or not path.is_dir():
            continue
        record = stored_record(look, "run.json")
        if record.get("name") == path.name and record.get("role") == ROLE:
            yield look


def under_way(look: store.RunFolder) -> bool:
    """Tell whether gpudebug still writes to it: a process of its run lives, or something of it is new."""
    if look.sealed:
        return False
    return bool(launcher.marked(str(look.path))) or time.time() - _written(look.path) < STILL_S


def _written(folder: Path) -> float:
    """When something in it was written last, in seconds of the clock; 0.0 if it is gone."""
    try:
        return max(path.stat().st_mtime for path in (folder, *folder.iterdir()))
    except OSError:
        return 0.0
