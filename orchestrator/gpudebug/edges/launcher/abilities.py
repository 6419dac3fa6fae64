"""Which means of ending a whole process tree this machine offers."""

from __future__ import annotations

import os

from gpudebug.edges.launcher.warden import processes
from gpudebug.edges.launcher.warden.cgroup import own_folder


def containment() -> dict[str, bool]:
    """Means of containment -> whether it works here. Without `subreaper` nothing can be promised."""
    return {
        "subreaper": _subreaper(),
        "pidfd": hasattr(os, "pidfd_open"),
        "cgroup": _writable_cgroup(),
    }


def _subreaper() -> bool:
    try:
        before = processes.is_subreaper()
        processes.set_subreaper(True)
        works = processes.is_subreaper()
        processes.set_subreaper(before)
    except OSError:
        return False
    return works


def _writable_cgroup() -> bool:
    folder = own_folder()
    return folder is not None and os.access(folder, os.W_OK)
