"""The only owner of paths: reading and replacing files, locks, run folders, manifests."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gpudebug.edges.store import leases
from gpudebug.edges.store.detached import Detached, new_id, said
from gpudebug.edges.store.files import (
    RUNS,
    NotPermitted,
    SavedInBetween,
    check_output,
    copy_into,
    digest,
    file_digest,
    get_json,
    in_git,
    make_folder,
    os_error,
    put_file,
    put_json,
    read_file,
    read_head,
    read_tail,
    remove_file,
    replace_file,
    resolve_inside,
    start_file,
)
from gpudebug.edges.store.folders import (
    CONFIG,
    JOB,
    LEASES,
    RECORDS,
    WORKTREES,
    OtherFormat,
    RunFolder,
    Scrub,
    Workspace,
    find_root,
    place_new,
    run_number,
    slug,
)
from gpudebug.edges.store.kept import STATUS, get_order, put_order
from gpudebug.edges.store.leases import LEASE_S, Lease, Moment
from gpudebug.edges.store.locks import Claim, check_locks, claimed, held_by, locked

if TYPE_CHECKING:
    from gpudebug.edges.store.hostlocks import device_locks
    from gpudebug.edges.store.sessions import SessionFolder, Sessions

__all__ = [
    "CONFIG",
    "JOB",
    "LEASES",
    "LEASE_S",
    "RECORDS",
    "RUNS",
    "STATUS",
    "WORKTREES",
    "Claim",
    "Detached",
    "Lease",
    "Moment",
    "NotPermitted",
    "OtherFormat",
    "RunFolder",
    "SavedInBetween",
    "Scrub",
    "SessionFolder",
    "Sessions",
    "Workspace",
    "check_locks",
    "check_output",
    "claimed",
    "copy_into",
    "device_locks",
    "digest",
    "file_digest",
    "find_root",
    "get_json",
    "get_order",
    "held_by",
    "in_git",
    "leases",
    "locked",
    "make_folder",
    "new_id",
    "os_error",
    "place_new",
    "put_file",
    "put_json",
    "put_order",
    "read_file",
    "read_head",
    "read_tail",
    "remove_file",
    "replace_file",
    "resolve_inside",
    "run_number",
    "said",
    "slug",
    "start_file",
]

_HOMES = {"device_locks": "hostlocks", "SessionFolder": "sessions", "Sessions": "sessions"}


def __getattr__(name: str) -> Any:
    """Load what only a run or a loop needs when it is asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
