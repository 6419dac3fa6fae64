"""Whether a path can be on the nodes of a cluster: folders that every host has of its own cannot."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path

from gpudebug.core.errors import ClusterError
from gpudebug.edges import opener

_OWN = ("/tmp", "/var/tmp", "/dev/shm", "/run", "/var/run")
_IN_MEMORY = frozenset({"tmpfs", "ramfs", "devtmpfs"})
VARIABLE = "GPUDEBUG_CLUSTER"
USUAL = Path("/etc/gpudebug/cluster.yaml")
_MOST_BYTES = 2**20


def own_to_each_host(path: str, mounts: str | None = None) -> str | None:
    """Return the folder around `path` that each host has its own of; None if it may be shared.

    A folder in memory, and the usual ones for temporary files unless something is mounted there: `mounts`
    is the text of /proc/self/mounts.
    """
    real = os.path.realpath(path)
    point, kind = _mounted(real, _mounts() if mounts is None else mounts)
    if kind in _IN_MEMORY:
        return point
    for folder in _OWN:
        if Path(real).is_relative_to(folder) and not (Path(point).is_relative_to(folder) and _remote(kind)):
            return folder
    return None


def elsewhere(hosts: Iterable[str]) -> bool:
    """Whether a node is another host than this one. `hosts` are host names, or addresses of this host."""
    here = {"localhost", "127.0.0.1", "::1", socket.gethostname(), socket.gethostname().partition(".")[0]}
    return any(host and host not in here and host.partition(".")[0] not in here for host in hosts)


def _remote(kind: str) -> bool:
    return kind.startswith(("nfs", "fuse")) or kind in {
        *("lustre", "gpfs", "beegfs", "ceph", "cifs", "smb3", "9p", "virtiofs", "panfs", "wekafs", "afs"),
    }


def _mounts() -> str:
    try:
        return Path("/proc/self/mounts").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""


def _mounted(path: str, mounts: str) -> tuple[str, str]:
    """The mount point that `path` is below, and its file system; the last of two at one place counts."""
    found = ("/", "")
    for line in mounts.splitlines():
        words = line.split(" ")
        if len(words) < 3:
            continue
        point = words[1].replace("\\040", " ")
        if Path(path).is_relative_to(point) and len(point) >= len(found[0]):
            found = (point, words[2])
    return found


def cluster_file(environ: Mapping[str, str] | None = None, usual: Path = USUAL) -> tuple[str, str] | None:
    """Text and path of the file; None if there is none. ClusterError if one is named and cannot be read."""
    named = (os.environ if environ is None else environ).get(VARIABLE, "")
    path = Path(named) if named else usual
    try:
        with opener.opened(path, follow=True) as file:
            return opener.read(file, _MOST_BYTES + 1).decode("utf-8"), str(path)
    except FileNotFoundError:
        if not named:
            return None
        reason = "there is no such file"
    except OSError as e:
        reason = str(e.strerror)
    except UnicodeDecodeError:
        reason = "not UTF-8"
    whose = VARIABLE if named else "the cluster's defaults"
    raise ClusterError(f"{whose}: {reason}", file=str(path), next=f"correct it, or set {VARIABLE}")
