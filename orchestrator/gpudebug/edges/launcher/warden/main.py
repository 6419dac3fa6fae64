"""Entry of the warden's process."""

# pathlib would cost the warden a quarter of its start.

from __future__ import annotations

import contextlib
import json
import os
import signal

from . import processes
from .supervise import LIFELINE, Warden


def main() -> int:
    """Reads the specification, runs it, and returns 0 once nothing of it is left."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    for name in os.listdir("/proc/self/fd"):
        # Locks that we hold for gpudebug must not reach the job; the listing's own descriptor is gone by now.
        with contextlib.suppress(OSError):
            if int(name) > 2:
                os.set_inheritable(int(name), False)
    processes.set_subreaper(True)
    # The job runs as the same user: it must not reach into what we counted. Root may all the same.
    processes.prctl(processes.PR_SET_DUMPABLE, 0)
    wake, ring = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(ring, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
    data = b""
    while b"\n" not in data:
        more = os.read(LIFELINE, 1 << 20)
        if not more:
            return 0
        data += more
    line, _, commands = data.partition(b"\n")
    Warden(json.loads(line), commands, wake).run()
    return 0
