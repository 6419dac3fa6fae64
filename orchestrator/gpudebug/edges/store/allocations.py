"""The one allocation of a campaign, and what the login node asks the worker in it to do.

Both sides see these files alone: which job it is and what ended it, the one request that waits, the wish to
end it, and the lock of the worker. Closed to other users.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from gpudebug.core.errors import BusyError
from gpudebug.edges.opener import saying
from gpudebug.edges.store.detached import HolderNote, said
from gpudebug.edges.store.files import (
    appeared,
    copy_into,
    get_json,
    make_folder,
    opened_folder,
    put_json,
    remove_file,
    start_file,
)
from gpudebug.edges.store.foreign import ALLOCATION, Lives, noted_jobs, unknown_job
from gpudebug.edges.store.locks import RunClaim, locked


@dataclass(frozen=True)
class AllocationNote:
    """The job of an allocation, when and by whose session (None: a person) it was asked for.

    `waits` is why it waits, as the cluster said last, None once it runs; `ended` why it is over, `lost` if
    that was nothing that gpudebug does: what ran in it then is void. `failed` if its worker ended by itself,
    without a reason of gpudebug's. `left` says why its worker ended, and `left_at` when, before the cluster
    says what becomes of the job. `wanted` if gpudebug's user ended it: nobody asks for another one by itself.
    """

    job: str
    since: str
    session: str | None = None
    waits: str | None = None
    left: str | None = None
    left_at: str | None = None
    ended: str | None = None
    lost: bool = False
    failed: bool = False
    wanted: bool = False


@dataclass(frozen=True)
class NextWish:
    """What a person asks of one `next`: to test this hypothesis, to end its test within so many seconds."""

    hypothesis: int | None = None
    within_s: float | None = None


@dataclass(frozen=True)
class RunRequest:
    """What the worker is to do for a caller: `verb` with its options, as the caller's session."""

    id: str
    since: str
    verb: str
    session: str | None = None
    role: str | None = None
    runs: int | None = None
    profile: str | None = None
    hypothesis: int | None = None
    within_s: float | None = None

    @property
    def wish(self) -> NextWish:
        return NextWish(self.hypothesis, self.within_s)


_Note = TypeVar("_Note", AllocationNote, RunRequest)


class Allocations:
    """The files of one campaign's allocation, in its private folder."""

    def __init__(self, private: Path) -> None:
        self.folder = private / ALLOCATION
        self.worker = self.folder / "worker.lock"
        self.log = self.folder / "worker-{job}.log"
        self.trial = self.folder / "doctor"
        self.defaults = self.folder / "cluster.yaml"
        self._note = self.folder / "job.json"
        self._request = self.folder / "request.json"
        self._end = self.folder / "end"

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the files for the moment of a change, so that no request comes while the allocation ends."""
        self.make()
        with locked(self.folder / "lock"):
            yield

    def make(self) -> None:
        make_folder(self.folder)
        with (
            saying(self.folder, "cannot make the folder"),
            opened_folder(self.folder) as folder,
            contextlib.suppress(OSError),  # Another user's: what is written next says so.
        ):
            os.fchmod(folder, 0o700)

    def note(self) -> AllocationNote | None:
        """Return the last allocation; None before the first, or if its file is not what gpudebug writes."""
        return _read(self._note, AllocationNote)

    def put_note(self, note: AllocationNote) -> None:
        put_json(self._note, asdict(note))

    def begin(self, note: AllocationNote) -> None:
        """Keep a new allocation; the wish to end the last one goes with it."""
        remove_file(self._end)
        self.put_note(note)

    def put_token(self) -> str:
        """Write a new word that other nodes are to find in `asked` of the folder `trial`."""
        self.make()
        make_folder(self.trial)
        token = secrets.token_hex(8)
        copy_into(self.trial / "asked", token.encode())
        return token

    def put_defaults(self, slurm: Mapping[str, object]) -> None:
        """Keep the cluster's own defaults for the worker: its node may lack the file that has them."""
        self.make()
        put_json(self.defaults, {"runner": {"slurm": dict(slurm)}})

    def request(self) -> RunRequest | None:
        """Return what waits for the worker."""
        return _read(self._request, RunRequest)

    def ask(self, request: RunRequest) -> None:
        """Leave a request. BusyError if another waits. While the files are held by `changing`."""
        other = self.request()
        if other is not None and other.id != request.id:
            whose = f"session {other.session}" if other.session else "a person"
            raise BusyError(
                f"the allocation has a request of {whose} already, since {other.since}",
                next="wait for it to end (gpudebug wait), then run this again",
            )
        put_json(self._request, asdict(request))

    def forget_request(self, id: str) -> bool:
        """Take a request away: it is begun, or not wanted any more; False if it is not there."""
        found = self.request()
        if found is None or found.id != id:
            return False
        remove_file(self._request)
        return True

    def ask_to_end(self) -> None:
        self.make()
        start_file(self._end)

    def asked_to_end(self) -> bool:
        return appeared(self._end)

    def take(self, holder: Mapping[str, object], lives: Lives = unknown_job) -> RunClaim:
        """Return the lock of the worker. BusyError if there is one already; `lives` as of RunClaim."""
        self.make()
        return RunClaim(self.worker, dict(holder), lives)

    def served(self) -> HolderNote:
        """Who holds the lock of the worker."""
        return said(self.worker, noted_jobs(self.folder.parent))


def _read(path: Path, kind: type[_Note]) -> _Note | None:
    found = get_json(path) if appeared(path) else None
    if not isinstance(found, dict):
        return None
    names = {field.name: str(field.type) for field in fields(kind)}
    if not all(name in names and _is(value, names[name]) for name, value in found.items()):
        return None
    try:
        return kind(**found)
    except TypeError:
        return None


def _is(value: Any, annotation: str) -> bool:
    """Tell whether a value of JSON is of an annotation such as `str | None`."""
    word = {str: "str", int: "int", bool: "bool", type(None): "None"}.get(type(value))
    return word in annotation.split(" | ")
