"""What this machine can spare while a test runs."""

from __future__ import annotations

import time


def core_share(seconds: float = 1.0) -> float:
    """The share of a core that one busy thread gets just now, between 0 and 1: low where others compute."""
    began, used = time.monotonic(), time.thread_time()
    while time.monotonic() - began < seconds:
        sum(range(1000))
    return (time.thread_time() - used) / (time.monotonic() - began)
