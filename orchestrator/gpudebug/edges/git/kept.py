"""Whether the commit under a reference of ours is the one that gpudebug made for the tree of its label.

The label in a commit's message is a claim. Believed are the commit's name, recorded in git's common folder
when gpudebug made it, and the digest of what the commit holds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gpudebug.core.text.values import short_digest
from gpudebug.edges.git import grounds
from gpudebug.edges.git.address import Address, looked
from gpudebug.edges.git.checkout import Checkout, digest_of
from gpudebug.edges.git.grounds import PRIVATE, failing

PREFIX = "refs/gpudebug/"
_PLACE = "bases"


@dataclass(frozen=True, slots=True)
class MeasuredTree:
    """What of a tree is counted: all but `exclude` and what `campaign` names (see `identify`)."""

    exclude: tuple[Path, ...]
    campaign: str | None = None


def refs_name(ref: str) -> str:
    if not ref.startswith(PREFIX):
        raise ValueError(f"{ref} is not below {PREFIX}")
    return ref


def _file(ref: str) -> str:
    return f"{short_digest(os.fsencode(refs_name(ref)))}.json"


def vouch(checkout: Checkout, ref: str, commit: str, measured: MeasuredTree) -> None:
    """Record that gpudebug made `commit` of `checkout` for `ref`: what of it is not counted, and whether the
    rest digests as the checkout does. Not with submodules, which may change, or a filter on a changed file.
    """
    at = checkout.at
    listed = looked(at, "ls-tree", "-r", "-z", "--full-tree", "--name-only", commit) or b""
    apart = [path for path in listed.split(b"\0") if path and path not in checkout.entries]
    digest = digest_of(at, commit, measured.exclude, measured.campaign, apart)
    submodules = any(entry.startswith(b"160") for entry in checkout.entries.values())
    facts = {
        "ref": ref,
        "commit": commit,
        "tree": checkout.tree,
        "uncounted": [os.fsdecode(path) for path in apart],
        "digests": digest == checkout.tree and not submodules,
    }
    place = at.common / PRIVATE / _PLACE
    with grounds.private(at.common, _PLACE) as folder, failing("record the campaign's base", place):
        grounds.replace_file(folder, _file(ref), json.dumps(facts).encode())


def trusted(at: Address, ref: str, commit: str, tree: str, measured: MeasuredTree) -> bool | None:
    """Tell whether `commit` holds the tree `tree`: False if it is another commit than was recorded for `ref`,
    or holds another tree. None if nothing was recorded (as by 0.1.0) and its digest does not prove it.
    """
    data = grounds.read_file(at.common / PRIVATE / _PLACE, _file(ref))
    if data is None:
        return _proven(at, commit, tree, measured) or None
    try:
        facts = json.loads(data)
        known, apart = (facts["commit"], facts["tree"]), [os.fsencode(str(p)) for p in facts["uncounted"]]
        digests = bool(facts["digests"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return False
    if known != (commit, tree):
        return False
    return not digests or digest_of(at, commit, measured.exclude, measured.campaign, apart) == tree


def _proven(at: Address, commit: str, tree: str, measured: MeasuredTree) -> bool:
    """Tell whether the digest of a commit is its label, also without the files that its parent has not."""
    if digest_of(at, commit, measured.exclude, measured.campaign) == tree:
        return True
    added = looked(at, "diff-tree", "-r", "-z", "--name-only", "--diff-filter=A", f"{commit}^", commit) or b""
    return digest_of(at, commit, measured.exclude, measured.campaign, _uncounted(added.split(b"\0"))) == tree


def _uncounted(added: Iterable[bytes]) -> list[bytes]:
    return [path for path in added if path and not path.endswith(b".py")]


def drop(common: Path, ref: str) -> None:
    """Forget what was recorded for a reference that is gone."""
    place = common / PRIVATE / _PLACE
    if os.path.lexists(place / _file(ref)):
        with grounds.private(common, _PLACE) as folder, failing("forget the campaign's base", place):
            grounds.drop_file(folder, _file(ref))
