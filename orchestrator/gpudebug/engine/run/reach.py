"""Whether a training runs below its command, where gpudebug sees it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpudebug.core.command.reach import BeyondReach, out_of_reach
from gpudebug.core.errors import GpudebugError
from gpudebug.edges import store

_LONGEST_SCRIPT = 64 << 10


class OutOfReach(GpudebugError):
    """The command hands its training to something whose processes gpudebug does not see."""

    code = "out_of_reach"

    def __init__(self, beyond: BeyondReach, file: str | None = None) -> None:
        super().__init__(beyond.unseen, file=file, next=beyond.instead)


def beyond_reach(argv: Sequence[str], folder: Path) -> BeyondReach | None:
    """Return what `argv`, started in `folder`, hands its training to; scripts of shells are read."""

    def read(path: str) -> str | None:
        try:
            return store.read_head(folder / path, _LONGEST_SCRIPT, follow=True).decode("utf-8", "replace")
        except GpudebugError:
            return None

    return out_of_reach(argv, read)
