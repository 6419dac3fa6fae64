"""Where runs happen: in the checkout, or in worktrees of the campaign's base."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gpudebug.core.agents.setups import files as agents_files
from gpudebug.core.errors import GitError, InterventionError
from gpudebug.core.progress import ProgressFile
from gpudebug.core.text.values import short_digest
from gpudebug.edges import git, store
from gpudebug.engine.campaign.campaign import MeasuredCode, Setup
from gpudebug.engine.campaign.private import refs

if TYPE_CHECKING:
    from gpudebug.core.campaign.accepted_changes import AcceptedChange

PATCHES = "hypotheses/patches"
_STACKED = "an accepted patch"


@dataclass(frozen=True)
class WorkingTree:
    """A tree that a command runs in: its top, its copy of the campaign's folder, how it looked.

    `commit` is what it was made of; `patch` the change that is in it beside the base, None for none.
    `before.tree` is the digest of the tree as checked out. `worktree` is how a worktree is asked for, and
    `checkout` what it belongs to.
    """

    top: Path
    root: Path
    before: git.Checkout
    unmeasured: tuple[Path, ...]
    commit: str
    patch: bytes | None = None
    notes: tuple[str, ...] = ()
    worktree: Path | None = None
    checkout: git.Checkout | None = None

    @property
    def stands(self) -> bool:
        """Whether another run can be made in it: it is the checkout, or the worktree that was made."""
        return self.worktree is None or self.checkout is None or git.stands(self.checkout.at, self.worktree)

    def changed(self) -> list[str]:
        """Return the files of the tree that are different by now."""
        if self.checkout is None or self.worktree is None:
            now = git.identify(self.top, self.unmeasured, store.CONFIG)
        else:
            at = self.checkout.at
            now = git.identify_worktree(at, self.worktree, self.unmeasured, store.CONFIG)
        return now.changed_since(self.before)

    def changed_in_links(self) -> list[str]:
        """Return a line on what is different by now of what is linked in, none if nothing is."""
        if self.checkout is None or self.worktree is None:
            return []
        return _changed_in_links(self.checkout.at, self.worktree)


def _changed_in_links(at: git.Address, asked: Path) -> list[str]:
    found = git.changed_in_links(at, asked)
    return [f"changed in a linked folder, and no part of the change: {', '.join(found)}"] if found else []


def references(setup: Setup) -> str:
    """Return where this campaign keeps its commits."""
    return refs(setup.workspace.root, setup.config.campaign, setup.checkout)


def folder(setup: Setup) -> Path:
    """Return the worktrees of this campaign."""
    return setup.workspace.worktrees / setup.config.campaign


def ours(setup: Setup, root: Path) -> tuple[Path, ...]:
    """Return what gpudebug itself and its users' notes change in a tree whose campaign folder is `root`."""
    workspace = setup.workspace
    home = workspace.root / setup.config.progress
    written: tuple[Path, ...] = (workspace.config, home, workspace.root / store.RUNS)
    inside = [str(p.relative_to(workspace.root)) for p in written if p.is_relative_to(workspace.root)]
    return tuple(root / p for p in (*inside, "progress", "hypotheses", ".gitignore"))


def unmeasured(setup: Setup, root: Path) -> tuple[Path, ...]:
    """Return what is not code: ours, and what agents read. It may change while a run is under way."""
    return (*ours(setup, root), *(root / path for path in agents_files()))


def checkout_base(setup: Setup, code: MeasuredCode, *, renew: bool = False) -> git.Base:
    """Return the commit of the tree that this caller measures, before anything was accepted; made if it is
    not there, or if the checkout is another tree by now and the caller may make that the base.

    GitError if another commit has its place, unless a person says with `renew` that the checkout is it.
    """
    ref = f"{references(setup)}/checkout"
    top, at = setup.checkout.top, setup.checkout.at
    apart = unmeasured(setup, setup.workspace.root)
    measured = git.MeasuredTree(apart, store.CONFIG)
    found = git.stored(at, ref)
    if found is not None:
        sure = git.trusted(at, ref, found.commit, found.tree, measured)
        if sure and found.tree == code.tree and git.whole(at, found.commit):
            return found
        if sure is False and not (renew and setup.session is None):
            raise _replaced(ref)
    if code.drifted:
        raise GitError(
            "the campaign's base is lost, and the checkout is another tree by now",
            file=str(top),
            next="run `gpudebug baseline` yourself: an agent session may not move the base",
        )
    made = git.snapshot(top, ref=ref, label=code.tree, exclude=ours(setup, setup.workspace.root))
    changed = git.identify(top, apart, store.CONFIG).changed_since(setup.checkout)
    if changed:
        git.forget(top, ref)
        raise GitError(
            f"{', '.join(changed[:3])} changed while the code was being kept",
            file=str(top),
            next="run the same command again",
        )
    git.vouch(setup.checkout, ref, made.commit, measured)
    return made


def _replaced(ref: str) -> GitError:
    return GitError(
        f"{ref} is not the commit that gpudebug made of the measured code: another one has its place",
        next="run `gpudebug baseline` yourself: an agent session may not move the base",
    )


def base(setup: Setup, code: MeasuredCode) -> git.Base:
    """Return the commit that hypotheses change: the checkout's with every accepted patch.

    The patches are applied each time: the same ones make the same commit, whatever is kept under the ref.
    """
    found = checkout_base(setup, code)
    if not code.patches:
        return found
    commit = with_accepted(setup.checkout, code, found.commit)
    # Last: a base that lacks a patch must not be taken for the whole one.
    if commit != found.commit:
        git.keep(setup.checkout.top, f"{references(setup)}/base", commit)
    return git.Base(commit, code.digest)


def with_accepted(checkout: git.Checkout, code: MeasuredCode, commit: str) -> str:
    """A commit with every accepted patch on top of it, but for those that the user applied there already."""
    top, stack = checkout.top, code.patches
    for place, patch in list(enumerate(stack))[git.first_there(top, commit, stack) :]:
        if not git.already_there(top, commit, patch):
            try:
                made = git.with_patch(top, commit, patch, label=code.digest, file=_STACKED)
            except GitError as e:
                e.file, e.message = _accepted_as(code.stack, place), f"accepted, {e.message}"
                e.next = (
                    "take back what was changed there in the checkout, apply the patch there yourself, or "
                    "delete the Accepted line of its hypothesis"
                )
                raise
            commit = made.commit
    return commit


def _accepted_as(stack: Sequence[AcceptedChange], place: int) -> str:
    """Return the file of the accepted patch at a place among those of a stack, and whose it is."""
    files = [f"hypothesis {s.hypothesis}, {file}" for s in stack if (file := s.intervention.patch)]
    return files[place] if place < len(files) else _STACKED


def remember(setup: Setup, code: MeasuredCode) -> list[str]:
    """Keep the code that a baseline is recorded of as the campaign's base; what is to be known of that.

    A repository that cannot be kept can still be measured, but for hypotheses with a patch or code.
    """
    try:
        left_out = checkout_base(setup, code, renew=True).left_out
    except GitError as e:
        return [f"the code could not be kept ({e.message}): no hypothesis with a patch or code can be tested"]
    if not left_out:
        return []
    named = ", ".join(f"{each.path} ({each.why})" for each in left_out[:3])
    more = f" and {len(left_out) - 3} more" if len(left_out) > 3 else ""
    return [f"untracked files that no worktree gets: {named}{more}"]


def in_checkout(workspace: store.Workspace, code: MeasuredCode) -> bool:
    """Tell whether the checkout is the base: then what needs no patch runs there, but for elements of job
    arrays, which would find each other's files."""
    return workspace.element is None and not code.patches and not code.drifted


@contextmanager
def place_of_base(setup: Setup, code: MeasuredCode) -> Iterator[WorkingTree]:
    """Where the unmodified workload runs."""
    if in_checkout(setup.workspace, code):
        root = setup.workspace.root
        checkout = setup.checkout
        yield WorkingTree(checkout.top, root, checkout, unmeasured(setup, root), checkout.commit)
        return
    with _worktree(setup, "base", base(setup, code).commit, None) as place:
        yield place


@contextmanager
def place_of_original(setup: Setup, code: MeasuredCode) -> Iterator[WorkingTree]:
    """A worktree of the code before anything was accepted; it is removed afterwards."""
    with _worktree(setup, "original", checkout_base(setup, code).commit, None) as place:
        yield place


@contextmanager
def place_of_patch(
    setup: Setup, code: MeasuredCode, number: int, patch: bytes, file: str
) -> Iterator[WorkingTree]:
    """A worktree at the base plus a patch, for the runs of one trial; it is removed afterwards."""
    commit = base(setup, code).commit
    try:
        made = git.with_patch(
            setup.checkout.top,
            commit,
            patch,
            ref=f"{references(setup)}/h{number}-trial",
            label=short_digest(patch),
            file=file,
        )
    except GitError as e:
        began = git.began_with(setup.checkout.at, folder(setup) / f"h{number}")
        if began is not None and began != commit:
            e.next = (
                f"gpudebug release {number} keeps what was written, as a patch; the next worktree has the "
                "code that is measured now"
            )
        raise
    with _worktree(setup, f"h{number}-trial", made.commit, patch) as place:
        yield place


@contextmanager
def _worktree(setup: Setup, name: str, commit: str, patch: bytes | None) -> Iterator[WorkingTree]:
    asked = folder(setup) / name
    checkout, top = setup.checkout, setup.checkout.top
    left = git.remove_worktree(top, asked)
    links = setup.config.worktree.link
    made = git.add_worktree(top, asked, commit, links=links, checkout=setup.workspace.root)
    try:
        root = made.path / setup.workspace.root.relative_to(top)
        mine = unmeasured(setup, root)
        before = git.identify_worktree(checkout.at, asked, mine, store.CONFIG)
        notes = (*left, *made.notes)
        yield WorkingTree(made.path, root, before, mine, commit, patch, notes, asked, checkout)
    finally:
        git.remove_worktree(top, asked)


def worktree_for(setup: Setup, code: MeasuredCode, number: int) -> Path:
    """Return the worktree in which the change of a hypothesis is written; what is written there stays."""
    top, at, asked = setup.checkout.top, setup.checkout.at, folder(setup) / f"h{number}"
    if git.began_with(at, asked) is None:
        git.remove_worktree(top, asked)
        commit, links = base(setup, code).commit, setup.config.worktree.link
        # What is written is a change of this commit, whatever the campaign's base is by then.
        git.keep(top, f"{references(setup)}/h{number}", commit)
        git.add_worktree(top, asked, commit, links=links, checkout=setup.workspace.root)
    return git.place_of(at, asked) / setup.workspace.root.relative_to(top)


def changed_in_links(setup: Setup, number: int) -> list[str]:
    """Return what the writer of a hypothesis's change did to what is linked into its worktree."""
    return _changed_in_links(setup.checkout.at, folder(setup) / f"h{number}")


def written_change(setup: Setup, number: int) -> git.WorktreeChange | None:
    """Return what is written in the worktree of a hypothesis; None if there is no such worktree."""
    at, path = setup.checkout.at, folder(setup) / f"h{number}"
    commit = git.began_with(at, path)
    return git.worktree_change(at, path, commit) if commit is not None else None


def is_written(setup: Setup, number: int) -> bool:
    """Whether the worktree of a hypothesis was changed. `written_change` says what of that is a change."""
    return bool(git.touched(setup.checkout.at, folder(setup) / f"h{number}"))


def keep_patch(setup: Setup, document: ProgressFile, number: int, patch: bytes) -> str:
    """Write a change beside the hypotheses, under a name that is free or holds these very bytes; its path.

    InterventionError if it holds a secret, which the file would show to everyone.
    """
    if _holds_secret(setup.workspace, patch):
        raise InterventionError(
            f"the change of hypothesis {number} holds a secret, and its patch is for everyone to read",
            file=str(folder(setup) / f"h{number}"),
            next="read it from the environment instead, then gpudebug next",
        )
    title = next((h.title for h in document.hypotheses if h.number == number), "")
    name = store.slug(setup.workspace.scrub(title))
    for counted in ("", *(f"-{n}" for n in range(2, 1000))):
        relative = f"{PATCHES}/h{number}{'-' if name else ''}{name}{counted}.patch"
        if store.place_new(setup.workspace.root, relative, patch):
            return relative
    raise InterventionError(
        f"{PATCHES} holds a thousand patches of hypothesis {number}", next="move the old ones away"
    )


def remove(setup: Setup, number: int) -> None:
    """Remove what a hypothesis needed: its worktrees and the commits that they were made of."""
    for name in (f"h{number}", f"h{number}-trial"):
        discard(setup, name)


def discard(setup: Setup, name: str) -> None:
    """Remove a worktree of the campaign and what keeps its commit."""
    git.remove_worktree(setup.checkout.top, folder(setup) / name)
    git.forget(setup.checkout.top, f"{references(setup)}/{name}")


class KeptChange(NamedTuple):
    """Where the change of a hypothesis is kept: as a patch, or in its worktree, which then may not go."""

    patch: str | None = None
    worktree: Path | None = None


def rescue(setup: Setup, document: ProgressFile, number: int) -> KeptChange:
    """Keep what was written in the worktree of a hypothesis: as a patch, if it holds no secret."""
    found = written_change(setup, number)
    if found is None or not found.patch:
        return KeptChange()
    if _holds_secret(setup.workspace, found.patch):
        return KeptChange(worktree=git.place_of(setup.checkout.at, folder(setup) / f"h{number}"))
    return KeptChange(keep_patch(setup, document, number, found.patch))


def _holds_secret(workspace: store.Workspace, patch: bytes) -> bool:
    text = patch.decode("utf-8", "surrogateescape")
    return workspace.scrub(text) != text
