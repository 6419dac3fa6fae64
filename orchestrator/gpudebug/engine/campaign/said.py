"""Who said to have nothing to propose: a line in the progress file alone ends no session and no campaign.

The record, a digest of each line, lies in git's common folder. It is written before the line is, so that a
kill in between leaves a record without a line, which counts for nothing.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from gpudebug.core.errors import GpudebugError
from gpudebug.core.progress.nothing import NothingToPropose
from gpudebug.edges import git, store
from gpudebug.edges.store.private import PrivateFolder
from gpudebug.engine.campaign.campaign import Setup
from gpudebug.engine.campaign.private import said_folder

FILE = "nothing.json"
FORMAT = 1
_MOST = 10_000


class SaidRecord(NamedTuple):
    """Digests of the lines that `propose --none` wrote, oldest first; `problem` says why there are none."""

    kept: PrivateFolder
    lines: tuple[str, ...]
    problem: str | None = None

    @property
    def file(self) -> Path:
        return self.kept.path / FILE

    def has(self, said: NothingToPropose) -> bool:
        return _digest(said) in self.lines


def said_of(root: Path, campaign: str, where: git.Checkout | git.Address) -> SaidRecord:
    """Return what was recorded for the campaign at `root`. Nothing is written."""
    found = SaidRecord(said_folder(root, campaign, where), ())
    try:
        data = found.kept.read(FILE)
        return found if data is None else found._replace(lines=_read(data))
    except GpudebugError as e:
        return found._replace(problem=e.message)
    except (ValueError, TypeError, KeyError, RecursionError):
        return found._replace(problem="is not what gpudebug writes")


def keep(setup: Setup, said: NothingToPropose) -> None:
    """Record a line that is about to be written, under the progress file's lock.

    A record that cannot be read is made anew: what it held counts no more.
    """
    known = said_of(setup.workspace.root, setup.config.campaign, setup.checkout)
    lines = [*known.lines, _digest(said)][-_MOST:]
    text = json.dumps({"format": FORMAT, "lines": lines}, indent=1)
    known.kept.write(FILE, text.encode() + b"\n")


def _digest(said: NothingToPropose) -> str:
    return store.digest(said.line.encode())


def _read(data: bytes) -> tuple[str, ...]:
    record = json.loads(data)
    if record["format"] != FORMAT or not all(isinstance(line, str) for line in record["lines"]):
        raise ValueError("not a record")
    return tuple(record["lines"])
