"""`gpudebug clean --all`: the rest of what gpudebug made, of a campaign and for this user on this host.

What a person may want to keep is asked for one by one: what `init` wrote and what git tracks. Of a file that
is shared with others only gpudebug's own part goes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from gpudebug.core.agents import instructions, setups
from gpudebug.core.errors import GitError
from gpudebug.core.words import counted
from gpudebug.edges import git, store
from gpudebug.edges.attach import processes
from gpudebug.edges.store import leftovers
from gpudebug.engine.campaign.campaign import Loaded, Setup
from gpudebug.engine.campaign.upkeep import kept_here
from gpudebug.engine.tools.clean import FORMER, PRIVATE, TEMPORARY, Left, found_at

OWN = "written by init"
_ARRAY = ".array"
_IN_RUNS = (store.LEASES, "sessions", "report", "export", _ARRAY, ".gpudebug")
_EMPTIED = ("runs", "progress", "hypotheses/patches", "hypotheses")
_IGNORED = b"runs/\n"


def survey(directory: Path, loaded: Loaded | None, left: Sequence[Left]) -> list[Left]:
    """Return all that goes with `--all`, in the order in which it goes; `left` is what `clean` lists."""
    found = [one for one in left if one.kind != PRIVATE]
    if loaded is not None:
        found += _in_runs(loaded.setup)
        found += _own(loaded)
        found += (replace(one, go=partial(_forget, loaded.setup)) for one in left if one.kind == PRIVATE)
    else:
        found += _orphaned(directory.resolve())
    return [*found, *_of_user()]


def asked_alone(loaded: Loaded | None, one: Left) -> bool:
    """Tell whether a person is asked for this one alone: it may be wanted by others, or git tracks it."""
    if loaded is None or one.kind in (OWN, FORMER):
        return one.kind in (OWN, FORMER)
    top = loaded.setup.checkout.top
    return one.path.is_relative_to(top) and git.tracks(loaded.setup.checkout.at, one.path)


def _in_runs(setup: Setup) -> Iterator[Left]:
    """Yield what lies in runs/ besides runs."""
    for name in _IN_RUNS:
        path = setup.workspace.root / store.RUNS / name
        if path.is_dir() and not path.is_symlink():
            yield found_at("in runs/", path, partial(_of_array, setup, path) if name == _ARRAY else None)


def _of_array(setup: Setup, path: Path) -> str | None:
    if store.Elements(setup.workspace).notes():
        return "jobs of an array need it: gpudebug stop"
    leftovers.remove_as_is(path)
    return None


def _own(loaded: Loaded) -> Iterator[Left]:
    """Yield what `init` wrote and what went beside it, gpudebug.yaml last: it is what makes a campaign."""
    root = loaded.setup.workspace.root
    ignore = root / ".gitignore"
    for path in (*sorted((root / "hypotheses" / "patches").glob("*.patch")), loaded.setup.progress_path):
        if path.is_file() and not path.is_symlink():
            yield found_at(OWN, path)
    # A longer one is the user's: the line in it may have been there before.
    if ignore.is_file() and not ignore.is_symlink() and store.read_file(ignore) == _IGNORED:
        yield found_at(OWN, ignore)
    yield from _of_agents(root)
    yield found_at(OWN, root / store.CONFIG, partial(_last, root))


def _last(root: Path) -> None:
    leftovers.remove_as_is(root / store.CONFIG)
    of_agents = {str(above) for path in setups.files() for above in Path(path).parents[:-1]}
    trees = root.joinpath(*store.WORKTREES)
    worktrees = (*(str(path) for path in trees.glob("*")), str(trees))
    leftovers.remove_empty(root, (*worktrees, *_EMPTIED, *sorted(of_agents, reverse=True)))


def _of_agents(root: Path) -> Iterator[Left]:
    """Yield gpudebug's part of the instructions of agents, and their settings that are as it wrote them."""
    for path, front in {agent.path: agent.front for agent in instructions.AGENTS.values()}.items():
        file = root / path
        if file.is_file() and not file.is_symlink():
            old = store.read_file(file)
            with suppress(instructions.BrokenMarkers):
                rest = instructions.without_block(old, front, str(file))
                if rest == b"":
                    yield found_at(OWN, file)
                elif rest != old:
                    yield found_at(OWN, file, partial(_cut, root, file, old, rest))
    for setup in {file.path: file for files in setups.SETUPS.values() for file in files}.values():
        file = root / setup.path
        if file.is_file() and not file.is_symlink():
            text = store.read_file(file).decode("utf-8", "replace")
            if text == setup.text:
                yield found_at(OWN, file)
            elif setup.held_by(text):
                yield found_at(OWN, file, partial(_by_hand, setup))


def _by_hand(setup: setups.SetupFile) -> str:
    return f"holds settings of yours too; take out by hand: {setup.line}"


def _cut(root: Path, file: Path, old: bytes, rest: bytes) -> None:
    store.replace_file(file, rest, root=root, expected=store.digest(old))


def _forget(setup: Setup) -> str | None:
    """Remove gpudebug's folder in git's: all of it, or this campaign's part if it holds others'."""
    worktrees, references = kept_here(setup)
    if worktrees or references:
        return "its records say what the worktrees that stay are"
    return _forget_records(setup.workspace.root, setup.checkout.private)


def _orphaned(root: Path) -> Iterator[Left]:
    """Yield gpudebug's folder in git's where gpudebug.yaml itself is gone."""
    with suppress(GitError):
        at = git.whereabouts(root)
        if at.private.is_dir() and not at.private.is_symlink():
            yield found_at(PRIVATE, at.private, partial(_forget_orphans, root, at))


def _forget_orphans(root: Path, at: git.Address) -> str | None:
    trees = root.joinpath(*store.WORKTREES)
    if any(git.worktrees_in(at, campaign) for campaign in trees.glob("*")):
        return "its records say what the worktrees that stay are"
    for name in git.refs_below(at, "refs/gpudebug"):
        if name.split("/")[2].endswith(f"-{store.private_folder(root).name}"):
            git.forget(at.top, name)
    return _forget_records(root, at.private)


def _forget_records(root: Path, private: Path) -> str | None:
    """Remove what is kept of the campaigns at `root`, and with the last of all the folder."""
    mine = f"-{store.private_folder(root).name}"
    others = set[str]()
    for kind in ("campaigns", "said", "folders"):
        for path in sorted((private / kind).glob("*")):
            if f"-{path.name}".endswith(mine):
                leftovers.remove_as_is(path)
            else:
                others.add(path.name)
    if others:
        return f"it holds {counted(len(others), 'record')} of campaigns in other folders of this repository"
    leftovers.remove_as_is(private)
    return None


def _of_user() -> Iterator[Left]:
    """Yield what is this user's on this host, whatever the campaign: cache, locks, demos, what was killed."""
    cache = store.cache_folder()
    if cache is not None and cache.is_dir() and not cache.is_symlink():
        yield found_at("cache", cache)
    for folder, drop in store.drop_free():
        yield found_at("locks of devices", folder, drop)
    for path in leftovers.in_tmp(Path(tempfile.gettempdir())):
        if path.name.startswith(leftovers.DEMO):
            yield found_at("demo", path, partial(_demo, path))
        elif not processes.holding(str(path)):
            yield found_at(TEMPORARY, path)


def _demo(path: Path) -> str | None:
    if store.Workspace(path).claimed():
        return "its campaign runs"
    leftovers.remove_as_is(path)
    return None
