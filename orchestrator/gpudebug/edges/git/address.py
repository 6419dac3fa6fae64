"""Where git works: its folder and its work tree by name. Git looks for a repository in `find` only."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from gpudebug.core.errors import GitError
from gpudebug.edges import opener

# A bare repository in a folder of a clone is data; its configuration must start nothing.
SAFE = ("-c", "safe.bareRepository=explicit")

# Whether a file is as the index has it: its time of change, unlike the others, cannot be set back.
_STRICT = ("-c", "core.trustctime=true", "-c", "core.checkStat=default")

# Hooks, fsmonitor and optional index refreshes run code or write; none of that is ours to cause.
_QUIET = (
    *("--no-optional-locks", "-c", "diff.autoRefreshIndex=false"),
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", *_STRICT, *SAFE),
)

# A cold checkout on a network file system takes a minute; more than this is a FIFO or a dead mount.
PATIENCE_S = 300.0

# What `find` asks for. Names of folders may hold line breaks: the words between the paths part them.
_ASKED = (
    *("--path-format=absolute", "--show-toplevel", "--is-inside-work-tree", "--git-dir"),
    *("--is-bare-repository", "--git-common-dir"),
)
_FOUND = re.compile(rb"(/.*?)\ntrue\n(/.*?)\n(?:true|false)\n(/.*?)\n(?:([0-9a-f]{40,64})\n)?", re.DOTALL)
_LONGEST_NAME = 1 << 16
_BAD_INDEX = re.compile(r"index file (corrupt|smaller)|bad index |bad signature 0x")


@dataclass(frozen=True, slots=True)
class Address:
    """A work tree, git's folder of it, and the one that all work trees of the repository share.

    With `descriptor`, the open folder of the work tree, git works in that folder whatever `top` has become.
    `index` is another index than git's folder has.
    """

    top: Path
    git_dir: Path
    common: Path
    descriptor: int | None = None
    index: Path | None = None

    @property
    def private(self) -> Path:
        """Where gpudebug keeps what no clone, patch or tracked file may bring."""
        return self.common / "gpudebug"

    @property
    def place(self) -> Path:
        """The work tree for opening files in it."""
        return self.top if self.descriptor is None else Path(f"/proc/self/fd/{self.descriptor}")

    @property
    def words(self) -> tuple[str, ...]:
        """The options that name it to git."""
        # From its current folder git does not look at the path again.
        tree = self.top if self.descriptor is None else "."
        return "-C", str(self.place), f"--git-dir={self.git_dir}", f"--work-tree={tree}"

    @property
    def inherited(self) -> tuple[int, ...]:
        """The descriptors that git needs."""
        return () if self.descriptor is None else (self.descriptor,)

    @property
    def variables(self) -> dict[str, str]:
        """The variables that git needs."""
        return {} if self.index is None else {"GIT_INDEX_FILE": str(self.index)}


class FoundRepository(NamedTuple):
    """What `find` found, and the commit of HEAD: None before the first one."""

    at: Address
    commit: str | None


def _environment() -> dict[str, str]:
    """Return the environment without inherited GIT_* variables, which could point at another repository."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    # A commit is what its name says, whatever refs/replace holds.
    return env | {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_REPLACE_OBJECTS": "1"}


def _refuse_special(path: Path) -> None:
    """Git opens whatever has this name, and would wait at a FIFO for ever."""
    if path.exists() and not path.is_file():
        raise GitError("not a regular file", file=str(path), next="put a plain file in its place")


def _run(words: tuple[str, ...], folder: Path, at: Address | None = None) -> subprocess.Popen[bytes]:
    _refuse_special(folder / ".gitignore")
    try:
        return subprocess.Popen(
            ["git", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment() | (at.variables if at else {}),
            pass_fds=at.inherited if at else (),
        )
    except FileNotFoundError:
        raise GitError("git is not installed", next="install git") from None
    except OSError as e:
        raise GitError(
            f"cannot start git: {e.strerror}", file=str(folder), next="try again when the machine has room"
        ) from None


def start(at: Address, *arguments: str) -> subprocess.Popen[bytes]:
    """Start a git command that only reads."""
    return _run((*at.words, *_QUIET, *arguments), at.place, at)


def answer(process: subprocess.Popen[bytes], folder: Path) -> tuple[bytes, bytes]:
    """Return what a command wrote. GitError if it does not end."""
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


def finish(process: subprocess.Popen[bytes], folder: Path) -> bytes:
    """Return what a command wrote. GitError if it failed."""
    out, err = answer(process, folder)
    if process.returncode:
        raise failed(folder, err.decode("utf-8", "replace"))
    return out


def looked(at: Address, *arguments: str) -> bytes | None:
    """Return what a git command that only reads wrote; None if it failed."""
    process = start(at, *arguments)
    out, _ = answer(process, at.top)
    return out if process.returncode == 0 else None


def find(folder: Path) -> FoundRepository:
    """Find the repository that `folder` is in: the only place where git looks for one, and it runs nothing.

    GitError outside of a work tree, and in a bare repository that merely lies in a folder.
    """
    process = _run(("-C", str(folder), *_QUIET, "rev-parse", *_ASKED, "--verify", "HEAD"), folder)
    out, err = answer(process, folder)
    found = _FOUND.fullmatch(out)
    if found is None:
        raise _not_found(folder, err.decode("utf-8", "replace"))
    top, git_dir, common = (Path(os.fsdecode(path)) for path in found.groups()[:3])
    if not any(leads_to(above / ".git", git_dir) for above in (folder.resolve(), *folder.resolve().parents)):
        raise _bare(folder)
    commit = found.group(4)
    return FoundRepository(Address(top, git_dir, common), commit.decode() if commit else None)


def whereabouts(folder: Path) -> Address:
    """Return where the work tree that `folder` is in lies. GitError outside of one."""
    return find(folder).at


def find_at(top: Path) -> FoundRepository:
    """Return the repository whose work tree is `top`, and not one around it."""
    found = find(top)
    if os.path.realpath(found.at.top) != os.path.realpath(top):
        raise GitError(
            f"its .git is gone, and {found.at.top} is another repository",
            file=str(top),
            next="put its .git back",
        )
    return found


def leads_to(entry: Path, git_dir: Path) -> bool:
    """Tell whether `entry`, the .git of a work tree, is or names this folder of git's."""
    try:
        if entry.is_file():
            with opener.opened(entry, follow=True) as file:
                named = os.fsdecode(opener.read(file, _LONGEST_NAME).removeprefix(b"gitdir:").strip())
            entry = entry.parent / named
        return os.path.samefile(entry, git_dir)
    except (OSError, ValueError):
        return False


def _bare(folder: Path) -> GitError:
    return GitError(
        "a bare git repository has no files to run", file=str(folder), next="use a clone of it, or leave it"
    )


def _not_found(folder: Path, text: str) -> GitError:
    if "not a git repository" in text:
        entries = (above / ".git" for above in (folder.resolve(), *folder.resolve().parents))
        entry = next(filter(os.path.lexists, entries), None)
        if entry is not None:
            return _no_repository(entry)
        return GitError(
            "not in a git repository: every measurement is tied to the code that it measured",
            file=str(folder),
            next="git init && git add -A && git commit -m 'Start'",
        )
    if "must be run in a work tree" in text or "cannot use bare repository" in text:
        return _bare(folder)
    process = _run(("-C", str(folder), *_QUIET, "config", "--get", "core.worktree"), folder)
    elsewhere = os.fsdecode(answer(process, folder)[0]).strip()
    if elsewhere:
        return GitError(
            f"the work tree of its repository is elsewhere: core.worktree is set to {elsewhere}",
            file=str(folder),
            next="git config --unset core.worktree, or work in that folder",
        )
    return failed(folder, text)


def _no_repository(entry: Path) -> GitError:
    """Return the error for a `.git` that git takes for none."""
    head, heads = entry / "HEAD", entry / "refs" / "heads"
    advice = f"put back what it lacks, or move {entry} away and git init"
    if head.is_file() and not re.match(rb"ref: refs/|[0-9a-f]{40}", opener.read_head(head, 40, follow=True)):
        branches = sorted(str(path.relative_to(heads)) for path in heads.rglob("*") if path.is_file())
        usual = [name for name in ("main", "master") if name in branches]
        line = shlex.quote(f"ref: refs/heads/{[*usual, *branches, 'main'][0]}")
        advice = f"name the branch that you were on: echo {line} > {shlex.quote(str(head))}"
    return GitError("git does not see a repository there", file=str(entry), next=advice)


def message_of(err: str) -> str:
    """Return what of git's lines says what was wrong: the first error, and what it was fatal for."""
    lines = [line for line in err.splitlines() if line.strip()]
    found = [
        next((line.removeprefix(kind) for line in lines if line.startswith(kind)), None)
        for kind in ("error: ", "fatal: ")
    ]
    return "; ".join(line for line in found if line) or (lines[0] if lines else "git failed")


def failed(top: Path, err: str) -> GitError:
    """Return the error for what git wrote on standard error."""
    advice = "mend the git repository: `git fsck` and `git status` say more"
    if any(words in err for words in ("No space left", "Disk quota", "Out of diskspace")):
        return GitError("no space left on the device", file=str(top), next="free some space")
    if "dubious ownership" in err:
        named = re.search(r"dubious ownership in repository at '(.+)'", err)
        owned = shlex.quote(named.group(1) if named else str(top))
        advice = f"git config --global --add safe.directory {owned}"
    if "filter" in err and "lfs" in err:
        advice = "install git-lfs (its filter is configured), or run `git lfs uninstall`"
    if _BAD_INDEX.search(err):
        advice = 'your files stay as they are: rm "$(git rev-parse --git-path index)" && git reset'
    return GitError(message_of(err), file=str(top), next=advice)
