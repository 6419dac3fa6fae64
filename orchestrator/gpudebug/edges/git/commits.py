"""What is in a commit, as `identify` sees a checkout of it, and the references there are. Reads only."""

from __future__ import annotations

from pathlib import Path

from gpudebug.edges.git.address import Address, find_at, looked

_HEX = frozenset("0123456789abcdef")


def entries_of(at: Address, revision: str) -> dict[bytes, bytes] | None:
    """Mode and blob of each path of the tree of `revision`; None if git does not have it."""
    listed = looked(at, "ls-tree", "-r", "-z", "--full-tree", revision)
    if listed is None:
        return None
    found = {}
    for line in listed.split(b"\0"):
        head, tab, path = line.partition(b"\t")
        if tab:
            mode, _kind, blob = head.split(b" ")
            found[path] = mode[:3] + b" " + blob
    return found


def base_of(top: Path, commit: str, *, patched: bool) -> dict[bytes, bytes] | None:
    """Return the entries of the commit that a trial's patch went onto: its own, or if `patched` its parent's.

    None if it is not there any more, or if `commit` is no name of a commit.
    """
    if not commit or not _HEX.issuperset(commit):
        return None
    return entries_of(find_at(top).at, f"{commit}^" if patched else commit)


def refs_below(at: Address, prefix: str) -> list[str]:
    """Return the names of the references that begin with `prefix` and a slash, or are it."""
    found = looked(at, "for-each-ref", "--format=%(refname)", prefix) or b""
    return [name.decode("utf-8", "surrogateescape") for name in found.split()]
