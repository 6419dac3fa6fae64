"""Git commands through gitpython: nothing inherited, none of the user's programs run, failures one line."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from gpudebug.core.errors import GitError
from gpudebug.edges import removal
from gpudebug.edges.git import grounds
from gpudebug.edges.git.address import PATIENCE_S, Address, failed, find_at
from gpudebug.edges.git.grounds import PRIVATE, alone, failing
from gpudebug.edges.host import boot_id

if TYPE_CHECKING:
    import git

# What of a user's configuration would run programs, prompt, paint, or change bytes on their way.
_NEUTRAL = (
    *("safe.bareRepository=explicit", "core.fsmonitor=false", "core.hooksPath=/dev/null"),
    *("core.untrackedCache=false", "core.trustctime=true", "core.checkStat=default"),
    *("core.splitIndex=false", "core.safecrlf=false", "core.quotePath=true", "commit.gpgSign=false"),
    *("color.ui=false", "gc.auto=0", "maintenance.auto=false", "submodule.recurse=false"),
    *("diff.suppressBlankEmpty=false", "apply.whitespace=nowarn", "apply.ignoreWhitespace=no"),
)
_ENVIRONMENT = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    # git-lfs downloads nothing on our behalf.
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GIT_AUTHOR_NAME": "gpudebug",
    "GIT_AUTHOR_EMAIL": "gpudebug@localhost",
    "GIT_COMMITTER_NAME": "gpudebug",
    "GIT_COMMITTER_EMAIL": "gpudebug@localhost",
}
_STARTING = threading.Lock()
_INDEXES = "indexes"
_NO_BOOT = "unknown"
# On NFS another host's lock cannot be seen: what it made is left alone for longer than a command takes.
_OTHERS_S = 3600.0


class GitOutput(NamedTuple):
    status: int
    out: bytes
    err: str


@contextmanager
def _nothing_inherited() -> Iterator[None]:
    """GIT_* out of the environment while a command starts: gitpython copies it, and has no option."""
    with _STARTING:
        taken = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("GIT_")}
        try:
            yield
        finally:
            os.environ.update(taken)


def _not_installed() -> GitError:
    return GitError("git is not installed", next="install git")


def _library() -> Any:
    """Return the module `git`, which looks for the program when it is loaded."""
    try:
        with _nothing_inherited():
            import git
    except ImportError as e:
        if e.name is not None and e.name.partition(".")[0] in ("git", "gitdb"):
            raise GitError("gitpython is not installed", next="pip install gitpython") from None
        raise _not_installed() from None
    return git


class Repository:
    """One work tree's git. `extra` are variables for every command; descriptors in `keep` are inherited."""

    def __init__(
        self, at: Address, *, extra: Mapping[str, str] | None = None, keep: tuple[int, ...] = ()
    ) -> None:
        self.at = at
        self._extra = dict(extra or {})
        self._keep = keep

    @cached_property
    def _git(self) -> git.Git:
        """Loaded with the first command: if there is nothing to do, none is run."""
        library = _library()
        with _nothing_inherited():
            return cast("git.Git", library.Git(str(self.at.common)))

    @property
    def top(self) -> Path:
        return self.at.top

    @property
    def common(self) -> Path:
        """The git folder that all worktrees share."""
        return self.at.common

    def with_variables(self, **extra: str) -> Repository:
        return Repository(self.at, extra={**self._extra, **extra}, keep=self._keep)

    def keeping(self, *descriptors: int) -> Repository:
        """Return the same for commands that inherit `descriptors`, and with them the locks on these."""
        return Repository(self.at, extra=self._extra, keep=(*self._keep, *descriptors))

    def ask(self, *arguments: str, data: bytes = b"") -> GitOutput:
        """Run git with `data` on its standard input, whatever its status. GitError if it does not end."""
        settings = [word for setting in _NEUTRAL for word in ("-c", setting)]
        # With -C git itself says that a folder is not there; gitpython would run it somewhere else.
        command = ["git", *self.at.words, *settings, *arguments]
        execute = self._git.execute
        try:
            with _nothing_inherited():
                started = execute(
                    command,
                    as_process=True,
                    istream=subprocess.PIPE,
                    env={**_ENVIRONMENT, **self.at.variables, **self._extra},
                    pass_fds=(*self._keep, *self.at.inherited),
                )
        except _library().GitCommandNotFound:
            raise _not_installed() from None
        except OSError as e:
            raise GitError(
                f"cannot start git: {e.strerror}",
                file=str(self.top),
                next="try again when the machine has room",
            ) from None
        process = cast("subprocess.Popen[bytes]", started.proc)
        try:
            out, err = process.communicate(data, timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise GitError(
                f"git {arguments[0]} did not end within {PATIENCE_S:g} s",
                file=str(self.top),
                next="see what `git status` does there",
            ) from None
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate()
        return GitOutput(process.returncode, out, err.decode("utf-8", "replace"))

    def run(self, *arguments: str, data: bytes = b"") -> bytes:
        """Standard output of a command that must succeed."""
        answer = self.ask(*arguments, data=data)
        if answer.status:
            raise self.failure(answer.err)
        return answer.out

    def line(self, *arguments: str, data: bytes = b"") -> str:
        return os.fsdecode(self.run(*arguments, data=data).removesuffix(b"\n"))

    def failure(self, err: str) -> GitError:
        """Return the error for what git wrote on standard error."""
        return failed(self.top, err)

    def names(self, *arguments: str, data: bytes = b"") -> list[bytes]:
        """Return the NUL-separated names that a command lists."""
        return [name for name in self.run(*arguments, data=data).split(b"\0") if name]

    @property
    def sparse_too(self) -> tuple[str, ...]:
        """What lets `git add` update files outside of a sparse checkout's patterns."""
        return ("--sparse",) if self._git.version_info >= (2, 34) else ()

    @contextmanager
    def index(self, *, copied: bool) -> Iterator[Repository]:
        """The repository with an index of its own: a copy of the work tree's, or none yet.

        A copy keeps what the files' times say, so that only changed files are read, and skip-worktree bits.
        """
        with _temporary_index(self.common) as path:
            if copied:
                source = self.at.index or self.at.git_dir / "index"
                with failing("copy the git index", source):
                    if source.exists():
                        shutil.copyfile(source, path)
                        # By the index's own time git knows which files were saved too shortly before it
                        # to believe their times.
                        shutil.copystat(source, path)
            yield self.with_variables(GIT_INDEX_FILE=str(path))

    def commit(self, tree: str, parent: str, message: str) -> str:
        """A commit object, dated as its parent: the same tree, parent and message make the same one."""
        seconds = self.line("rev-list", "--no-walk", "--timestamp", parent).partition(" ")[0]
        date = f"@{seconds} +0000"
        dated = self.with_variables(GIT_AUTHOR_DATE=date, GIT_COMMITTER_DATE=date)
        return dated.line("commit-tree", "-p", parent, "-F", "-", tree, data=message.encode())


def opened(top: Path) -> tuple[Repository, str]:
    """The repository whose work tree is `top`, and the commit of HEAD. GitError without one, or bare."""
    at, commit = find_at(top)
    if commit is None:
        raise GitError(
            "the git repository has no commit yet",
            file=str(at.top),
            next="git add -A && git commit -m 'Start'",
        )
    return Repository(at), commit


@contextmanager
def _temporary_index(common: Path) -> Iterator[Path]:
    """The path of an index that is gone afterwards, and with it those that kills left: their lock is free."""
    place = common / PRIVATE / _INDEXES
    with grounds.private(common, _INDEXES) as parent:
        name = f"{boot_id() or _NO_BOOT}.{secrets.token_hex(8)}"
        with failing("make a temporary index", place), alone(common):
            os.mkdir(name, 0o700, dir_fd=parent)
            with removal.folder(place, name) as made:
                kept = _locked(made)
            _sweep(parent, place)
        try:
            yield place / name / "index"
        finally:
            with failing("remove a temporary index", place):
                _remove(parent, name)
            os.close(kept)


def _locked(folder: int) -> int:
    """A lock in a folder that has just been made: a later holder knows that its process has ended."""
    descriptor = os.dup(folder)
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


def _sweep(parent: int, place: Path) -> None:
    for name in os.listdir(parent):
        with suppress(OSError, removal.NotOurs), removal.folder(place, name) as left:
            boot = name.rpartition(".")[0]
            elsewhere = boot not in ("", boot_id() or _NO_BOOT)
            if elsewhere and time.time() - os.fstat(left).st_mtime < _OTHERS_S:
                continue
            try:
                fcntl.flock(left, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as e:
                # One that is held is at work; without locks it is unknown.
                if e.errno in (errno.EWOULDBLOCK, errno.EACCES, errno.ENOLCK, errno.ENOTSUP):
                    continue
                raise
            _remove(parent, name)


def _remove(parent: int, name: str) -> None:
    found = removal.identity_at(parent, name)
    if found is not None:
        removal.remove_folder(parent, name, found)
