"""Worktrees of our own: made at a commit, links in, marked; removed whole. Never one that is not ours."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gpudebug.core.errors import GitError
from gpudebug.edges.snapshot import admin, journal, lfs, links, trees
from gpudebug.edges.snapshot.checkout import differs
from gpudebug.edges.snapshot.journal import Journal, Record
from gpudebug.edges.snapshot.repository import Repository, alone, failing, opened


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
    is handed back as it is. GitError where something else is in the way, or git cannot make one.
    """
    repository, _ = opened(top)
    path = _placed(path)
    with failing("make the folder of worktrees", path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
    with journal.held(path) as ours:
        record = ours.read()
        if record is not None and record.state == "ready" and sound(repository, path, record):
            if record.commit != commit:
                raise GitError(
                    "a worktree of another commit is there", file=str(path), next="remove it first"
                )
            return Worktree(path, record.notes, record.linked)
        if record is not None:
            admin.clear(repository, path, record)
        elif os.path.lexists(path):
            raise GitError(
                "is in the way of a worktree, and none of gpudebug's",
                file=str(path),
                next="move it away",
            )
        return _made(repository, path, commit, links, checkout or repository.top, ours)


def _made(
    repository: Repository, path: Path, commit: str, linking: Sequence[str], checkout: Path, ours: Journal
) -> Worktree:
    before = tuple(folder.name for folder in admin.folders(repository))
    record = Record("making", secrets.token_hex(8), commit, before=before)
    ours.write(record)
    git = Repository(repository.top, keep=(ours.descriptor,))
    inside = Repository(path, keep=(ours.descriptor,))
    try:
        # Git reads the others' folders while it makes one, and fails at one that is half-written.
        with alone(repository.common) as descriptor:
            registering = Repository(repository.top, keep=(ours.descriptor, descriptor))
            registering.run("worktree", "add", "--detach", "--no-checkout", str(path), commit)
        inside.run("reset", "--hard", "--quiet")
        _check_out_present(git, inside)
        notes = lfs.fetch_stored(inside)
        linked, said = links.link_all(git, path, commit, linking, checkout)
    except GitError:
        admin.clear(repository, path, record)
        ours.remove()
        raise
    folder = admin.of(repository, path, record)
    if folder is None:
        raise GitError("git did not register the worktree", file=str(path), next="see `git worktree list`")
    admin.mark(folder, record.token, path)
    ready = replace(
        record, state="ready", id=folder.name, linked=tuple(linked), notes=(*notes, *said), before=()
    )
    ours.write(ready)
    return Worktree(path, ready.notes, ready.linked)


def _check_out_present(checkout: Repository, inside: Repository) -> None:
    """In a sparse checkout git leaves out of the worktree what the patterns do, but not the user."""
    skipped = [name[2:] for name in inside.names("ls-files", "-z", "-t") if name.startswith(b"S ")]
    present = [name for name in skipped if os.path.lexists(checkout.top / os.fsdecode(name))]
    if present:
        inside.run("update-index", "--no-skip-worktree", "-z", "--stdin", data=trees.listed(present))
        inside.run("checkout-index", "--force", "-u", "-z", "--stdin", data=trees.listed(present))


def remove_worktree(top: Path, path: Path) -> None:
    """Take a worktree of ours away, as much of it as is there. GitError for one that is not ours."""
    repository, _ = opened(top)
    path = _placed(path)
    if not os.path.lexists(path) and journal.peek(path) is None and _marked(repository, path) is None:
        return
    with journal.held(path) as ours:
        record = ours.read() or _marked(repository, path)
        if record is None:
            if os.path.lexists(path):
                raise GitError("is no worktree of gpudebug's", file=str(path), next="leave it there")
            return
        if record.state == "ready":
            record = replace(record, state="removing")
            ours.write(record)
        admin.clear(repository, path, record)
        ours.remove()


def began_with(path: Path) -> str | None:
    """The commit that a worktree of ours was made at; None where there is no whole one at `path`."""
    record = journal.peek(path)
    if record is None or record.state != "ready" or not (path / ".git").exists():
        return None
    return record.commit


def touched(path: Path) -> bool:
    """Whether anything was changed in a whole worktree of ours since it was made. Needs no gitpython."""
    record, commit = journal.peek(path), began_with(path)
    if record is None or commit is None:
        return False
    # Where its .git file leads elsewhere, nothing is looked at there: whoever reads the change says so.
    return admin.leads_to_ours(path, record.token) and differs(path, commit, record.linked)


def sound(repository: Repository, path: Path, record: Record) -> bool:
    """Whether worktree and git's folder of it are there and know each other."""
    folder = admin.of(repository, path, record)
    if folder is None or admin.path_of(folder) != path or not (folder / "index").exists():
        return False
    try:
        said = (path / ".git").read_bytes()
    except OSError:
        return False
    return Path(os.fsdecode(said.removeprefix(b"gitdir: ").rstrip(b"\n"))) == folder


def _marked(repository: Repository, path: Path) -> Record | None:
    """The record of a worktree whose journal was lost, from git's folder of it."""
    for folder in admin.folders(repository):
        token = admin.token_of(folder)
        if token is not None and admin.path_of(folder) == path:
            return Record("ready", token, "", folder.name)
    return None


def _placed(path: Path) -> Path:
    """The path as git writes it: links in it resolved, but for its own name."""
    return Path(os.path.realpath(path.parent)) / path.name
