"""What a cluster last said of jobs, in a file that all processes of a campaign share."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gpudebug.core.cluster.jobs import JobEnd, JobState, SeenJob
from gpudebug.core.cluster.slurm_requests import NodeGroup
from gpudebug.core.errors import ClusterError
from gpudebug.edges import opener

_FILE = "states.json"
_TIMES = ("next_at", "answered", "unaccounted_at", "nodes_at")
MOST_JOBS = 1000
_MOST_PAUSES = 3


_ACCOUNTING_S = 3600.0
"""A cluster without accounting is asked again after so long: it may get it, or have been mistaken."""
_NODES_S = 600.0
"""So long what was said of the nodes serves while the cluster may not be asked again."""


@dataclass
class AnswerBook:
    """What is known, and when the cluster may be asked again. All times are seconds of the epoch.

    `next_at` is the earliest time of the next question. `answered` is when the latest question was asked that
    has its answer in `jobs`. `missed` counts for each job how many answers in turn did not name it.
    `unaccounted_at` is when accounting was said to be off; 0 if it was not. `nodes` is what was said of the
    nodes at `nodes_at`, `elsewhere` whether some are not this host.
    """

    next_at: float = 0.0
    answered: float = 0.0
    unaccounted_at: float = 0.0
    jobs: dict[str, SeenJob] = field(default_factory=dict)
    missed: dict[str, int] = field(default_factory=dict)
    nodes: tuple[NodeGroup, ...] = ()
    nodes_at: float = 0.0
    elsewhere: bool = False

    def may_ask(self, pause_s: float) -> bool:
        """Tell whether the pause is over; a time that lies further ahead than a question may take comes from
        a clock set back."""
        return not 0 < self.next_at - time.time() <= _MOST_PAUSES * pause_s

    def asking(self, pause_s: float) -> None:
        """Keep others from asking while this process waits for an answer."""
        self.next_at = time.time() + _MOST_PAUSES * pause_s

    def asked(self, pause_s: float, calls: int) -> None:
        self.next_at = time.time() + pause_s * max(1, calls)

    @property
    def accounting(self) -> bool:
        return not _lately(self.unaccounted_at, _ACCOUNTING_S)

    @property
    def knows_nodes(self) -> bool:
        return _lately(self.nodes_at, _NODES_S)


def _lately(at: float, within_s: float) -> bool:
    return 0 <= time.time() - at < within_s


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[AnswerBook]:
    """The book, for this process alone; at the end of the block it is written back if it changed.

    Nothing is asked within the block: a slow cluster would have all processes of the campaign wait.
    """
    path = folder / _FILE
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = opener.descriptor(path, os.O_RDWR | os.O_CREAT)
    except OSError as e:
        raise _not_kept(e, path, "make it writable") from None
    with os.fdopen(fd, "r+b", buffering=0) as file:
        # A file system without locks: two may ask at once, which is all that happens.
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        before = file.readall()
        book = _read(before)
        yield book
        # Most looks ask nothing: a shared file system is not written to at each of them.
        if (after := _written(book)) == before:
            return
        try:
            file.seek(0)
            file.truncate()
            if file.write(after) < len(after):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as e:
            raise _not_kept(e, path, "free some space, then run it again") from None


def _not_kept(e: OSError, path: Path, next: str) -> ClusterError:
    """Nothing is asked without it: every look would be a question to the controller."""
    return ClusterError(f"cannot keep what the cluster says: {e.strerror}", file=str(path), next=next)


def _read(data: bytes) -> AnswerBook:
    """A file that is new, was cut off, or is another version's is an empty book."""
    try:
        content = json.loads(data)
        return AnswerBook(
            jobs={job["id"]: _job(job) for job in content["jobs"]},
            missed={str(id): int(count) for id, count in content["missed"].items()},
            nodes=tuple(NodeGroup(**group) for group in content["nodes"]),
            elsewhere=bool(content["elsewhere"]),
            **{name: float(content[name]) for name in _TIMES},
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return AnswerBook()


def _job(content: dict[str, Any]) -> SeenJob:
    end = content["end"]
    return SeenJob(
        **{
            **content,
            "state": JobState(content["state"]),
            "end": None if end is None else JobEnd(end),
            "nodes": tuple(content["nodes"]),
        }
    )


def _written(book: AnswerBook) -> bytes:
    kept = dict(list(book.jobs.items())[-MOST_JOBS:])
    missed = {id: count for id, count in book.missed.items() if id in kept}
    content = {
        **{name: getattr(book, name) for name in _TIMES},
        "nodes": [asdict(group) for group in book.nodes],
        "elsewhere": book.elsewhere,
        "jobs": [asdict(job) for job in kept.values()],
        "missed": missed,
    }
    return json.dumps(content, indent=1).encode()
