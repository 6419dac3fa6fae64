"""Which settings a patch changes where it changes nothing but files of settings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from gpudebug.core.change.patches.hunks import Patch, PatchedFile

_SUFFIXES = frozenset({".yaml", ".yml", ".json", ".toml", ".ini", ".cfg"})
_KEY = re.compile(rb"""\s*(?:-\s+)?["']?(?P<name>[A-Za-z_][\w.-]*)["']?\s*[:=]""")


def settings_of(patch: Patch) -> tuple[str, ...] | None:
    """The names whose values change, in order; None if a line of it is no setting, or in another file."""
    found = [name for each in patch.files for name in _names(each)]
    return None if not found or None in found else tuple(dict.fromkeys(name for name in found if name))


def _names(each: PatchedFile) -> Iterator[str | None]:
    if PurePosixPath(each.path).suffix not in _SUFFIXES or each.binary or each.old != each.new:
        yield None
        return
    for line in (line for hunk in each.hunks for line in hunk.body if line[:1] in (b"-", b"+")):
        if not line[1:].strip() or line[1:].lstrip().startswith((b"#", b";")):
            continue
        key = _KEY.match(line[1:])
        yield key["name"].decode() if key else None
