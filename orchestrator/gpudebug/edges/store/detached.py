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
from gpudebug.edges.opener import read_file, read_head, saying
from gpudebug.edges.store.files import (
    appeared,
    make_folder,
    opened_folder,
    remove_file,
    start_file,
    write_beside,
)
from gpudebug.edges.store.foreign import Lives, noted_jobs, unknown_job
from gpudebug.edges.store.locks import RunClaim, held_by, locked

KEPT_LOGS = 10
_TAKEN = "taken"
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
    """The folder `detached` of the private one. Each background process has an `id` in its files' names."""

    def __init__(self, private: Path) -> None:
        self.folder = private / "detached"

    @property
    def lock(self) -> Path:
        """Held by the background process alone, from its first moment until its answer is written."""
        return self.folder / "lock"

    def answer(self, id: str) -> Path:
        return self.folder / f"answer-{id}.json"

    def log(self, id: str) -> Path:
        return self.folder / f"{id}.log"

    def _stop(self, id: str) -> Path:
        return self.folder / f"{id}.stop"

    def start_log(self, id: str) -> Path:
        """Return an empty log, mode 0600; the oldest ones of before are removed."""
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
        """Keep the answer of the process `id`, in a file of its own; the oldest ones are removed."""
        path = self.answer(str(answer["id"]))
        with locked(self.folder / "answer.lock"), saying(path, "cannot write"):
            write_beside(path, json.dumps(answer).encode(), 0o600)
            for old in self._answers()[KEPT_LOGS:]:
                remove_file(old)

    def take_answer(self, wanted: Callable[[dict[str, object]], bool]) -> dict[str, object] | None:
        """The newest answer that is `wanted`; it is handed out once, and with it those of before it that are.

        Whoever follows a process has its answer all the same: `answer_of`.
        """
        if not self._answers():
            return None
        with locked(self.folder / "answer.lock"):
            kept = [(path, found) for path in self._answers() if (found := _read_answer(path)) is not None]
            waiting = [(path, found) for path, found in kept if not found.get(_TAKEN) and wanted(found)]
            for path, found in waiting:
                write_beside(path, json.dumps({**found, _TAKEN: True}).encode(), 0o600)
            return waiting[0][1] if waiting else None

    def answer_of(self, id: str) -> dict[str, object] | None:
        """The answer of one process, for who follows it: also if it was handed out to another caller."""
        if not appeared(self.answer(id)):
            return None
        with locked(self.folder / "answer.lock"):
            found = _read_answer(self.answer(id))
            remove_file(self.answer(id))
        return found

    def has_answer(self) -> bool:
        """Tell whether an answer waits for a caller."""
        return any(not (_read_answer(path) or {_TAKEN: True}).get(_TAKEN) for path in self._answers())

    def _answers(self) -> list[Path]:
        """Newest first."""
        return sorted(self.folder.glob("answer*.json"), reverse=True)

    def ask_to_stop(self, id: str) -> None:
        start_file(self._stop(id))

    def asked_to_stop(self, id: str) -> bool:
        return appeared(self._stop(id))

    def forget_request(self, id: str) -> None:
        remove_file(self._stop(id))


def _read_answer(path: Path) -> dict[str, object] | None:
    try:
        found = json.loads(read_file(path))
    except (GpudebugError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def new_id(since: str) -> str:
    """Return a name for a background process's files; they sort by time."""
    return f"{since[:19].replace(':', '').replace('-', '')}-{os.getpid()}"
