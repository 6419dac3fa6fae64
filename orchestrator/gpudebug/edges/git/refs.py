"""References of our own, below refs/gpudebug/: what keeps commits from being collected.

A git that is killed while it changes one leaves locks, which would stop the user's own git too. What was
asked is written down before, with the locks that were not there then: what of these is there afterwards is
taken away.

The label in a commit's message is a claim. Believed are the commit's name, recorded in git's common folder
when gpudebug made it, and the digest of what the commit holds.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gpudebug.core.errors import GitError
from gpudebug.core.text.values import short_digest
from gpudebug.edges import proc, removal
from gpudebug.edges.git import grounds
from gpudebug.edges.git.address import PATIENCE_S, Address, looked
from gpudebug.edges.git.checkout import Checkout, digest_of
from gpudebug.edges.git.grounds import PRIVATE, alone, failing
from gpudebug.edges.git.repository import Repository
from gpudebug.edges.host import boot_id, host_name

# Git holds the lock of a reference for milliseconds; packing all of them may take longer.
_STALE_S = 1.0
_POLL_S = 0.05
_ASKED = "ref.json"
# What git locks and writes beside the reference when it deletes one.
_OTHERS = ("packed-refs.lock", "packed-refs.new")
# Of the file system's clock: a lock may be made in the same tick as the note on it.
_TICK_S = 0.02
_COMMIT = re.compile(rb"[0-9a-f]{40,64}\n?")


def change(repository: Repository, ref: str, commit: str | None) -> None:
    """Point `ref` at a commit, or delete it. Locks that a killed git of ours left are taken away."""
    what = ("-d", refs_name(ref)) if commit is None else (refs_name(ref), commit)
    arguments = ("update-ref", *what)
    common, lock = repository.common, f"{ref}.lock"
    with grounds.private(common) as private, alone(common) as descriptor:
        # What could not be taken away yet, for a git is alive, is still noted.
        if _mend(common, private):
            _note(common, private, arguments, (lock, *_OTHERS))
        git = repository.keeping(descriptor)
        answer = git.ask(*arguments)
        if answer.status < 0:
            _mend(common, private)
            answer = git.ask(*arguments)
        if answer.status and str(common / lock) in answer.err:
            _wait_or_break(common, lock)
            answer = git.ask(*arguments)
        if answer.status and _drop_broken(common, ref):
            answer = git.ask(*arguments)
        _mend(common, private)
    if answer.status:
        raise repository.failure(answer.err)


def _drop_broken(common: Path, ref: str) -> bool:
    """Remove the file of a reference that holds no commit, as a power failure leaves it; whether it did."""
    *folders, last = refs_name(ref).split("/")
    # What is no file of ours is not taken for a broken one.
    with suppress(FileNotFoundError, GitError), removal.folder(common, *folders) as parent:
        found = removal.identity_at(parent, last)
        data = grounds.read_file(parent, last)
        if found is not None and data is not None and not _COMMIT.fullmatch(data):
            with failing("remove a broken reference", common / ref):
                removal.remove_file(parent, last, found)
            return True
    return False


def mend(repository: Repository) -> None:
    """Take away the locks that a killed git of ours left, if one was."""
    common = repository.common
    if os.path.lexists(common / grounds.PRIVATE / _ASKED):
        with grounds.private(common) as private, alone(common):
            _mend(common, private)


def _note(common: Path, private: int, arguments: tuple[str, ...], locks: tuple[str, ...]) -> None:
    absent = [lock for lock in locks if not os.path.lexists(common / lock)]
    note = {"asked": arguments, "absent": absent, "host": host_name(), "boot": boot_id()}
    with failing("write in git's folder", common):
        grounds.replace_file(private, _ASKED, json.dumps(note).encode())


def _mend(common: Path, private: int) -> bool:
    """Remove the locks of a git of ours that was killed; whether none is left. Alone: none of ours works.

    A lock is the killed one's if it was not there before, was made within the time that a git of ours may
    take, and no git that is alive could have made it.
    """
    data = grounds.read_file(private, _ASKED)
    if data is None:
        return True
    try:
        note = json.loads(data)
        absent = [str(name) for name in note["absent"]]
        began = os.stat(_ASKED, dir_fd=private, follow_symlinks=False).st_ctime
    except (ValueError, TypeError, KeyError, RecursionError):
        note, absent, began = {}, [], 0.0
    if _elsewhere(note) and time.time() < began + PATIENCE_S:
        # Which git is alive there cannot be seen from here.
        return False
    gone = True
    for name in absent:
        gone = _take_away(common, name, began) and gone
    if gone:
        with failing("write in git's folder", common):
            grounds.drop_file(private, _ASKED)
    return gone


def _elsewhere(note: dict[str, object]) -> bool:
    """Whether another host wrote a note: its name and its boot are others. Older notes are this one's."""
    return note.get("host", host_name()) != host_name() and note.get("boot") != boot_id()


def _take_away(common: Path, name: str, began: float) -> bool:
    """Remove a lock that was made since `began`; False if a git that is alive may have made it."""
    *folders, last = name.split("/")
    if name not in _OTHERS and not name.startswith(PREFIX):
        return True
    with suppress(FileNotFoundError), removal.folder(common, *folders) as parent:
        status = os.stat(last, dir_fd=parent, follow_symlinks=False)
        if not began - _TICK_S <= status.st_ctime <= began + PATIENCE_S:
            return True
        if _git_alive_since(status.st_ctime):
            return False
        with failing("remove the lock of a git that was killed", common / name):
            removal.remove_file(parent, last, removal.identity_of(status))
    return True


def _git_alive_since(moment: float) -> bool:
    """Tell whether a git runs on this machine that could have made a file at `moment`."""
    ticks, boot = os.sysconf("SC_CLK_TCK"), time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                text = proc.read_file(int(entry.name), "stat").decode("utf-8", "replace")
                name, _, rest = text.partition("(")[2].rpartition(")")
                fields = rest.split()
                started = boot + int(fields[19]) / ticks
                # A zombie holds nothing; a tenth of a second for what clocks and ticks round off.
                if name.startswith("git") and fields[0] not in "ZX" and started <= moment + 0.1:
                    return True
    return False


def _wait_or_break(common: Path, name: str) -> None:
    """Remove a lock that outlives any git that could hold it: no gpudebug does where this one is alone."""
    deadline = time.monotonic() + _STALE_S
    *folders, last = refs_name(name).split("/")
    with (
        failing("remove a stale lock", common / name),
        suppress(FileNotFoundError),
        removal.folder(common, *folders) as parent,
    ):
        while (found := removal.identity_at(parent, last)) is not None:
            if time.monotonic() > deadline:
                removal.remove_file(parent, last, found)
            time.sleep(_POLL_S)


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
