"""The only owner of paths: reading and replacing files, locks, run folders, manifests."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpudebug.edges.opener import NotPermitted, file_digest, os_error, read_file, read_head, read_tail
    from gpudebug.edges.store import leases
    from gpudebug.edges.store.allocations import AllocationNote, Allocations, RunRequest
    from gpudebug.edges.store.corelocks import core_locks, sharing
    from gpudebug.edges.store.detached import Detached, new_id, said
    from gpudebug.edges.store.elements import ELEMENT_PROGRESS, ElementNote, Elements
    from gpudebug.edges.store.files import (
        SavedInBetween,
        check_output,
        copy_into,
        digest,
        get_json,
        in_git,
        make_folder,
        put_file,
        put_json,
        remove_file,
        replace_file,
        resolve_inside,
        start_file,
    )
    from gpudebug.edges.store.folders import (
        JOB,
        LEASES,
        RECORDS,
        OtherFormat,
        RunFolder,
        Scrub,
        place_new,
        run_number,
        slug,
    )
    from gpudebug.edges.store.foreign import Lives, noted_jobs
    from gpudebug.edges.store.hostlocks import device_locks
    from gpudebug.edges.store.kept import get_order, get_pages, put_order, put_pages
    from gpudebug.edges.store.leases import LEASE_S, Lease, Moment
    from gpudebug.edges.store.locks import RunClaim, check_locks, claimed, held_by, locked
    from gpudebug.edges.store.lone import LoneFolders
    from gpudebug.edges.store.root import CONFIG, ELEMENTS, RUNS, WORKTREES, find_element, find_root
    from gpudebug.edges.store.seen import get_seen, put_seen
    from gpudebug.edges.store.sessions import SessionFolder, Sessions
    from gpudebug.edges.store.summary import STATUS
    from gpudebug.edges.store.workspace import BLOCK, Workspace

__all__ = [
    "BLOCK",
    "CONFIG",
    "ELEMENTS",
    "ELEMENT_PROGRESS",
    "JOB",
    "LEASES",
    "LEASE_S",
    "RECORDS",
    "RUNS",
    "STATUS",
    "WORKTREES",
    "AllocationNote",
    "Allocations",
    "Detached",
    "ElementNote",
    "Elements",
    "Lease",
    "Lives",
    "LoneFolders",
    "Moment",
    "NotPermitted",
    "OtherFormat",
    "RunClaim",
    "RunFolder",
    "RunRequest",
    "SavedInBetween",
    "Scrub",
    "SessionFolder",
    "Sessions",
    "Workspace",
    "check_locks",
    "check_output",
    "claimed",
    "copy_into",
    "core_locks",
    "device_locks",
    "digest",
    "file_digest",
    "find_element",
    "find_root",
    "get_json",
    "get_order",
    "get_pages",
    "get_seen",
    "held_by",
    "in_git",
    "leases",
    "locked",
    "make_folder",
    "new_id",
    "noted_jobs",
    "os_error",
    "place_new",
    "put_file",
    "put_json",
    "put_order",
    "put_pages",
    "put_seen",
    "read_file",
    "read_head",
    "read_tail",
    "remove_file",
    "replace_file",
    "resolve_inside",
    "run_number",
    "said",
    "sharing",
    "slug",
    "start_file",
]

_HOMES = {
    "allocations": "AllocationNote Allocations RunRequest",
    "corelocks": "core_locks sharing",
    "detached": "Detached new_id said",
    "elements": "ELEMENT_PROGRESS ElementNote Elements",
    "folders": "JOB LEASES RECORDS OtherFormat RunFolder Scrub place_new run_number slug",
    "foreign": "Lives noted_jobs",
    "hostlocks": "device_locks",
    "kept": "get_order get_pages put_order put_pages",
    "leases": "LEASE_S Lease Moment",
    "lone": "LoneFolders",
    "locks": "RunClaim check_locks claimed held_by locked",
    "root": "CONFIG ELEMENTS RUNS WORKTREES find_element find_root",
    "seen": "get_seen put_seen",
    "sessions": "SessionFolder Sessions",
    "summary": "STATUS",
    "workspace": "BLOCK Workspace",
    "gpudebug.edges.opener": "NotPermitted file_digest os_error read_file read_head read_tail",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Load what is asked for, and keep it: `status` needs little of the store."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "leases":
        return import_module(f"{__name__}.leases")
    home = _HOME.get(name, "files")
    found = globals()[name] = getattr(import_module(home if "." in home else f"{__name__}.{home}"), name)
    return found
