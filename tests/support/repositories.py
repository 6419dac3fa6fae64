"""Git repositories for tests of snapshots and worktrees: everything that a user has, to compare it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from tests.support.campaigns import git, make_repository

from gpudebug.edges import git as snapshot
from gpudebug.edges.git.address import Address, find

REF = "refs/gpudebug/test/base"
FILES = {
    "train.py": "a = 1\nb = 2\nc = 3\n",
    "pkg/model.py": "x = 1\n",
    "pkg/old.py": "gone = 1\n",
    "pkg/deep/er/util.py": "y = 1\n",
    "data/keep.txt": "kept\n",
    "weights.bin": bytes(range(256)) * 8,
    ".gitignore": "runs/\n.venv\n*.log\n",
}


def repository(folder: Path) -> Path:
    """A repository with a changed, a deleted, a staged and untracked files, a stash and an ignored folder."""
    top = make_repository(folder, FILES)
    (top / "data" / "keep.txt").write_text("stashed\n")
    git(top, "stash", "--quiet")
    (top / "train.py").write_text("a = 1\nb = 20\nc = 3\n")
    (top / "pkg" / "old.py").unlink()
    (top / "pkg" / "staged.py").write_text("s = 1\n")
    git(top, "add", "pkg/staged.py")
    (top / "pkg" / "staged.py").write_text("s = 2\n")
    (top / "new.py").write_text("n = 1\n")
    (top / ".venv" / "bin").mkdir(parents=True)
    (top / ".venv" / "bin" / "python").write_text("#!")
    (top / "train.log").write_text("step 1\n")
    return top


def users(top: Path) -> dict[str, object]:
    """All that is the user's: every file with mode and times, HEAD, index, refs and stash. Ours left out."""
    found: dict[str, object] = {}
    for place, folders, names in os.walk(top):
        here = Path(place)
        if here == top / "runs" or here.name == "objects":
            folders.clear()
            continue
        for name in [*names, *(f for f in folders if (here / f).is_symlink())]:
            path = here / name
            at = os.lstat(path)
            content = os.readlink(path) if path.is_symlink() else None
            if stat.S_ISREG(at.st_mode):
                content = path.read_bytes().decode("latin-1")
            # Git renews the time of a shared index whenever it reads it.
            changed = 0 if name.startswith("sharedindex.") else at.st_mtime_ns
            found[str(path.relative_to(top))] = (at.st_mode, changed, content)
    for kept in ("gpudebug", "refs/gpudebug", "worktrees", "logs/refs/gpudebug"):
        found = {k: v for k, v in found.items() if not k.startswith(f".git/{kept}/")}
    return found


def lies(folder: Path) -> dict[str, tuple[str, str]]:
    """What a training would read in a tree: kind and content of each file, without git's and links."""
    found = {}
    for place, folders, names in os.walk(folder):
        folders[:] = [f for f in folders if f != ".git"]
        for name in [*names, *(f for f in folders if os.path.islink(os.path.join(place, f)))]:
            path = os.path.join(place, name)
            if name == ".git":
                continue
            relative = os.path.relpath(path, folder)
            if os.path.islink(path):
                found[relative] = ("link", os.readlink(path))
            elif os.path.isfile(path):
                kind = "executable" if os.stat(path).st_mode & 0o100 else "file"
                found[relative] = (kind, Path(path).read_bytes().decode("latin-1"))
    return found


def worktrees(top: Path) -> list[str]:
    """The worktrees that git knows, but for the checkout itself: none of them is ours."""
    listed = git(top, "worktree", "list", "--porcelain").split("\n\n")
    return [block.split("\n")[0].removeprefix("worktree ") for block in listed[1:] if block]


def left_over(top: Path) -> list[str]:
    """What is in runs/worktrees below the folder of a campaign, and of the journals."""
    return sorted(str(path.relative_to(top)) for path in (top / "runs" / "worktrees").glob("*/*"))


def address(path: Path) -> Address:
    """Where git works for the checkout that `path` is, or is a worktree of ours of."""
    parts = path.parts
    ends = [n for n in range(len(parts) - 1) if parts[n : n + 2] == ("runs", "worktrees")]
    return find(Path(*parts[: ends[-1]]) if ends else path).at


def stored(top: Path, ref: str) -> snapshot.Base | None:
    """The base under a reference; None where it, or an object that it needs, is gone."""
    found = snapshot.stored(address(top), ref)
    return found if found is not None and snapshot.whole(address(top), found.commit) else None


def began_with(path: Path) -> str | None:
    return snapshot.began_with(address(path), path)


def touched(path: Path) -> bool:
    return snapshot.touched(address(path), path)


def change_in(path: Path, commit: str) -> snapshot.WorktreeChange:
    return snapshot.worktree_change(address(path), path, commit)
