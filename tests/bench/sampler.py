"""What the sampler costs: `python -m tests.bench.sampler`.

Samples a job of a few processes at 10 Hz with host columns and prints the sampler's CPU time as a share
of one core, and its peak resident memory. The goal is at most 1 % and 20 MB.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests.bench.table import Row, print_table
from tests.support import nvml
from tests.support.sampling import SamplerProcess

from gpudebug.core.statistics.assumed import assumed
from gpudebug.edges import devices

GOAL_CORE_PERCENT, GOAL_RSS_MB = assumed("sampler_core"), assumed("sampler_mb")
TICKS = os.sysconf("SC_CLK_TCK")

# A training process with two workers, busy a tenth of the time.
JOB = """
import os, time
for _ in range(2):
    if os.fork() == 0:
        break
while True:
    used = time.process_time()
    while time.process_time() - used < 0.005:
        pass
    time.sleep(0.045)
"""


class Cost(NamedTuple):
    """Sampling only: what starting the process costs is in `start_s` (CPU time)."""

    device: str
    core_percent: float
    rss_mb: float
    start_s: float


def measure(folder: Path, name: str, spec: dict[str, object], env: dict[str, str], seconds: float) -> Cost:
    """The sampler's cost over `seconds` at 10 Hz."""
    own = folder / name
    own.mkdir()
    job = subprocess.Popen([sys.executable, "-c", JOB], start_new_session=True)
    try:
        with SamplerProcess(own, spec, env, interval=0.1, log=os.devnull, root_pid=os.getpid()) as run:
            run.launch(job.pid)
            run.wait_for_rows(1)
            before, began = _cpu_seconds(run.process.pid), time.monotonic()
            time.sleep(seconds)
            used, span = _cpu_seconds(run.process.pid) - before, time.monotonic() - began
            status = Path(f"/proc/{run.process.pid}/status").read_text()
            run.stop()
    finally:
        os.killpg(job.pid, 9)
        job.wait()
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    return Cost(name, 100 * used / span, peak / 1024, before)


def costs(seconds: float = 20.0) -> list[Cost]:
    """Measure both devices."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        env = nvml.standin(folder, "count=1\ngpu 0 util=15")
        gpu = devices.resolve("nvml", {**env, "CUDA_VISIBLE_DEVICES": "0"}).spec
        return [
            measure(folder, "cpu", {"kind": "cpu", "cores": 1.0}, dict(os.environ), seconds),
            measure(folder, "nvml", gpu, env, seconds),
        ]


def rows() -> list[Row]:
    """CPU share of a core and peak memory, for each device."""
    return [
        row
        for cost in costs()
        for row in (
            Row(f"sampler at 10 Hz, {cost.device}", cost.core_percent, GOAL_CORE_PERCENT, "% of a core"),
            Row("  its peak memory", cost.rss_mb, GOAL_RSS_MB, "MB"),
        )
    ]


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


if __name__ == "__main__":
    print_table(rows())
