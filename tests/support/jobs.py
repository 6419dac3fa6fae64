"""Programs that run already when a test looks at them, and what a test needs to look."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpudebug.edges.attach import spy

needs_spy = pytest.mark.skipif(spy.find() is None, reason="py-spy is not installed: pip install py-spy")

# Waits most of the time in `fetch`, computes in `update`, prints a step now and then.
TRAINING = """
import sys, time

def fetch():
    time.sleep(0.03)

def update():
    until = time.monotonic() + 0.01
    while time.monotonic() < until:
        sum(range(500))

print("ready", flush=True)
step = 0
while True:
    fetch()
    update()
    step += 1
    print(f"step {step} loss {1 / step:.4f}", flush=True)
"""


@contextmanager
def running(
    code: str, folder: Path, *, env: Mapping[str, str] | None = None, ready: str = "ready"
) -> Iterator[subprocess.Popen[bytes]]:
    """A Python program whose output goes to `folder/job.log`, once it printed `ready`; killed at the end."""
    script, log = folder / "job.py", folder / "job.log"
    script.write_text(code)
    with open(log, "wb") as output:
        job = subprocess.Popen(
            [sys.executable, str(script)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=folder,
            env=None if env is None else dict(env),
            start_new_session=True,
        )
    try:
        until(lambda: ready in log.read_text())
        yield job
    finally:
        job.kill()
        job.wait()


def until(true: object, seconds: float = 30.0) -> None:
    """Wait until `true()` holds."""
    assert callable(true)
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.02)
