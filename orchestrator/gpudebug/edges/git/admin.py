"""Git's own folder of a worktree, `worktrees/<id>`: making it, whose it is, and taking it away."""

from __future__ import annotations

import json
import os
import re
import secrets
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from gpudebug.core.errors import GitError
from gpudebug.edges import removal
from gpudebug.edges.git import grounds
from gpudebug.edges.git.address import Address
from gpudebug.edges.git.grounds import PRIVATE, alone, failing
from gpudebug.edges.git.journal import Journal, WorktreeRecord
from gpudebug.edges.git.repository import Repository
from gpudebug.edges.removal import Identity
from gpudebug.edges.walk import walk

MARK = "gpudebug"
_STAGING = "staging"
_COMMIT = re.compile(r"[0-9a-f]{40,64}")


@dataclass(frozen=True, slots=True)
class WorktreeMark:
    """What says in git's folder of a worktree that it is ours, and as what it was asked for.

    0.1.0 wrote neither `asked`, which is the name of the path then, nor `made`.
    """

    token: str
    path: str
    made: Identity | None = None
    asked: str = ""
    born: int | None = None


def folders(common: Path) -> list[Path]:
    place = common / "worktrees"
    return sorted(p for p in place.iterdir() if p.is_dir()) if place.is_dir() else []


def folder_of(common: Path, record: WorktreeRecord) -> Path:
    return common / "worktrees" / record.id


def address_of(common: Path, record: WorktreeRecord, path: Path, descriptor: int) -> Address:
    """Where git works for a worktree of ours: never by the .git file in it, which any training may write."""
    return Address(path, folder_of(common, record), common, descriptor)


def mark(folder: Path, record: WorktreeRecord, asked: str) -> None:
    """Say in git's folder of a worktree that it is ours, asked for under the name `asked`."""
    facts = {
        "token": record.token,
        "path": record.path,
        "asked": asked,
        "made": record.made,
        "born": record.born,
    }
    with failing("mark a worktree", folder), removal.folder(folder) as opened:
        grounds.replace_file(opened, MARK, json.dumps(facts).encode())


def mark_of(folder: Path) -> WorktreeMark | None:
    """Return the mark of a worktree that is ours; None for any other."""
    try:
        facts = json.loads((folder / MARK).read_bytes())
        made, born, path = facts.get("made"), facts.get("born"), str(facts["path"])
        found = WorktreeMark(
            facts["token"],
            path,
            Identity(*map(int, made)) if made else None,
            _name(facts.get("asked") or Path(path).name),
            None if born is None else int(born),
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return found if isinstance(found.token, str) and re.fullmatch(r"[0-9a-f]{16}", found.token) else None


def _name(asked: str) -> str:
    """Check a name of a file in a folder. ValueError if it is not one."""
    if asked in ("", ".", "..") or "/" in asked or "\0" in asked:
        raise ValueError(asked)
    return asked


def path_of(folder: Path) -> Path | None:
    """Return the worktree of git's folder; None if it does not name one (yet)."""
    try:
        named = (folder / "gitdir").read_bytes().rstrip(b"\n")
    except OSError:
        return None
    # Newer versions of git may write it relative to the folder.
    return Path(os.path.normpath(folder / os.fsdecode(named))).parent if named else None


def proven(common: Path, record: WorktreeRecord) -> Path | None:
    """Git's folder of the worktree of `record`, if it is there and is ours; None otherwise.

    Ours is what has the identity or the token that were recorded. Before these are there, the random name
    is: it was recorded before git made the folder.
    """
    folder = folder_of(common, record)
    try:
        found = removal.identity_of(os.stat(folder, follow_symlinks=False))
    except FileNotFoundError:
        return None
    known = mark_of(folder)
    ours = found == record.admin or (known is not None and known.token == record.token)
    begun = record.state == "making" and known is None and folder.name.endswith(record.token)
    return folder if ours or begun else None


def new_id(name: str, token: str) -> str:
    """Return a name for git's folder of a worktree that no other has: git keeps it as it is."""
    return f"{re.sub('[^A-Za-z0-9]+', '-', name)[:30].strip('-') or 'worktree'}-{token}"


def renewed(record: WorktreeRecord) -> WorktreeRecord:
    """Return the record of the same worktree before git knows it again."""
    token = secrets.token_hex(8)
    return replace(record, token=token, id=new_id(Path(record.path).name, token), admin=None)


def register(repository: Repository, record: WorktreeRecord, ours: Journal, inside: int) -> WorktreeRecord:
    """Let git make its folder of the worktree that is open as `inside`, and say there whose it is.

    Git makes it for a place of gpudebug's own, so that it follows no path that others may change.
    """
    common, path = repository.common, record.at(ours.path)
    # Git reads the others' folders while it makes one, and fails at one that is half-written.
    with grounds.private(common, _STAGING) as staging, alone(common) as descriptor:
        git = repository.keeping(ours.descriptor, descriptor)
        place = common / PRIVATE / _STAGING / record.id
        git.run("worktree", "add", "--detach", "--no-checkout", str(place), record.commit)
        folder = folder_of(common, record)
        made = removal.identity_of(os.stat(folder, follow_symlinks=False)) if folder.is_dir() else None
        if made is None:
            raise GitError(
                "git did not register the worktree", file=str(path), next="see `git worktree list`"
            )
        record = replace(record, admin=made)
        mark(folder, record, ours.path.name)
        point(record, folder, path, inside)
        _drop_staging(staging, record)
    return record


def point(record: WorktreeRecord, folder: Path, path: Path, inside: int) -> None:
    """Let the worktree's .git file and git's folder of it name each other."""
    with failing("register a worktree", path):
        point_file(folder, inside)
        with removal.folder(folder) as opened:
            grounds.replace_file(opened, "gitdir", os.fsencode(path / ".git") + b"\n")


def point_file(folder: Path, inside: int) -> None:
    """Write the .git file of the worktree that is open as `inside`; what replaces it is not written to."""
    found = removal.identity_at(inside, ".git")
    if found is not None:
        removal.remove_file(inside, ".git", found)
    grounds.write_file(inside, ".git", b"gitdir: " + os.fsencode(folder) + b"\n")


def points(folder: Path, inside: int) -> bool:
    """Tell whether the .git file of a worktree names git's folder of it."""
    try:
        descriptor = os.open(".git", grounds.READING, dir_fd=inside)
    except OSError:
        return False
    try:
        named = os.read(descriptor, 2**16)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return Path(os.fsdecode(named.removeprefix(b"gitdir:").strip())) == folder


def clear(top: Path, common: Path, path: Path, record: WorktreeRecord) -> list[str]:
    """Take away what there is of a worktree of ours: what is proven ours, and a line on what is not.

    What its links lead to stays.
    """
    path = record.at(path)
    left = _clear_folder(top, path, record)
    folder = proven(common, record)
    if folder is not None and left and _is_worktree(top, path, folder):
        disown(folder)
    elif folder is not None:
        remove(common, folder)
    with grounds.private(common, _STAGING) as staging:
        _drop_staging(staging, record)
    return [f"{path.name}: {left}"] if left else []


def _clear_folder(top: Path, path: Path, record: WorktreeRecord) -> str | None:
    """Remove the worktree's folder, if it is the one that gpudebug made; why it stays otherwise."""
    with (
        failing("remove a worktree", path),
        suppress(FileNotFoundError),
        grounds.folder_of(top, path) as parent,
    ):
        if record.made is None:
            # Made, and killed before it was recorded: then it is empty.
            removal.remove_empty(parent, path.name)
        elif is_made(top, path, record):
            removal.remove_folder(parent, path.name, record.made)
        elif removal.identity_at(parent, path.name) is not None:
            return f"{path} is not the folder that gpudebug made (device, inode or birth differ): it stays"
    return None


def is_made(top: Path, path: Path, record: WorktreeRecord | WorktreeMark) -> bool | None:
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


def _is_worktree(top: Path, path: Path, folder: Path) -> bool:
    with suppress(GitError), grounds.opened(top, path) as inside:
        return points(folder, inside)
    return False


def drop_locks(folder: Path) -> None:
    """Take away the locks that a git which has ended left in git's folder of a worktree that is being made.

    No other process knows that worktree yet. With its locks left, every git of its user would fail in it.
    """
    with failing("make a worktree", folder), removal.folder(folder) as opened:
        for name in os.listdir(opened):
            if name.endswith(".lock"):
                grounds.drop_file(opened, name)


def disown(folder: Path) -> None:
    """Leave a worktree to its user: git knows it as any other."""
    with failing("leave a worktree to its user", folder), removal.folder(folder) as opened:
        grounds.drop_file(opened, MARK)


def remove(common: Path, folder: Path) -> None:
    """Take git's folder of a worktree of ours away. `gitdir` goes first: without it git reads nothing of it.

    Alone: while one is half there, `git worktree add` may fail to read it.
    """
    with (
        alone(common),
        failing("remove git's folder of a worktree", folder),
        suppress(FileNotFoundError),
        removal.folder(common, "worktrees") as parent,
        removal.folder(common, "worktrees", folder.name) as opened,
    ):
        grounds.drop_file(opened, "gitdir")
        removal.remove_folder(parent, folder.name, removal.identity_of(os.fstat(opened)))


def _drop_staging(staging: int, record: WorktreeRecord) -> None:
    found = removal.identity_at(staging, record.id)
    if found is not None:
        removal.remove_folder(staging, record.id, found)


def adopted(repository: Repository, ours: Journal) -> WorktreeRecord | None:
    """The record of a worktree of ours whose own was lost, or that 0.1.0 made, from git's folder of it.

    The folder must be the one that gpudebug made, or, as 0.1.0 did not record that, name git's folder.
    """
    asked, common = ours.path, repository.common
    for folder in folders(common):
        known, path = mark_of(folder), path_of(folder)
        if known is None or path is None or path.parent != asked.parent or known.asked != asked.name:
            continue
        with suppress(GitError), grounds.opened(repository.top, path) as inside:
            made = removal.identity_of(os.fstat(inside))
            ours_still = is_made(repository.top, path, known) if known.made else points(folder, inside)
            commit = _first_commit(folder)
            if ours_still and commit is not None:
                admin = removal.identity_of(os.stat(folder, follow_symlinks=False))
                linked = tuple(_linked(repository.top, path))
                token, name, born = known.token, folder.name, removal.born(inside)
                return WorktreeRecord("ready", token, commit, str(path), name, made, admin, linked, born=born)
    return None


def _first_commit(folder: Path) -> str | None:
    """Return the commit that a worktree was made at: where its HEAD began."""
    for file, place in (("logs/HEAD", 1), ("HEAD", 0)):
        with suppress(OSError, IndexError):
            word = (folder / file).read_text("utf-8", "replace").split("\n")[0].split(" ")[place]
            if _COMMIT.fullmatch(word):
                return word
    return None


def _linked(top: Path, path: Path) -> list[str]:
    """Return the paths of a worktree that are links to the checkout's."""
    found = []
    for place, folders_, names in walk(path):
        for name in (*names, *folders_):
            relative = os.path.relpath(os.path.join(place, name), path)
            with suppress(OSError):
                if os.readlink(os.path.join(place, name)) == str(top / relative):
                    found.append(relative)
    return sorted(found)
