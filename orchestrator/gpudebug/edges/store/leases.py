"""A claim to implement a hypothesis: a lease of time, which ends by itself wherever its holder went.

The progress file says who holds the claim; the lease says until when. It is kept beside the run folders, one
JSON file a hypothesis.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from gpudebug.core.errors import StoreError
from gpudebug.edges.opener import NotPermitted, file_digest, os_error, read_head
from gpudebug.edges.store.files import remove_file, replace_file
from gpudebug.edges.store.foreign import lock_place
from gpudebug.edges.store.locks import locked

LEASE_S = 3600.0
_NAME = re.compile(r"h([1-9][0-9]{0,8})\.json", re.ASCII)
_LONGEST = 4096
_NO_TIME = 1e15


@dataclass(frozen=True)
class Moment:
    """What the clocks of a host say. `boottime_s` counts from boot, sleep included; `wall_s` from 1970.

    `boot` is the kernel's name for this boot, empty if unknown.
    """

    host: str
    boot: str
    boottime_s: float
    wall_s: float


def now() -> Moment:
    """This moment on this host."""
    place = lock_place()
    return Moment(place.host, place.boot, time.clock_gettime(time.CLOCK_BOOTTIME), time.time())


@dataclass(frozen=True)
class Lease:
    """A claim to implement, renewed last at `renewed`.

    `session` (None: a person) and `since` (ISO time, as the progress file has it) are the claim's token.
    """

    session: str | None
    since: str
    renewed: Moment

    def live(self, now: Moment) -> bool:
        """Tell whether it was renewed within the last LEASE_S.

        Within one boot the boot's clock decides, which cannot be set; a boot that is over ended the session
        too; another host is believed by the time of day. A renewal that seems to lie further ahead than a
        lease is long is no renewal.
        """
        then = self.renewed
        if then.boot and then.boot == now.boot:
            elapsed = now.boottime_s - then.boottime_s
        elif then.boot and now.boot and then.host == now.host:
            return False
        else:
            elapsed = now.wall_s - then.wall_s
        return -LEASE_S <= elapsed < LEASE_S


def take(folder: Path, number: int, session: str | None, since: str) -> Lease:
    """Write the lease of hypothesis `number`, from now on, in place of any other.

    Who may have it is decided by the progress file, under its lock.
    """
    with _locked(folder):
        return _write(folder, number, Lease(session, since, now()))


def renew(folder: Path, number: int, session: str | None, since: str) -> Lease | None:
    """Let the lease count from now again, also one that had ended; None if it is not this claim's."""
    with _locked(folder):
        lease = _read(folder / f"h{number}.json")
        if lease is None or (lease.session, lease.since) != (session, since):
            return None
        return _write(folder, number, replace(lease, renewed=now()))


def read(folder: Path) -> dict[int, Lease]:
    """Return all leases by the number of their hypothesis. What is broken or of another kind is left out.

    Raises NotPermitted where one may not be read: then it is unknown whether it has ended.
    """
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return {}
    except OSError as e:
        raise os_error(e, folder, "cannot list") from None
    matches = sorted((int(m[1]), m[0]) for m in map(_NAME.fullmatch, names) if m)
    found = ((number, _read(folder / name)) for number, name in matches)
    return {number: lease for number, lease in found if lease}


def drop(folder: Path, number: int) -> None:
    """End the lease of hypothesis `number`, if there is one."""
    path = folder / f"h{number}.json"
    if not os.path.lexists(path):
        return
    with _locked(folder):
        remove_file(path)


def _locked(folder: Path) -> contextlib.AbstractContextManager[None]:
    return locked(folder / ".lock")


def _write(folder: Path, number: int, lease: Lease) -> Lease:
    path = folder / f"h{number}.json"
    data = {"session": lease.session, "since": lease.since, **asdict(lease.renewed)}
    before = file_digest(path) if path.is_file() else None
    replace_file(path, json.dumps(data).encode() + b"\n", root=folder, expected=before)
    return lease


def _read(path: Path) -> Lease | None:
    try:
        record = json.loads(read_head(path, _LONGEST))
    except NotPermitted:
        raise
    except (StoreError, ValueError, RecursionError):
        return None
    return _lease(record)


def _lease(record: Any) -> Lease | None:
    """Parse a lease from a file's JSON; None if it is not one."""
    match record:
        case {
            "session": str() | None as session,
            "since": str() as since,
            "host": str() as host,
            "boot": str() as boot,
            "boottime_s": int() | float() as boottime,
            "wall_s": int() | float() as wall,
        } if abs(boottime) < _NO_TIME and abs(wall) < _NO_TIME:
            return Lease(session, since, Moment(host, boot, boottime, wall))
    return None
