"""`gpudebug analyze` of section reports: one, several merged, and beside another."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpudebug.core.errors import GpudebugError
from gpudebug.core.inside import sections as core
from gpudebug.edges import store

if TYPE_CHECKING:
    from gpudebug.core.answers.sections import SectionsAnswer
    from gpudebug.core.inside.sections import Report

_LARGEST = 64 << 20
_AGAIN = "copy it again, or record it again"


def read(path: Path, *, packed: bool) -> Report:
    """Return the report in a file, which may be in gzip."""
    data = store.read_head(path, _LARGEST + 1, follow=True)
    if len(data) > _LARGEST:
        raise GpudebugError(
            f"is more than {_LARGEST >> 20} MB", file=str(path), next="is this the right file?"
        )
    return core.read_report(_unpacked(data, path) if packed else data, str(path))


def sections(reports: Sequence[Report], label: str) -> SectionsAnswer:
    """Return what one report says, or several together."""
    return core.summed_up(core.merge(reports), label)


def _unpacked(data: bytes, path: Path) -> bytes:
    unpacking = zlib.decompressobj(wbits=31)
    try:
        found = unpacking.decompress(data, _LARGEST)
    except zlib.error:
        raise GpudebugError("is damaged: no gzip", file=str(path), next=_AGAIN) from None
    if unpacking.unconsumed_tail:
        raise GpudebugError(
            f"is more than {_LARGEST >> 20} MB unpacked", file=str(path), next="is this the right file?"
        )
    if not unpacking.eof:
        raise GpudebugError("is cut off: its gzip has no end", file=str(path), next=_AGAIN)
    return found
