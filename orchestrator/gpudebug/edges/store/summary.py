"""The summary of a campaign that `status` shows: written when a run is sealed, none of it evidence.

It lies in git's common folder, where no clone brings one. One line is the digest of what follows: a head, the
paths that it was made of, and a row each hypothesis. It counts as long as all of these paths are as they
were; a time of change, unlike the others, nobody sets back.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gpudebug.edges import opener
from gpudebug.edges.store.root import RUN_NAME, RUNS, private_folder

STATUS = "status"
_NAME = "summary.json"
_LONGEST = 256 << 20


class Summary(NamedTuple):
    """What a summary holds. `rows` is the JSON of a list; most of a long campaign's are never looked at."""

    head: dict[str, Any]
    files: list[str]
    rows: bytes

    def every_row(self) -> list[dict[str, object]]:
        found: list[dict[str, Any]] = json.loads(self.rows)
        return found


def path_of(root: Path, campaign: str) -> Path:
    """Return the summary of a campaign: several may share a runs/."""
    return private_folder(root) / STATUS / campaign / _NAME


def summaries(root: Path) -> list[Path]:
    """Return the summaries of all campaigns of a folder."""
    return sorted((private_folder(root) / STATUS).glob(f"*/{_NAME}"))


def encoded(head: dict[str, object], files: Sequence[str], rows: Sequence[dict[str, object]]) -> bytes:
    """Return the bytes of a summary."""
    body = b"\n".join(json.dumps(part).encode() for part in (head, files, rows))
    return hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def read_summary(path: Path) -> Summary | None:
    """Return a summary; None if there is none, or if it is not what gpudebug writes."""
    try:
        with opener.opened(path) as file:
            if os.fstat(file.fileno()).st_uid != os.geteuid():
                return None
            digest, _, body = opener.read(file, _LONGEST).partition(b"\n")
        if hashlib.sha256(body).hexdigest().encode() != digest:
            return None
        head, files, rows = body.split(b"\n")
        return Summary(json.loads(head), json.loads(files), rows)
    except (OSError, ValueError, RecursionError):
        return None


def run_names(root: Path) -> list[str]:
    """Return the names that a run folder may have in runs/, in an order of their own."""
    try:
        return sorted(name for name in os.listdir(root / RUNS) if RUN_NAME.match(name))
    except OSError:
        return []


def as_they_are(root: Path, files: Iterable[str]) -> str:
    """A digest of when these paths, below `root` or absolute, were changed last, and of their sizes."""
    base, found = f"{root}/", []
    for name in files:
        try:
            status = os.stat(name if name.startswith("/") else base + name)
            found.append(f"{status.st_ctime_ns} {status.st_size}")
        except OSError:
            found.append("missing")
    return hashlib.sha256("\n".join(found).encode()).hexdigest()
