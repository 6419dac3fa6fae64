"""The campaign's base: a commit of the tree as the user has it, and patches on it and of worktrees."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gpudebug.core.change import patches
from gpudebug.core.errors import GitError, InterventionError
from gpudebug.edges.git import refs, trees
from gpudebug.edges.git.address import Address, looked
from gpudebug.edges.git.checkout import refs_below
from gpudebug.edges.git.refs import refs_name
from gpudebug.edges.git.repository import GitOutput, Repository, opened
from gpudebug.edges.git.trees import LeftOut
from gpudebug.edges.git.worktrees import looking

_LABEL = re.compile(r"^Tree: (.*)$", re.MULTILINE)
_LEFT_OUT = re.compile(r"^Left-out: (.*)$", re.MULTILINE)

# A patch that `git apply` takes whatever a user's configuration says.
_PATCH = (
    *("-p", "--binary", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames"),
    *("--src-prefix=a/", "--dst-prefix=b/", "-U3", "-O/dev/null", "--submodule=short"),
)


@dataclass(frozen=True, slots=True)
class Base:
    """A commit under refs/gpudebug/. `tree` is the label (a digest) that it was made for."""

    commit: str
    tree: str
    left_out: tuple[LeftOut, ...] = ()


def snapshot(top: Path, *, ref: str, label: str, exclude: Iterable[Path] = ()) -> Base:
    """Commit the tree as the user has it, under `ref`, on top of HEAD. Nothing of the user's is touched.

    Tracked files as they are now; untracked ones under limits and by their names (see `untracked`), never
    ignored ones, nor what `exclude` names (and all below), which is gpudebug's own; but .gitignore files
    do, for a worktree needs them. `label` is any line of text that `stored` gives back. GitError says what
    is in the way.
    """
    repository, head = opened(top)
    trees.refuse_unmerged(repository)
    ours = trees.relative(repository.top, (path for path in exclude if path.name != ".gitignore"))
    with repository.index(copied=True) as index:
        tree, left = trees.tree_as_it_lies(index, left=trees.within(ours))
    left_out = trees.capped(left)
    commit = repository.commit(tree, head, _message("gpudebug: the tree as it lies", label, left_out))
    # First: after a kill between the two nothing says that another commit should be there.
    refs.drop(repository.common, ref)
    refs.change(repository, ref, commit)
    return Base(commit, label, left_out)


def stored(at: Address, ref: str) -> Base | None:
    """Return the base under `ref` as its commit describes itself; None if it is gone. Needs no gitpython.

    Others who may write to the repository may have put another commit there: see `trusted`.
    """
    found = looked(at, "for-each-ref", "--format=%(objectname) %(contents)", refs_name(ref))
    commit, _, message = (found or b"").decode("utf-8", "replace").partition(" ")
    label, left = _LABEL.search(message), _LEFT_OUT.search(message)
    if label is None or left is None:
        return None
    try:
        return Base(commit, label.group(1), tuple(LeftOut(*pair) for pair in json.loads(left.group(1))))
    except (ValueError, TypeError):
        return None


def whole(at: Address, commit: str) -> bool:
    """Tell whether all of a commit is there: of the trees and blobs that the parent has not, each must be."""
    return looked(at, "rev-list", "--objects", "--quiet", f"{commit}^!") is not None


def with_patch(
    top: Path, commit: str, patch: bytes, *, label: str, file: str, ref: str | None = None
) -> Base:
    """Commit `patch` on top of `commit`, under `ref` where one is given. `file` names it in errors.

    GitError names the file and line if it does not apply, and refuses one that changes nothing.
    """
    read = patches.read(patch, file)
    repository, _ = opened(top)
    with repository.index(copied=False) as index:
        index.run("read-tree", commit)
        answer = _applied(index, patch)
        if answer.status and _applied(index, patch, "--check", "--reverse").status == 0:
            raise GitError("the change is there already", file=file, next="leave it out")
        if answer.status:
            raise _not_applied(repository, answer, read)
        tree = index.line("write-tree")
    _look_at_result(repository, commit, tree, read)
    made = repository.commit(tree, commit, _message("gpudebug: a patch", label, ()))
    if ref is not None:
        refs.change(repository, ref, made)
    return Base(made, label)


def already_there(top: Path, commit: str, patch: bytes) -> bool:
    """Tell whether all of `patch` is in `commit` already: it can be taken out of it."""
    repository, _ = opened(top)
    with repository.index(copied=False) as index:
        index.run("read-tree", commit)
        return _applied(index, patch, "--check", "--reverse").status == 0


def first_there(top: Path, commit: str, stack: Sequence[bytes]) -> int:
    """How many of a stack's first patches are in `commit` already: they can be taken out, the last one first.

    Each by itself cannot, where one that came later changed the lines around it.
    """
    repository, _ = opened(top)
    for count in range(len(stack), 0, -1):
        with repository.index(copied=False) as index:
            index.run("read-tree", commit)
            if all(_applied(index, patch, "--reverse").status == 0 for patch in reversed(stack[:count])):
                return count
    return 0


def difference(top: Path, a: str, b: str) -> bytes:
    """Return the patch that makes tree or commit `b` of `a`; empty if they are equal."""
    return patch_between(opened(top)[0], a, b)


def patch_between(repository: Repository, a: str, b: str) -> bytes:
    return repository.run("diff-tree", *_PATCH, a, b)


def keep(top: Path, ref: str, commit: str) -> None:
    """Put a commit under `ref`, so that git does not collect it."""
    refs.change(opened(top)[0], ref, commit)


def forget(top: Path, prefix: str) -> None:
    """Delete the refs that begin with `prefix`, so that git may collect what they kept."""
    repository, _ = opened(top)
    for ref in refs_below(repository.at, refs_name(prefix).rstrip("/")):
        refs.change(repository, ref, None)
        refs.drop(repository.common, ref)


def _message(subject: str, label: str, left_out: tuple[LeftOut, ...]) -> str:
    return f"{subject}\n\nTree: {' '.join(label.split())}\nLeft-out: {json.dumps(left_out)}\n"


def _applied(index: Repository, patch: bytes, *options: str) -> GitOutput:
    return index.ask("apply", "--cached", "--whitespace=nowarn", *options, "-", data=patch)


def _look_at_result(repository: Repository, commit: str, tree: str, patch: patches.Patch) -> None:
    """However a patch's text was read: it changes what it names, and nothing that may not be changed."""
    changed = repository.names("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", commit, tree)
    if not changed:
        raise GitError("the patch changes nothing", file=patch.file, next="write the change as a diff")
    for facts, name in zip(changed[::2], changed[1::2], strict=True):
        path = name.decode("utf-8", "surrogateescape")
        _, mode, _, blob, _ = facts.decode().split(" ")
        target = None
        if mode == patches.LINK:
            target = os.fsdecode(repository.run("cat-file", "blob", blob))
        why = patches.refused_path(path) or patches.refused_kind(path, mode, target)
        if path not in patch.paths:
            why = "is changed, and no header of the patch names it"
        if why is not None:
            raise InterventionError(
                f"{path!r} {why}", file=patch.file, next="leave this file out of the patch"
            )


def _not_applied(repository: Repository, answer: GitOutput, patch: patches.Patch) -> GitError:
    """Write git apply's message, with the line of the patch if it is known."""
    file = patch.file
    place = re.search(r"patch failed: (.+):(\d+)$", answer.err, re.MULTILINE)
    advice = "write the change again, against the code that is measured now"
    if place:
        path, line = place.group(1), int(place.group(2))
        hunks = [hunk for each in patch.files if path in (each.old, each.new) for hunk in each.hunks]
        where = next((hunk.line for hunk in hunks if hunk.start == line), None)
        return GitError(f"does not apply to {path} at line {line}", file=file, line=where, next=advice)
    corrupt = re.search(r"(?:corrupt|garbage).* (?:line |<stdin>:|-:)(\d+)", answer.err)
    if corrupt:
        return GitError(
            "is not a valid patch", file=file, line=int(corrupt.group(1)), next="write it with git diff"
        )
    failed = repository.failure(answer.err)
    return GitError(f"does not apply: {failed.message}", file=file, next=advice)


# What running and testing leave behind, in everybody's .gitignore.
_CACHES = ("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".ipynb_checkpoints")

_REPLACED = "it replaces a link to the checkout's, and no change can"


@dataclass(frozen=True, slots=True)
class WorktreeChange:
    """A patch for `git apply`, the files that it changes, and what lies in the worktree but not in it."""

    patch: bytes
    files: tuple[str, ...]
    left_out: tuple[LeftOut, ...]


def worktree_change(at: Address, path: Path, commit: str) -> WorktreeChange:
    """The files of the worktree asked for as `path` against `commit`, whatever was committed or staged there.

    Untracked files come along as in `snapshot`. Linked paths and submodules are the checkout's: they are no
    part of the change. The worktree, its HEAD and its index stay as they are; its .git file is not read.
    """
    with looking(at, path) as (inside, record):
        return _change(Repository(inside), commit, record.linked)


def _change(repository: Repository, commit: str, linked: Collection[str]) -> WorktreeChange:
    submodules = trees.gitlinks(repository, commit)
    place = repository.at.place
    borrowed = [*linked, *(os.fsdecode(p) for p, _ in submodules)]
    ours = trees.within(borrowed)
    with _index_of(repository, commit) as index:
        _, left = trees.tree_as_it_lies(index, left=ours)
        pinned = b"".join(b"160000 " + pin + b" 0\t" + sub + b"\0" for sub, pin in submodules)
        index.run("update-index", "--replace", "-z", "--index-info", data=pinned)
        tree = index.line("write-tree")
        ignored = index.names("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
        files = index.names("diff-tree", "-r", "-z", "--name-only", "--no-renames", commit, tree)
        patch = patch_between(index, commit, tree) if files else b""
    left += [LeftOut(p, _REPLACED) for p in dict.fromkeys(borrowed) if _replaced(place / p)]
    left += [LeftOut(os.fsdecode(p), "git ignores it") for p in ignored if not ours(p) and not _cache(p)]
    return WorktreeChange(patch, tuple(os.fsdecode(f) for f in files), trees.capped(left))


@contextmanager
def _index_of(repository: Repository, commit: str) -> Iterator[Repository]:
    """An index that holds `commit`, with the times of the worktree's own where it can be read."""
    with repository.index(copied=True) as index:
        arguments = ("read-tree", "--reset", "--no-sparse-checkout", commit)
        if index.ask(*arguments).status == 0:
            yield index
            return
    with repository.index(copied=False) as index:
        index.run("read-tree", commit)
        yield index


def _replaced(path: Path) -> bool:
    """Tell whether a link to the checkout was replaced; git leaves an empty folder."""
    return not path.is_symlink() and (path.is_file() or (path.is_dir() and any(path.iterdir())))


def _cache(path: bytes) -> bool:
    name = os.fsdecode(path).rstrip("/")
    return name.endswith((".pyc", ".pyo")) or any(part in _CACHES for part in name.split("/"))
