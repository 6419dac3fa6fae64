"""The only owner of paths: reading and replacing files, locks, run folders, manifests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpudebug.core.lazy import loader

if TYPE_CHECKING:
    from gpudebug.edges.opener import NotPermitted, file_digest, os_error, read_file, read_head, read_tail
    from gpudebug.edges.store import leases
    from gpudebug.edges.store.allocations import AllocationNote, Allocations, NextWish, RunRequest
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
    from gpudebug.edges.store.hostlocks import device_locks, drop_free
    from gpudebug.edges.store.kept import get_order, get_pages, put_order, put_pages
    from gpudebug.edges.store.leases import LEASE_S, Lease, Moment
    from gpudebug.edges.store.locks import RunClaim, check_locks, claimed, held_by, locked
    from gpudebug.edges.store.lone import IGNORED, IGNORES, LoneFolders
    from gpudebug.edges.store.root import (
        CONFIG,
        ELEMENTS,
        RUNS,
        WORKTREES,
        find_element,
        find_root,
        private_folder,
    )
    from gpudebug.edges.store.seen import cache_folder, get_seen, put_seen
    from gpudebug.edges.store.sessions import SessionFolder, Sessions
    from gpudebug.edges.store.summary import STATUS
    from gpudebug.edges.store.workspace import BLOCK, Workspace

# `status` needs little of the store.
__getattr__ = loader(
    __name__,
    {
        "gpudebug.edges.opener": "NotPermitted file_digest os_error read_file read_head read_tail",
        "allocations": "AllocationNote Allocations NextWish RunRequest",
        "corelocks": "core_locks sharing",
        "detached": "Detached new_id said",
        "elements": "ELEMENT_PROGRESS ElementNote Elements",
        "files": (
            "SavedInBetween check_output copy_into digest get_json in_git make_folder put_file put_json "
            "remove_file replace_file resolve_inside start_file"
        ),
        "folders": "JOB LEASES RECORDS OtherFormat RunFolder Scrub place_new run_number slug",
        "foreign": "Lives noted_jobs",
        "hostlocks": "device_locks drop_free",
        "kept": "get_order get_pages put_order put_pages",
        "leases": "LEASE_S Lease Moment",
        "locks": "RunClaim check_locks claimed held_by locked",
        "lone": "IGNORED IGNORES LoneFolders",
        "root": "CONFIG ELEMENTS RUNS WORKTREES find_element find_root private_folder",
        "seen": "cache_folder get_seen put_seen",
        "sessions": "SessionFolder Sessions",
        "summary": "STATUS",
        "workspace": "BLOCK Workspace",
    },
)
