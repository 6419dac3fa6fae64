"""Which code lies in the checkout. Reads only; HEAD, index and files are never touched."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from gpudebug.core.errors import GitError
from gpudebug.core.text.values import short_digest
from gpudebug.edges import opener
from gpudebug.edges.git.address import Address, answer, find, find_at, finish, looked, start

# Tracked paths with mode and blob, once more where they are changed (C) or deleted (R), and untracked ones.
# A path that git is set not to look at has a lower case tag (assume-unchanged) or S (skip-worktree).
_LISTED = ("-z", "-v", "--stage", "--cached", "--modified", "--deleted", "--others", "--exclude-standard")

_SUBMODULE = b"160"
_HEX = frozenset("0123456789abcdef")


@dataclass(frozen=True, slots=True)
class Checkout:
    """The code as it lies there: `tree` digests contents, so committing what was dirty changes nothing.

    `common` is the git folder that all worktrees of the repository share: nothing tracked can lie in it.
    `git_dir` is this work tree's own; `left_out` are the tracked paths that were not to be looked at.
    `below` are the counted files of submodules, of which `entries` has the tree.
    """

    top: Path
    commit: str
    tree: str
    entries: Mapping[bytes, bytes]
    common: Path
    git_dir: Path
    left_out: frozenset[bytes] = frozenset()
    below: frozenset[bytes] = frozenset()

    @property
    def at(self) -> Address:
        """Where git works for it."""
        return Address(self.top, self.git_dir, self.common)

    @property
    def files(self) -> frozenset[bytes]:
        """The counted paths, of submodules their files."""
        own = (path for path, content in self.entries.items() if not content.startswith(_SUBMODULE))
        return self.below.union(own)

    @property
    def private(self) -> Path:
        """Where gpudebug keeps what no clone, patch or tracked file may bring: `gpudebug/` in `common`."""
        return self.at.private

    def changed_since(self, before: Checkout) -> list[str]:
        """Return the paths whose content differs between two looks at one checkout."""
        paths = before.entries.keys() | self.entries.keys()
        return sorted(os.fsdecode(p) for p in paths if before.entries.get(p) != self.entries.get(p))


def top_folder(folder: Path) -> Path:
    """Return the top of the work tree that `folder` is in. GitError outside of one, or without a commit."""
    return _committed(folder)[0].top


def _committed(folder: Path) -> tuple[Address, str]:
    at, commit = find(folder)
    if commit is None:
        raise GitError(
            "the git repository has no commit yet",
            file=str(at.top),
            next="git add -A && git commit -m 'Start'",
        )
    return at, commit


def identify(folder: Path, exclude: Iterable[Path] = (), campaign: str | None = None) -> Checkout:
    """Digest the checkout around `folder`, leaving out the paths in `exclude` and all below them.

    In every folder with a tracked file of the name `campaign` that one and what is written beside it
    (`progress`, `hypotheses`, `runs`) are left out too: another campaign goes on while this one measures.

    Counted are the tracked files as they are now, and untracked Python files that lie beside tracked
    ones or at the top: what a training writes into the repository (outputs, checkpoints, copies of its
    own code in folders of their own) must not make its own baseline stale.
    """
    at, commit = _committed(folder)
    return identify_at(at, commit, exclude, campaign)


def identify_at(
    at: Address,
    commit: str,
    exclude: Iterable[Path] = (),
    campaign: str | None = None,
    *,
    owner: Path | None = None,
) -> Checkout:
    """As `identify`, of the work tree at `at`. `owner` is the checkout that a worktree of ours belongs to."""
    top, exclude = at.top, tuple(exclude)
    outside = _outside(top, exclude)
    listed = finish(start(at, "ls-files", *_LISTED), top)
    found = _read_listing(listed, outside)
    apart = found.apart
    theirs = _theirs(found.entries, campaign)
    if theirs:
        found = _read_listing(listed, _outside(top, (*exclude, *theirs)))
    entries = found.entries
    folders = {b""} | {path.rpartition(b"/")[0] for path in entries}
    beside = {p for p in found.untracked if p.endswith(b".py") and p.rpartition(b"/")[0] in folders}
    # Of these git believes its index; if there is none, as in a sparse checkout, so does the digest.
    unseen = {path for path in found.marked if os.path.lexists(at.place / os.fsdecode(path))}
    submodules = {path for path, content in entries.items() if content.startswith(_SUBMODULE)}
    below: set[bytes] = set()
    for path in submodules:
        entries[path], inside = _submodule(at, os.fsdecode(path), entries[path], owner)
        below |= {path + b"/" + file for file in inside}
    sha256 = any(len(content) > 64 for content in entries.values())
    for path in (found.changed | unseen | beside) - submodules:
        content = _content(at, os.fsdecode(path), sha256)
        if content is None:
            entries.pop(path, None)
        else:
            entries[path] = content
    return Checkout(top, commit, _digest(entries), entries, at.common, at.git_dir, apart, frozenset(below))


def digest_of(
    at: Address,
    commit: str,
    exclude: Iterable[Path] = (),
    campaign: str | None = None,
    uncounted: Collection[bytes] = (),
) -> str | None:
    """Digest the tree of a commit as `identify` does a checkout of it, with the submodules as they are now.

    Left out are `uncounted` paths too: untracked files that were committed, which `identify` does not count.
    None if an object is missing, or if one of these is a Python file that it does count.
    """
    found = entries_of(at, commit)
    if found is None:
        return None
    exclude = tuple(exclude)
    outside = _outside(at.top, exclude)
    theirs = _theirs(filter(outside, found), campaign)
    outside = _outside(at.top, (*exclude, *theirs))
    entries = {path: entry for path, entry in found.items() if outside(path)}
    left = [entries.pop(path) and path for path in uncounted if path in entries]
    folders = {b""} | {path.rpartition(b"/")[0] for path in entries}
    if any(path.endswith(b".py") and path.rpartition(b"/")[0] in folders for path in left):
        return None
    return _digest(_with_submodules(at, entries))


def _with_submodules(at: Address, entries: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """Return the entries of a commit with the submodules as they are now."""
    return {
        path: _submodule(at, os.fsdecode(path), entry, None)[0] if entry.startswith(_SUBMODULE) else entry
        for path, entry in entries.items()
    }


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

    Submodules are as they are now. None if it is not there any more, or if `commit` is no name of a commit.
    """
    if not commit or not _HEX.issuperset(commit):
        return None
    at = find_at(top).at
    found = entries_of(at, f"{commit}^" if patched else commit)
    return None if found is None else _with_submodules(at, found)


def refs_below(at: Address, prefix: str) -> list[str]:
    """Return the names of the references that begin with `prefix` and a slash, or are it."""
    found = looked(at, "for-each-ref", "--format=%(refname)", prefix) or b""
    return [name.decode("utf-8", "surrogateescape") for name in found.split()]


def tracks(at: Address, path: Path) -> bool:
    """Tell whether git tracks a file, or one in a folder."""
    return bool(looked(at, "ls-files", "-z", "--", os.path.relpath(path, at.top)))


def _digest(entries: Mapping[bytes, bytes]) -> str:
    return short_digest(b"".join(path + b"\0" + entries[path] + b"\0" for path in sorted(entries)))


def _outside(top: Path, exclude: Iterable[Path]) -> Callable[[bytes], bool]:
    """Return a predicate: is a path, relative to the top, outside of everything excluded?"""
    prefixes = []
    for path in exclude:
        absolute = path if path.is_absolute() else top / path
        if absolute.is_relative_to(top):
            prefixes.append(os.fsencode(absolute.relative_to(top)))

    def outside(path: bytes) -> bool:
        return not any(path == p or path.startswith(p + b"/") for p in prefixes)

    return outside


def _theirs(entries: Iterable[bytes], campaign: str | None) -> list[Path]:
    """Return what belongs to the campaigns of other folders, relative to the top."""
    if campaign is None:
        return []
    end = os.fsencode(campaign)
    found = [Path(os.fsdecode(path)) for path in entries if path.endswith(end)]
    owners = [path.parent for path in found if path.name == campaign]
    return [owner / name for owner in owners for name in (campaign, "progress", "hypotheses", "runs")]


class _Listing(NamedTuple):
    """Mode and blob of every tracked path as the index has it, `changed` tracked paths, `marked` ones that
    git is set not to look at, `untracked` paths; `apart` are the tracked ones that are not outside."""

    entries: dict[bytes, bytes]
    changed: set[bytes]
    marked: set[bytes]
    untracked: set[bytes]
    apart: frozenset[bytes]


def _read_listing(listing: bytes, outside: Callable[[bytes], bool]) -> _Listing:
    entries: dict[bytes, bytes] = {}
    changed: set[bytes] = set()
    marked: set[bytes] = set()
    untracked: set[bytes] = set()
    apart: set[bytes] = set()
    for line in listing.split(b"\0"):
        tag, _, rest = line.partition(b" ")
        if tag == b"?":
            untracked.add(rest)
            continue
        head, tab, path = rest.partition(b"\t")
        if not tab:
            continue
        if not outside(path):
            apart.add(path)
            continue
        if tag.upper() in (b"C", b"R"):
            changed.add(path)
        elif tag == b"S" or tag.islower():
            marked.add(path)
        mode, blob, _stage = head.split(b" ")
        entries[path] = mode[:3] + b" " + blob
    return _Listing(entries, changed, marked, {p for p in untracked if outside(p)}, frozenset(apart))


def _submodule(at: Address, path: str, pinned: bytes, owner: Path | None) -> tuple[bytes, frozenset[bytes]]:
    """Return the tree of a submodule as it lies there, and its files; the commit that is pinned if it is not
    checked out.

    A git folder that is not the repository's own is not asked: its configuration could start programs.
    """
    folder = at.place / path
    if not os.path.lexists(folder / ".git"):
        return pinned, frozenset()
    place = Path(os.path.realpath(folder))
    if owner is not None and place != Path(os.path.realpath(owner / path)):
        return _SUBMODULE + b" another folder than the checkout's", frozenset()
    found, commit = find_at(place)
    git_dir = Path(os.path.realpath(found.git_dir))
    if not git_dir.is_relative_to(os.path.realpath(at.common)) and git_dir != place / ".git":
        raise GitError(
            f"the submodule's git folder, {git_dir}, is not part of the repository's",
            file=str(at.top / path),
            next="git submodule absorbgitdirs, or git submodule update --init",
        )
    if commit is None:
        raise GitError(
            "the submodule has no commit yet", file=str(at.top / path), next="git submodule update --init"
        )
    inside = identify_at(found, commit)
    return _SUBMODULE + b" " + inside.tree.encode(), inside.files


def _content(at: Address, name: str, sha256: bool) -> bytes | None:
    """Kind and git blob of a changed file, so that a commit of the same bytes digests the same."""
    path, shown = at.place / name, str(at.top / name)
    try:
        if path.is_symlink():
            target = os.fsencode(os.readlink(path))
            return b"120 " + _blob(sha256, len(target), io.BytesIO(target))
        if path.is_dir():
            return None
        with opener.opened(path) as file:
            status = os.fstat(file.fileno())
            if opener.is_hole(status):
                raise GitError(
                    "a tracked file is huge by now, and nearly nothing is in it",
                    file=shown,
                    next="put it back",
                )
            return b"100 " + _blob(sha256, status.st_size, file)
    except FileNotFoundError:
        return None
    except opener.NotRegular:
        raise GitError(
            "a tracked file is not a regular file any more", file=shown, next="put it back"
        ) from None
    except OSError as e:
        raise GitError(f"cannot read a changed file: {e.strerror}", file=shown, next="mend it") from None


def _blob(sha256: bool, size: int, file: BinaryIO) -> bytes:
    """Return the name that git gives to `size` bytes of a file."""
    import hashlib

    made = hashlib.new("sha256" if sha256 else "sha1", b"blob %d\0" % size, usedforsecurity=False)
    while size > 0 and (part := file.read(min(size, 1 << 20))):
        made.update(part)
        size -= len(part)
    return made.hexdigest().encode()


def differs(at: Address, commit: str, borrowed: Iterable[str] = ()) -> bool | None:
    """Tell whether anything but `borrowed` paths is changed or new in a worktree; None if git cannot tell.

    What is ignored is not looked at, nor what submodules hold.
    """
    others = [f":(top,literal,exclude){path}" for path in borrowed]
    # In a submodule git would ask the git folder that lies there.
    plain = ("--no-ext-diff", "--no-textconv", "--ignore-submodules=all")
    # Files whose times alone are new have no line here, though the index is not refreshed.
    changed = looked(at, "diff", "--numstat", *plain, commit, "--", ".", *others)
    if changed is None or changed:
        return None if changed is None else True
    new = looked(at, "ls-files", "-z", "--others", "--exclude-standard", "--", ".", *others)
    return None if new is None else bool(new)


def ignores(folder: Path, path: str) -> bool:
    """Tell whether git ignores `path`, relative to `folder`."""
    process = start(find(folder).at, "check-ignore", "--quiet", "--", str(folder.resolve() / path))
    answer(process, folder)
    return process.returncode == 0


def create(folder: Path, message: str) -> None:
    """A new repository with all that lies in `folder` as its first commit (for the demo)."""
    folder = folder.resolve()
    at = Address(folder, folder / ".git", folder / ".git")
    user = ("-c", "user.name=gpudebug", "-c", "user.email=gpudebug@localhost", "-c", "commit.gpgsign=false")
    for arguments in (
        ("init", "--quiet"),
        ("add", "--all"),
        (*user, "commit", "--quiet", "--message", message),
    ):
        finish(start(at, *arguments), folder)
