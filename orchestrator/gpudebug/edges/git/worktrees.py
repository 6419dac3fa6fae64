"""Worktrees of our own: made at a commit, links in, recorded; mended after a kill; removed whole.

Git works in them by the user's repository and an index of gpudebug's, and leaves nothing there. Never one
that is not ours.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from gpudebug.core.errors import BusyError, GitError
from gpudebug.edges import removal
from gpudebug.edges.git import clones, grounds, journal, refs, trees
from gpudebug.edges.git.address import Address
from gpudebug.edges.git.checkout import Checkout, differs, identify_at
from gpudebug.edges.git.grounds import alone, failing
from gpudebug.edges.git.journal import Journal, WorktreeRecord
from gpudebug.edges.git.links import fingerprint, link_all, linked_changes
from gpudebug.edges.git.repository import Repository, opened

_MOST_NAMES = 1000


@dataclass(frozen=True, slots=True)
class Worktree:
    """A worktree of ours. `linked`: paths in it (relative, posix) that are links to the checkout's."""

    path: Path
    notes: tuple[str, ...] = ()
    linked: tuple[str, ...] = ()


def add_worktree(
    top: Path, path: Path, commit: str, *, links: Sequence[str] = (), checkout: Path | None = None
) -> Worktree:
    """A worktree of `commit` at `path`, with `links` (relative to `checkout`, or the top) linked in.

    What a kill left of an earlier attempt is taken away first; one that is complete and of the same commit
    is handed back as it is. If something else has its name it gets another one, which a note says.
    GitError if git cannot make one.
    """
    repository, _ = opened(top)
    path = _below(repository, top, path)
    with journal.held(repository.common, path) as ours:
        record = ours.read()
        if record is not None and record.state == "ready" and _is_made(repository, ours, record):
            if record.commit != commit:
                raise GitError(
                    "a worktree of another commit is there",
                    file=str(record.at(path)),
                    next="remove it first",
                )
            return Worktree(record.at(path), record.notes, record.linked)
        left = _cleared(repository, ours, record) if record is not None else []
        return _made(repository, commit, links, checkout or repository.top, ours, left)


def _made(
    repository: Repository,
    commit: str,
    linking: Sequence[str],
    checkout: Path,
    ours: Journal,
    left: Sequence[str],
) -> Worktree:
    with grounds.folder_of(repository.top, ours.path, make=True) as parent:
        path = ours.path.with_name(_free_name(ours.path, parent))
        record = WorktreeRecord("making", commit, str(path))
        ours.write(record)
        try:
            with failing("make a worktree", path):
                os.mkdir(path.name, dir_fd=parent)
            with grounds.opened(repository.top, path) as inside:
                record = replace(record, made=_new(inside, path), born=removal.born(inside))
                ours.write(record)
                record = _filled(repository, record, linking, checkout, ours, inside)
            if grounds.identity(repository.top, path) != record.made:
                raise _lost(path, "was moved away while it was being made")
        except (GitError, removal.NotOurs):
            _cleared(repository, ours, record)
            raise
    if path != ours.path:
        left = (*left, f"{ours.path} is not gpudebug's: it was left there, and the worktree is {path}")
    record = replace(record, notes=(*left, *record.notes))
    if record.linked:
        ours.put_beside(json.dumps(fingerprint(repository.top, record.linked)._asdict()).encode())
    ours.write(record)
    return Worktree(path, record.notes, record.linked)


def _new(inside: int, path: Path) -> removal.Identity:
    """Return the identity of a folder that was just made: nothing is in it, and it is ours."""
    status = os.fstat(inside)
    if os.listdir(inside) or status.st_uid != os.geteuid():
        raise _lost(path, "was replaced while it was being made")
    return removal.identity_of(status)


def _free_name(path: Path, parent: int) -> str:
    """Return a name that no file has: what is there is not ours to replace."""
    for number in range(1, _MOST_NAMES):
        name = path.name if number == 1 else f"{path.name}-{number}"
        if removal.identity_at(parent, name) is None:
            return name
    raise GitError("is in the way of a worktree", file=str(path), next="move it away")


def _filled(
    repository: Repository,
    record: WorktreeRecord,
    linking: Sequence[str],
    checkout: Path,
    ours: Journal,
    inside: int,
) -> WorktreeRecord:
    git = repository.keeping(ours.descriptor)
    at = _address(repository.at, ours.path, record, inside)
    within = Repository(at, keep=(ours.descriptor,))
    clones.make(at, record.commit)
    within.run("read-tree", "--reset", "-u", record.commit)
    _check_out_present(git, within)
    notes = clones.fetch_stored(within)
    clones.give_index(at)
    linked, said = link_all(git, at.place, record.commit, linking, checkout)
    return replace(record, state="ready", linked=tuple(linked), notes=(*notes, *said))


def _address(at: Address, path: Path, record: WorktreeRecord, inside: int) -> Address:
    """Where git works for a worktree of ours: by the user's git folder and an index of ours, never by what
    is in the worktree, where any training may write."""
    index = journal.index_of(at.common, path, record)
    return Address(record.at(path), at.git_dir, at.common, inside, index)


def _lost(path: Path, why: str) -> GitError:
    return GitError(why, file=str(path), next="run the same command again")


def _check_out_present(checkout: Repository, inside: Repository) -> None:
    """In a sparse checkout git leaves out of the worktree what the patterns do, but not the user."""
    skipped = [name[2:] for name in inside.names("ls-files", "-z", "-t") if name.startswith(b"S ")]
    present = [name for name in skipped if os.path.lexists(checkout.top / os.fsdecode(name))]
    if present:
        inside.run("update-index", "--no-skip-worktree", "-z", "--stdin", data=trees.listed(present))
        inside.run("checkout-index", "--force", "-u", "-z", "--stdin", data=trees.listed(present))


def remove_worktree(top: Path, path: Path) -> list[str]:
    """Take a worktree of ours away, as much of it as is there; a line on what stays, as it is not ours."""
    repository, _ = opened(top)
    path = _below(repository, top, path)
    if path not in journal.worktrees_of(repository.common, path.parent):
        return []
    with journal.held(repository.common, path) as ours:
        record = ours.read()
        if record is None:
            return []
        ours.write(replace(record, state="removing"))
        return _cleared(repository, ours, record)


def _cleared(repository: Repository, ours: Journal, record: WorktreeRecord) -> list[str]:
    """Take away what there is of a worktree of ours, its record last; a line on what is not proven ours.

    What its links lead to stays.
    """
    path, left = record.at(ours.path), []
    with (
        failing("remove a worktree", path),
        suppress(FileNotFoundError),
        grounds.folder_of(repository.top, path) as parent,
    ):
        if record.made is None:
            # Made, and killed before it was recorded: then it is empty.
            removal.remove_empty(parent, path.name)
        elif _is_made(repository, ours, record):
            removal.remove_folder(parent, path.name, record.made)
        elif removal.identity_at(parent, path.name) is not None:
            why = f"{path} is not the folder that gpudebug made (device, inode or birth differ): it stays"
            left = [f"{ours.path.name}: {why}"]
    _unlink(repository.common, record)
    ours.remove()
    return left


def _is_made(repository: Repository, ours: Journal, record: WorktreeRecord) -> bool | None:
    return is_made(repository.top, record.at(ours.path), record)


def is_made(top: Path, path: Path, record: WorktreeRecord) -> bool | None:
    """Tell whether the folder at `path` is the one that gpudebug made; None if nothing is there.

    A file system hands out the inode of what was removed again: where it records the time of birth, that must
    be the same. removal.NotOurs if a link leads there.
    """
    found = grounds.identity(top, path)
    if found is None:
        return None
    if found != record.made:
        return False
    try:
        with grounds.opened(top, path) as inside:
            same = removal.identity_of(os.fstat(inside)) == record.made
            born = None if record.born is None else removal.born(inside)
    except GitError:
        return False
    return same and (born is None or born == record.born)


def repair(top: Path, folder: Path, written: Callable[[str], bool] = lambda name: False) -> list[str]:
    """Mend or take away the worktrees of ours in `folder` that are not whole; a line for each.

    One that was half-made or half-removed is taken away. One of a name in which files are `written` is given
    its own repository again if that is gone; if git has lost its commit, it is left to its user. What another
    command is at work on stays, as do those that are not ours. Locks that a killed git of ours left go too.
    """
    repository, _ = opened(top)
    refs.mend(repository)
    lines = []
    for path in journal.worktrees_of(repository.common, folder):
        try:
            with journal.held(repository.common, path, patience=0) as ours:
                lines += _mended(repository, ours, written(path.name))
        except BusyError:
            continue
    return lines


def _mended(repository: Repository, ours: Journal, keep: bool) -> list[str]:
    record, name = ours.read(), ours.path.name
    if record is None:
        return []
    made = _is_made(repository, ours, record) if record.state == "ready" else True
    if not made or record.state != "ready":
        line = "its folder was deleted; the worktree is forgotten" if made is None else ""
        if record.state != "ready":
            line = f"was left half-{'made' if record.state == 'making' else 'removed'}; it is removed"
        return _cleared(repository, ours, record) or ([f"{name}: {line}"] if line else [])
    if not keep:
        return []
    if repository.ask("cat-file", "-e", f"{record.commit}^{{commit}}").status:
        _unlink(repository.common, record)
        ours.remove()
        return [
            f"{name}: git has lost the commit that it was made of, so it is no worktree any more; "
            f"{record.at(ours.path)} stays as it is"
        ]
    return _given_its_own(repository, ours, record)


def _given_its_own(repository: Repository, ours: Journal, record: WorktreeRecord) -> list[str]:
    """Give a worktree a repository of its own again; a linked one for the first time. Each step may be done
    twice."""
    place = record.at(ours.path)
    with grounds.opened(repository.top, place) as inside:
        if clones.is_there(inside) and not record.mending:
            return []
        ours.write(replace(record, mending=True))
        linked = journal.index_of(repository.common, ours.path, record)
        if linked != ours.index:
            with failing("copy the git index", linked), suppress(FileNotFoundError):
                shutil.copyfile(linked, ours.index)
        clones.drop(inside)
        at = _address(repository.at, ours.path, replace(record, id=""), inside)
        clones.make(at, record.commit)
        clones.give_index(at)
    _unlink(repository.common, record)
    ours.write(replace(record, mending=False, id="", admin=None))
    if record.id:
        return []
    return [f"{ours.path.name}: its own git repository was gone or led elsewhere; it is made again"]


def _unlink(common: Path, record: WorktreeRecord) -> None:
    """Take git's folder of a linked worktree away, if it is the one that an earlier version had git make."""
    if not record.id:
        return
    with (
        alone(common),
        failing("remove git's folder of a worktree", common / "worktrees" / record.id),
        suppress(FileNotFoundError),
        removal.folder(common, "worktrees") as parent,
    ):
        found = removal.identity_at(parent, record.id)
        # Before its identity was recorded, its random name was.
        if found is not None and record.admin in (None, found):
            removal.remove_folder(parent, record.id, found)
    with grounds.private(common) as private, removal.folder(common) as folder:
        removal.remove_empty(private, "staging")
        removal.remove_empty(folder, "worktrees")


def place_of(at: Address, path: Path) -> Path:
    """Return where the worktree is that was asked for as `path`: it has another name where that was taken."""
    record = journal.peek(at.common, path)
    return path if record is None else record.at(path)


def worktrees_in(at: Address, folder: Path) -> list[Path]:
    """Return the whole worktrees of ours that were asked for in `folder`."""
    return [path for path in journal.worktrees_of(at.common, folder) if began_with(at, path) is not None]


def began_with(at: Address, path: Path) -> str | None:
    """Return the commit that a worktree of ours was made at; None if there is no whole one for `path`."""
    record = journal.peek(at.common, path)
    if record is None or record.state != "ready" or not os.path.lexists(record.at(path)):
        return None
    return record.commit


@contextmanager
def looking(at: Address, path: Path) -> Iterator[tuple[Address, WorktreeRecord]]:
    """A whole worktree of ours, open for git to look at, and its record. GitError if there is none."""
    record = journal.peek(at.common, path)
    if record is None or record.state != "ready":
        raise GitError("is not a git worktree any more", file=str(path), next="gpudebug next, which mends it")
    with grounds.opened(at.top, record.at(path)) as inside:
        yield _address(at, path, record, inside), record


def touched(at: Address, path: Path) -> bool | None:
    """Tell whether anything was changed in a worktree of ours since it was made; None if git cannot tell."""
    with suppress(GitError, removal.NotOurs), looking(at, path) as (inside, record):
        return differs(inside, record.commit, record.linked)
    return None


def identify_worktree(
    at: Address, path: Path, exclude: Iterable[Path] = (), campaign: str | None = None
) -> Checkout:
    """As `identify`, of the worktree of ours that was asked for as `path`."""
    with looking(at, path) as (inside, record):
        return identify_at(inside, record.commit, exclude, campaign, owner=at.top)


def changed_in_links(at: Address, path: Path) -> list[str]:
    """Return the linked files that changed since a worktree of ours was made, the first of them named."""
    record, seen = journal.peek(at.common, path), journal.read_beside(at.common, path)
    return [] if record is None or seen is None else linked_changes(at.top, record.linked, seen)


def estranged(at: Address, path: Path) -> bool:
    """Whether the folder of a worktree of ours is another than gpudebug made: restored, or mounted again."""
    with suppress(removal.NotOurs):
        return _as_made(at, path) is False
    return False


def stands(at: Address, path: Path) -> bool:
    """Tell whether the folder of a worktree of ours is there as gpudebug made it."""
    with suppress(removal.NotOurs):
        return _as_made(at, path) is True
    return False


def _as_made(at: Address, path: Path) -> bool | None:
    record = journal.peek(at.common, path)
    return None if record is None or record.state != "ready" else is_made(at.top, record.at(path), record)


def _below(repository: Repository, top: Path, path: Path) -> Path:
    """Return the path of a worktree below the top as git writes it."""
    return repository.top / path.relative_to(top) if path.is_relative_to(top) else path
