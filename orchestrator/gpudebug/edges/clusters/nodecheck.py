"""`python -m gpudebug.edges.clusters.nodecheck FOLDER TOKEN NODES`: what one node of a cluster sees.

Started once on each node. It prints one line of JSON; the nodes try each other's lock by files in FOLDER, in
which the caller has written TOKEN before. Standard library only, as all of it is read on each node.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path

ASKED, HELD, LOCK = "asked", "held", "lock"
PATIENCE_S = 60.0
"""As long as NFS may show old attributes of a folder by default (acdirmax)."""
_POLL_S = 0.1


def look(
    folder: str, token: str, nodes: int, index: int, patience_s: float = PATIENCE_S
) -> dict[str, object]:
    """What this node sees: `sees` the token, `lock` of another node is `kept`, `local`, or why not tried."""
    place = Path(folder)
    sees = _within(patience_s, lambda: _read(place / ASKED) == token)
    return {
        "node": os.environ.get("SLURMD_NODENAME") or platform.node(),
        "host": platform.node(),
        "boot": _read(Path("/proc/sys/kernel/random/boot_id")),
        "sees": sees,
        "lock": _lock(place, token, nodes, index, patience_s) if sees and nodes > 1 else "not tried",
        "python": f"{sys.executable} {platform.python_version()}",
        "libc": " ".join(platform.libc_ver()),
        "driver": _read(Path("/proc/driver/nvidia/version")).partition("\n")[0],
        "cores": len(os.sched_getaffinity(0)),
    }


def _lock(place: Path, token: str, nodes: int, index: int, patience_s: float) -> str:
    try:
        with (place / LOCK).open("a+b") as file:
            if index == 0:
                return _hold(place, file.fileno(), token, nodes, patience_s)
            if not _within(patience_s, lambda: _read(place / HELD) == token):
                return "not tried: files of another node arrive late"
            said = _try(file.fileno())
            (place / f"tried-{index}").write_text(token)
            return said
    except OSError as e:
        return f"not possible: {e.strerror}"


def _hold(place: Path, fd: int, token: str, nodes: int, patience_s: float) -> str:
    fcntl.flock(fd, fcntl.LOCK_EX)
    (place / HELD).write_text(token)
    others = [place / f"tried-{index}" for index in range(1, nodes)]
    _within(patience_s, lambda: all(_read(other) == token for other in others))
    return "held"


def _try(fd: int) -> str:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return "kept"
    return "local"


def _read(path: Path) -> str:
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return path.read_text().strip()
    return ""


def _within(seconds: float, what: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not what():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_S)
    return True


if __name__ == "__main__":
    print(json.dumps(look(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(os.environ["SLURM_PROCID"]))))
