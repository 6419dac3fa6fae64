"""The only owner of paths: reading and replacing files, locks, run folders, manifests."""

from gpudebug.edges.store.files import (
    NotPermitted,
    SavedInBetween,
    copy_into,
    digest,
    file_digest,
    make_folder,
    read_file,
    read_head,
    replace_file,
    resolve_inside,
    start_file,
)
from gpudebug.edges.store.folders import (
    CONFIG,
    OtherFormat,
    RunFolder,
    Scrub,
    Workspace,
    find_root,
    run_number,
)
from gpudebug.edges.store.locks import Claim, check_locks, claimed, locked

__all__ = [
    "CONFIG",
    "Claim",
    "NotPermitted",
    "OtherFormat",
    "RunFolder",
    "SavedInBetween",
    "Scrub",
    "Workspace",
    "check_locks",
    "claimed",
    "copy_into",
    "digest",
    "file_digest",
    "find_root",
    "locked",
    "make_folder",
    "read_file",
    "read_head",
    "replace_file",
    "resolve_inside",
    "run_number",
    "start_file",
]
