"""What is in a commit, as `identify` sees a checkout of it. Reads only."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gpudebug.edges.snapshot.address import find_at, looked

_HEX = frozenset("0123456789abcdef")


def base_of(top: Path, commit: str) -> Mapping[bytes, bytes] | None:
    """Mode and blob of each path of the commit that `commit` came from; None if it is not there any more."""
    if not commit or not _HEX.issuperset(commit):
        return None
    listed = looked(find_at(top).at, "ls-tree", "-r", "-z", "--full-tree", f"{commit}^")
    if listed is None:
        return None
    found = {}
    for line in listed.split(b"\0"):
        head, tab, path = line.partition(b"\t")
        if tab:
            mode, _kind, blob = head.split(b" ")
            found[path] = mode[:3] + b" " + blob
    return found
