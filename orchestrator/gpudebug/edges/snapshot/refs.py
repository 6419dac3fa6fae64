"""References of our own, below refs/gpudebug/: what keeps commits from being collected."""

from __future__ import annotations

import time
from pathlib import Path

from gpudebug.edges.snapshot.repository import Repository, alone, failing

PREFIX = "refs/gpudebug/"

# Git holds the lock of a reference for milliseconds; packing all of them may take longer.
_STALE_S = 1.0
_POLL_S = 0.05


def ours(ref: str) -> str:
    if not ref.startswith(PREFIX):
        raise ValueError(f"{ref} is not below {PREFIX}")
    return ref


def change(repository: Repository, ref: str, commit: str | None) -> None:
    """Point `ref` at a commit, or delete it. A lock that a killed git left of it is taken away."""
    arguments = ("update-ref", "-d", ours(ref)) if commit is None else ("update-ref", ours(ref), commit)
    lock = repository.common / f"{ref}.lock"
    with alone(repository.common) as descriptor:
        git = Repository(repository.top, keep=(descriptor,))
        answer = git.ask(*arguments)
        if answer.status and str(lock) in answer.err:
            _wait_or_break(lock)
            answer = git.ask(*arguments)
    if answer.status:
        raise repository.failure(answer.err)


def _wait_or_break(lock: Path) -> None:
    """Remove a lock that outlives any git that could hold it: no gpudebug does, for this one is alone."""
    deadline = time.monotonic() + _STALE_S
    while lock.exists():
        if time.monotonic() > deadline:
            with failing("remove a stale lock", lock):
                lock.unlink(missing_ok=True)
        time.sleep(_POLL_S)
