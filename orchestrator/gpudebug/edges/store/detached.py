"""The files of a run that goes on without its caller: who makes it, its log, its answer, when to stop."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpudebug.core.errors import BusyError, GpudebugError
from gpudebug.edges.store.files import (
    make_folder,
    opened_folder,
    read_file,
    read_head,
    remove_file,
    saying,
    start_file,
    write_beside,
)
from gpudebug.edges.store.foreign import Lives, noted_jobs, unknown_job
from gpudebug.edges.store.locks import RunClaim, held_by, locked

KEPT_LOGS = 10
_MAX_SAID = 4096


@dataclass(frozen=True)
class HolderNote:
    """What the holder of a lock wrote into it, {} where it wrote nothing; whether it still holds it.

    One that wrote and holds no more was killed: who ends by itself empties the file.
    """

    holder: dict[str, Any]
    held: bool

    @property
    def killed(self) -> bool:
        return bool(self.holder) and not self.held


def said(lock: Path, lives: Lives = unknown_job) -> HolderNote:
    """Who holds a claim, as it says itself; or who held it when it was killed. Reads only."""
    holder = held_by(lock, lives)
    if holder is not None:
        return HolderNote(holder, True)
    if not os.path.lexists(lock):
        return HolderNote({}, False)
    try:
        left = json.loads(read_head(lock, _MAX_SAID))
    except (ValueError, RecursionError):
        return HolderNote({}, False)
    return HolderNote(left if isinstance(left, dict) else {}, False)


class Detached:
    """`runs/.detached`, closed to other users. Each background process has an `id` in its files' names."""

    def __init__(self, runs: Path) -> None:
        self.folder = runs / ".detached"

    @property
    def lock(self) -> Path:
        """Held by the background process alone, from its first moment until its answer is written."""
        return self.folder / "lock"

    @property
    def answer(self) -> Path:
        return self.folder / "answer.json"

    def log(self, id: str) -> Path:
        return self.folder / f"{id}.log"

    def _stop(self, id: str) -> Path:
        return self.folder / f"{id}.stop"

    def start_log(self, id: str) -> Path:
        """An empty log, mode 0600; the oldest ones of before are removed."""
        make_folder(self.folder)
        with (
            saying(self.folder, "cannot make the folder"),
            opened_folder(self.folder) as folder,
            contextlib.suppress(OSError),  # Another user's folder: its log will say so.
        ):
            os.fchmod(folder, 0o700)
        start_file(self.log(id))
        for old in sorted(self.folder.glob("*.log"))[:-KEPT_LOGS]:
            remove_file(old)
        return self.log(id)

    def take(self, holder: Mapping[str, object], lives: Lives = unknown_job) -> RunClaim:
        """The lock for the background process itself. BusyError if there is one; `lives` as of RunClaim."""
        return RunClaim(self.lock, dict(holder), lives)

    def said(self) -> HolderNote:
        return said(self.lock, noted_jobs(self.folder.parent))

    def forget_killed(self) -> None:
        """Empty the lock of a process that was killed; nothing if one lives."""
        if self.said().killed:
            with (
                contextlib.suppress(BusyError),
                self.take({}, noted_jobs(self.folder.parent)),
            ):  # Busy: a new one has begun.
                pass

    def put_answer(self, answer: Mapping[str, Any]) -> None:
        """Keep an answer for the next caller; an older one that was not taken is replaced."""
        data = json.dumps(answer).encode()
        with locked(self.folder / "answer.lock"), saying(self.answer, "cannot write"):
            write_beside(self.answer, data, 0o600)

    def take_answer(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any] | None:
        """The answer, if there is one that is `wanted`: it is handed out once."""
        if not os.path.lexists(self.answer):
            return None
        with locked(self.folder / "answer.lock"):
            try:
                found = json.loads(read_file(self.answer))
            except (GpudebugError, ValueError, RecursionError):
                return None
            if not isinstance(found, dict) or not wanted(found):
                return None
            remove_file(self.answer)
        return found

    def ask_to_stop(self, id: str) -> None:
        start_file(self._stop(id))

    def asked_to_stop(self, id: str) -> bool:
        return os.path.lexists(self._stop(id))

    def forget_request(self, id: str) -> None:
        remove_file(self._stop(id))


def new_id(since: str) -> str:
    """A name for a background process's files; they sort by time."""
    return f"{since[:19].replace(':', '').replace('-', '')}-{os.getpid()}"
