"""What else was seen of runs whose samples lie alone: kept in the user's cache folder, by their digest.

`sample -o F.csv` writes the samples and the log that were asked for; the probe's figures and the stacks of
the same run are here, of the last `MOST` runs. A file that was altered since has another digest.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from gpudebug.core.errors import GpudebugError
from gpudebug.edges import removal
from gpudebug.edges.opener import file_digest
from gpudebug.edges.store.private import LARGEST, PrivateFolder

MOST = 64
_NAMES = ("gpudebug", "seen")
_SUFFIX = ".json"


def put_seen(samples: Path, document: dict[str, object]) -> None:
    """Keep a document of the run of `samples`; nothing if the cache folder cannot be written to."""
    data = json.dumps(document).encode("utf-8", "surrogateescape")
    anchor = _anchor()
    if anchor is None or len(data) > LARGEST:
        return
    with suppress(OSError, GpudebugError):
        anchor.mkdir(mode=0o700, parents=True, exist_ok=True)
        PrivateFolder(anchor, _NAMES).write(file_digest(samples) + _SUFFIX, data)
        _forget(anchor)


def get_seen(samples: Path) -> dict[str, Any] | None:
    """The document of the run of exactly these samples; None if there is none, or none that is ours."""
    anchor = _anchor()
    if anchor is None:
        return None
    with suppress(OSError, GpudebugError, ValueError):
        data = PrivateFolder(anchor, _NAMES).read(file_digest(samples) + _SUFFIX)
        found = json.loads(data.decode("utf-8", "surrogateescape")) if data is not None else None
        return found if isinstance(found, dict) else None
    return None


def cache_folder() -> Path | None:
    """Return the folder of gpudebug's in this user's cache folder; None without a home."""
    anchor = _anchor()
    return None if anchor is None else anchor / _NAMES[0]


def _anchor() -> Path | None:
    """Where this user's caches are, by the XDG Base Directory Specification 0.8; None without a home, and
    on Windows, which cannot open folders."""
    if os.open not in os.supports_dir_fd:
        return None
    named = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(named):
        return Path(named)
    with suppress(RuntimeError):
        return Path.home() / ".cache"
    return None


def _forget(anchor: Path) -> None:
    """Remove all but the newest documents."""
    with removal.folder(anchor, *_NAMES) as parent:
        found = []
        for name in os.listdir(parent):
            if name.endswith(_SUFFIX) and not name.startswith("."):
                found.append((os.stat(name, dir_fd=parent, follow_symlinks=False).st_mtime_ns, name))
        for _, name in sorted(found, reverse=True)[MOST:]:
            removal.remove_file(parent, name, removal.made_at(parent, name))
