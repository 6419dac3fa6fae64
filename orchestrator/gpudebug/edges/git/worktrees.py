"""Worktrees of our own: made at a commit, links in, marked; removed whole. Never one that is not ours."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from gpudebug.core.errors import GitError
from gpudebug.edges import removal
from gpudebug.edges.git import admin, grounds, journal, lfs, links, trees
from gpudebug.edges.git.address import Address
from gpudebug.edges.git.checkout import Checkout, differs, identify_at
from gpudebug.edges.git.journal import Journal, WorktreeRecord
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
    """A detached worktree of `commit` at `path`, with `links` (relative to `checkout`, or the top) linked in.

    What a kill left of an earlier attempt is taken away first; one that is complete and of the same commit
    is handed back as it is. If something else has its name it gets another one, which a note says.
    GitError if git cannot make one.
    """
    repository, _ = opened(top)
    path = _below(repository, top, path)
    with journal.held(repository.common, path) as ours:
        record = ours.read() or admin.adopted(repository, ours)
        if record is not None and record.state == "ready" and sound(repository, path, record):
            if record.commit != commit:
                raise GitError(
                    "a worktree of another commit is there",
                    file=str(record.at(path)),
                    next="remove it first",
                )
            return Worktree(record.at(path), record.notes, record.linked)
        left = admin.clear(repository.top, repository.common, path, record) if record is not None else []
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
        path = ours.path.with_name(_free_name(repository, ours.path, parent))
        token = secrets.token_hex(8)
        record = WorktreeRecord("making", token, commit, str(path), admin.new_id(path.name, token))
        ours.write(record)
        try:
            with grounds.failing("make a worktree", path):
                os.mkdir(path.name, dir_fd=parent)
            with grounds.opened(repository.top, path) as inside:
                record = replace(record, made=_new(inside, path), born=removal.born(inside))
                ours.write(record)
                record = admin.register(repository, record, ours, inside)
                ours.write(record)
                record = _filled(repository, record, linking, checkout, ours, inside)
            if grounds.identity(repository.top, path) != record.made:
                raise _lost(path, "was moved away while it was being made")
        except (GitError, removal.NotOurs):
            admin.clear(repository.top, repository.common, ours.path, record)
            ours.remove()
            raise
    if path != ours.path:
        left = (*left, f"{ours.path} is not gpudebug's: it was left there, and the worktree is {path}")
    record = replace(record, notes=(*left, *record.notes))
    ours.write(record)
    return Worktree(path, record.notes, record.linked)


def _new(inside: int, path: Path) -> removal.Identity:
    """Return the identity of a folder that was just made: nothing is in it, and it is ours."""
    status = os.fstat(inside)
    if os.listdir(inside) or status.st_uid != os.geteuid():
        raise _lost(path, "was replaced while it was being made")
    return removal.identity_of(status)


def _free_name(repository: Repository, path: Path, parent: int) -> str:
    """Return a name that no file has, nor a worktree that git knows: what is there is not ours to replace."""
    taken = {admin.path_of(folder) for folder in admin.folders(repository.common)}
    for number in range(1, _MOST_NAMES):
        name = path.name if number == 1 else f"{path.name}-{number}"
        if path.with_name(name) not in taken and removal.identity_at(parent, name) is None:
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
    path = record.at(ours.path)
    git = repository.keeping(ours.descriptor)
    within = Repository(admin.address_of(repository.common, record, path, inside), keep=(ours.descriptor,))
    _refuse_other_tree(within, inside, path)
    within.run("reset", "--hard", "--quiet")
    _check_out_present(git, within)
    notes = lfs.fetch_stored(within)
    admin.drop_locks(admin.folder_of(repository.common, record))
    linked, said = links.link_all(git, within.at.place, record.commit, linking, checkout)
    return replace(record, state="ready", linked=tuple(linked), notes=(*notes, *said))


def _refuse_other_tree(within: Repository, inside: int, path: Path) -> None:
    """Before anything is written: git takes the folder that gpudebug made for the work tree, and no other."""
    found = within.line("rev-parse", "--show-toplevel")
    try:
        same = removal.identity_of(os.stat(found)) == removal.identity_of(os.fstat(inside))
    except OSError:
        same = False
    if not same:
        raise _lost(path, f"git takes {found} for the worktree")


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
    common = repository.common
    named = path in journal.worktrees_of(common, path.parent)
    if not named and not os.path.lexists(path) and not _known(common, path):
        return []
    with journal.held(common, path) as ours:
        record = ours.read() or admin.adopted(repository, ours)
        if record is None:
            forget_gone(common, path)
            return []
        record = replace(record, state="removing")
        ours.write(record)
        left = admin.clear(repository.top, common, path, record)
        ours.remove()
        return left


def _known(common: Path, path: Path) -> bool:
    return any(admin.path_of(folder) == path for folder in admin.folders(common))


def forget_gone(common: Path, path: Path) -> bool:
    """Take git's folder of a worktree of ours away whose own folder and record are gone; whether it was."""
    gone = [
        folder
        for folder in admin.folders(common)
        if admin.mark_of(folder) is not None and admin.path_of(folder) == path and not os.path.lexists(path)
    ]
    for folder in gone:
        admin.remove(common, folder)
    return bool(gone)


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
    if record is None or record.state != "ready" or admin.proven(at.common, record) is None:
        raise GitError("is not a git worktree any more", file=str(path), next="gpudebug next, which mends it")
    place = record.at(path)
    with grounds.opened(at.top, place) as inside:
        yield admin.address_of(at.common, record, place, inside), record


def touched(at: Address, path: Path) -> bool | None:
    """Tell whether anything was changed in a worktree of ours since it was made; None if git cannot tell.

    Needs no gitpython.
    """
    with suppress(GitError, removal.NotOurs), looking(at, path) as (inside, record):
        return differs(inside, record.commit, record.linked)
    return None


def identify_worktree(
    at: Address, path: Path, exclude: Iterable[Path] = (), campaign: str | None = None
) -> Checkout:
    """As `identify`, of the worktree of ours that was asked for as `path`."""
    with looking(at, path) as (inside, record):
        return identify_at(inside, record.commit, exclude, campaign, owner=at.top)


def estranged(at: Address, path: Path) -> bool:
    """Whether the folder of a worktree of ours is another than gpudebug made: restored, or mounted again."""
    record = journal.peek(at.common, path)
    if record is None or record.state != "ready":
        return False
    with suppress(removal.NotOurs):
        return admin.is_made(at.top, record.at(path), record) is False
    return False


def sound(repository: Repository, path: Path, record: WorktreeRecord) -> bool:
    """Tell whether worktree and git's folder of it are there, ours, and know each other."""
    folder, place = admin.proven(repository.common, record), record.at(path)
    if folder is None or admin.path_of(folder) != place or not (folder / "index").exists():
        return False
    if not admin.is_made(repository.top, place, record):
        return False
    with grounds.opened(repository.top, place) as inside:
        return admin.points(folder, inside)


def _below(repository: Repository, top: Path, path: Path) -> Path:
    """Return the path of a worktree below the top as git writes it."""
    return repository.top / path.relative_to(top) if path.is_relative_to(top) else path
