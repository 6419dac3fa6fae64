"""Which code lies in the checkout. Reads only; HEAD, index and files are never touched."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from gpudebug.core.digests import short_digest
from gpudebug.core.errors import GitError

# Hooks, fsmonitor and optional index refreshes run code or write; none of that is ours to cause.
_QUIET = ("--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")

# Tracked paths with mode and blob, once more where they are changed (C) or deleted (R), and untracked ones.
_LISTED = ("-z", "-t", "--stage", "--cached", "--modified", "--deleted", "--others", "--exclude-standard")

# A cold checkout on a network file system takes a minute; more than this is a FIFO or a dead mount.
PATIENCE_S = 300.0

_SUBMODULE = b"160"

# What `whereabouts` asks for. Names of folders may hold line breaks: the answer `true` parts the two.
_PLACE = re.compile(rb"(/.*?)\ntrue\n(/.*?)\n(?:([0-9a-f]{40,64})\n)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Checkout:
    """The code as it lies there: `tree` digests contents, so committing what was dirty changes nothing.

    `common` is the git folder that all worktrees of the repository share: nothing tracked can lie in it.
    """

    top: Path
    commit: str
    tree: str
    entries: Mapping[bytes, bytes]
    common: Path

    @property
    def private(self) -> Path:
        """Where gpudebug keeps what no clone, patch or tracked file may bring: `gpudebug/` in `common`."""
        return self.common / "gpudebug"

    def changed_since(self, before: Checkout) -> list[str]:
        """The paths whose content differs between two looks at one checkout."""
        paths = before.entries.keys() | self.entries.keys()
        return sorted(os.fsdecode(p) for p in paths if before.entries.get(p) != self.entries.get(p))


def _environment() -> dict[str, str]:
    """The environment without inherited GIT_* variables, which could point at another repository."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    return env | {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}


def _refuse_special(path: Path) -> None:
    """Git opens whatever stands there, and would wait at a FIFO for ever."""
    if path.exists() and not path.is_file():
        raise GitError("not a regular file", file=str(path), next="put a plain file in its place")


def _start(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    _refuse_special(folder / ".gitignore")
    try:
        return subprocess.Popen(
            ["git", "-C", str(folder), *_QUIET, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(),
        )
    except FileNotFoundError:
        raise GitError("git is not installed", next="install git") from None


def _answer(process: subprocess.Popen[bytes], folder: Path) -> tuple[bytes, bytes]:
    try:
        return process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise GitError(
            f"git did not answer within {PATIENCE_S:g} s",
            file=str(folder),
            next="see what `git status` does there",
        ) from None


def _finish(process: subprocess.Popen[bytes], folder: Path) -> bytes:
    out, err = _answer(process, folder)
    if process.returncode:
        lines = err.decode("utf-8", "replace").strip().splitlines() or ["git failed"]
        raise GitError(lines[0].removeprefix("fatal: "), file=str(folder), next="mend the git repository")
    return out


def looked(folder: Path, *arguments: str) -> bytes | None:
    """What a git command says that only reads; None where it fails."""
    process = _start(folder, *arguments)
    out, _ = _answer(process, folder)
    return out if process.returncode == 0 else None


def top_folder(folder: Path) -> Path:
    """The top of the work tree that `folder` is in. GitError outside of one."""
    return whereabouts(folder).top


class Whereabouts(NamedTuple):
    """The top of a work tree, the git folder that all its worktrees share, and the commit of HEAD: None
    before the first one."""

    top: Path
    common: Path
    commit: str | None

    @property
    def private(self) -> Path:
        """As of a `Checkout`."""
        return self.common / "gpudebug"


def whereabouts(folder: Path) -> Whereabouts:
    """Where `folder` lies in git. GitError outside of a work tree."""
    asked = ("--path-format=absolute", "--show-toplevel", "--is-inside-work-tree", "--git-common-dir")
    process = _start(folder, "rev-parse", *asked, "--verify", "HEAD")
    out, err = _answer(process, folder)
    found = _PLACE.fullmatch(out)
    if found:
        top, common, commit = found.groups()
        return Whereabouts(Path(os.fsdecode(top)), Path(os.fsdecode(common)), commit and commit.decode())
    text = err.decode("utf-8", "replace").strip()
    if "not a git repository" in text:
        raise GitError(
            "not in a git repository: every measurement is tied to the code that it measured",
            file=str(folder),
            next="git init && git add -A && git commit -m 'Start'",
        )
    if "must be run in a work tree" in text:
        raise GitError(
            "a bare git repository has no files to run", file=str(folder), next="use a clone of it"
        )
    said = text.splitlines()[0].removeprefix("fatal: ") if text else "git failed"
    raise GitError(said, file=str(folder), next="mend the git repository")


def identify(folder: Path, exclude: Iterable[Path] = (), campaign: str | None = None) -> Checkout:
    """Digest the checkout around `folder`, leaving out the paths in `exclude` and all below them.

    In every folder with a tracked file of the name `campaign` that one and what is written beside it
    (`progress`, `hypotheses`, `runs`) are left out too: another campaign goes on while this one measures.

    Counted are the tracked files as they are now, and untracked Python files that lie beside tracked
    ones or at the top: what a training writes into the repository (outputs, checkpoints, copies of its
    own code in folders of their own) must not make its own baseline stale.
    """
    top, common, commit = whereabouts(folder)
    if commit is None:
        raise GitError(
            "the git repository has no commit yet",
            file=str(top),
            next="git add -A && git commit -m 'Start'",
        )
    exclude = tuple(exclude)
    outside = _outside(top, exclude)
    listed = _finish(_start(top, "ls-files", *_LISTED), top)
    entries, changed, untracked = _read_listing(listed, outside)
    theirs = _theirs(entries, campaign)
    if theirs:
        entries, changed, untracked = _read_listing(listed, _outside(top, (*exclude, *theirs)))
    folders = {b""} | {path.rpartition(b"/")[0] for path in entries}
    beside = {p for p in untracked if p.endswith(b".py") and p.rpartition(b"/")[0] in folders}
    submodules = {path for path, content in entries.items() if content.startswith(_SUBMODULE)}
    for path in submodules:
        entries[path] = _submodule(top / os.fsdecode(path), entries[path])
    sha256 = any(len(content) > 64 for content in entries.values())
    for path in (changed | beside) - submodules:
        content = _content(top / os.fsdecode(path), sha256)
        if content is None:
            entries.pop(path, None)
        else:
            entries[path] = content
    text = b"".join(path + b"\0" + entries[path] + b"\0" for path in sorted(entries))
    return Checkout(top, commit, short_digest(text), entries, common)


def _outside(top: Path, exclude: Iterable[Path]) -> Callable[[bytes], bool]:
    """A predicate: is a path, relative to the top, outside of everything excluded?"""
    prefixes = []
    for path in exclude:
        absolute = path if path.is_absolute() else top / path
        if absolute.is_relative_to(top):
            prefixes.append(os.fsencode(absolute.relative_to(top)))

    def outside(path: bytes) -> bool:
        return not any(path == p or path.startswith(p + b"/") for p in prefixes)

    return outside


def _theirs(entries: Iterable[bytes], campaign: str | None) -> list[Path]:
    """What belongs to the campaigns of other folders, relative to the top."""
    if campaign is None:
        return []
    end = os.fsencode(campaign)
    found = [Path(os.fsdecode(path)) for path in entries if path.endswith(end)]
    owners = [path.parent for path in found if path.name == campaign]
    return [owner / name for owner in owners for name in (campaign, "progress", "hypotheses", "runs")]


def _read_listing(
    listing: bytes, outside: Callable[[bytes], bool]
) -> tuple[dict[bytes, bytes], set[bytes], set[bytes]]:
    """Mode and blob of every tracked path as the index has it, changed tracked paths, untracked paths."""
    entries: dict[bytes, bytes] = {}
    changed: set[bytes] = set()
    untracked: set[bytes] = set()
    for line in listing.split(b"\0"):
        tag, _, rest = line.partition(b" ")
        if tag == b"?":
            untracked.add(rest)
            continue
        head, tab, path = rest.partition(b"\t")
        if not tab or not outside(path):
            continue
        if tag in (b"C", b"R"):
            changed.add(path)
        mode, blob, _stage = head.split(b" ")
        entries[path] = mode[:3] + b" " + blob
    return entries, changed, {p for p in untracked if outside(p)}


def _submodule(folder: Path, pinned: bytes) -> bytes:
    """The tree of a submodule as it lies there; the commit that is pinned where it is not checked out."""
    if not (folder / ".git").exists():
        return pinned
    return _SUBMODULE + b" " + identify(folder).tree.encode()


def _content(path: Path, sha256: bool) -> bytes | None:
    """Kind and git blob of a changed file, so that a commit of the same bytes digests the same."""
    try:
        if path.is_symlink():
            data, kind = os.fsencode(os.readlink(path)), b"120"
        elif path.is_dir():
            return None
        elif not path.is_file() and path.exists():
            raise GitError(
                "a tracked file is not a regular file any more", file=str(path), next="put it back"
            )
        else:
            data, kind = path.read_bytes(), b"100"
    except FileNotFoundError:
        return None
    except OSError as e:
        raise GitError(f"cannot read a changed file: {e.strerror}", file=str(path), next="mend it") from None
    import hashlib

    made = hashlib.new("sha256" if sha256 else "sha1", b"blob %d\0" % len(data), usedforsecurity=False)
    made.update(data)
    return kind + b" " + made.hexdigest().encode()


def differs(folder: Path, commit: str, borrowed: Iterable[str] = ()) -> bool:
    """Whether anything but `borrowed` paths is changed or new in the worktree at `folder`; False where git
    cannot tell, for then somebody has to mend it first. What is ignored is not looked at.
    """
    process = _start(folder, "rev-parse", "--show-prefix")
    if _answer(process, folder)[0] != b"\n":
        return False
    others = [f":(top,literal,exclude){path}" for path in borrowed]
    process = _start(folder, "diff", "--quiet", "--no-ext-diff", "--no-textconv", commit, "--", ".", *others)
    _answer(process, folder)
    if process.returncode:
        return process.returncode == 1
    return bool(looked(folder, "ls-files", "-z", "--others", "--exclude-standard", "--", ".", *others))


def ignores(folder: Path, path: str) -> bool:
    """Whether git ignores `path`."""
    process = _start(folder, "check-ignore", "--quiet", "--", path)
    _answer(process, folder)
    return process.returncode == 0


def create(folder: Path, message: str) -> None:
    """A new repository with all that lies in `folder` as its first commit (for the demo)."""
    for arguments in (
        ("init", "--quiet"),
        ("add", "--all"),
        (
            "-c",
            "user.name=gpudebug",
            "-c",
            "user.email=gpudebug@localhost",
            "-c",
            "commit.gpgsign=false",
            "commit",
            "--quiet",
            "--message",
            message,
        ),
    ):
        _finish(_start(folder, *arguments), folder)
