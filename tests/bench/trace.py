"""What the analysis of a trace costs: `python -m tests.bench.trace [MB]`, 40 by default.

The unit is a plain pass of msgspec over the same file: 8 MB at a time cut at a newline, three fields an
event, kernels added up. Each figure is the least CPU time of three processes. Memory is the peak of the
whole process of `gpudebug analyze`, less 40 bytes a device event, for a trace with an event a line, with all
on one line, pretty-printed, and of kernels alone; of these also what each further one takes. With
GPUDEBUG_HTA_PYTHON naming an interpreter that has HolisticTraceAnalysis, its loader is timed as well
(minutes for 200 MB).
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.bench.table import Row, print_table
from tests.support import traces

DEFAULT_MB = 40
MANY = 2_000_000
REPEATS = 3
ALL, MEMORY_MB, HTA = 6.0, 150.0, 1 / 20
BYTES_PER_EVENT = 40

_READ = """
def chunks(size):
    with open(sys.argv[1], "rb") as f:
        while piece := f.read(size):
            yield piece
"""
_UNIT = """
import msgspec
class Event(msgspec.Struct, gc=False):
    cat: str = ""
    ts: float = 0.0
    dur: float = 0.0
decode = msgspec.json.Decoder(list[Event]).decode
def run():
    busy, rest = 0.0, b""
    for piece in chunks(8 << 20):
        piece = rest + piece
        piece = piece.partition(b'"traceEvents": [')[2] or piece
        cut = piece.rfind(b"\\n")
        rest = piece[cut + 1 :]
        for event in decode(b"[" + piece[:cut].rstrip(b",") + b"]"):
            if event.cat == "kernel":
                busy += event.dur
"""
_ALL = (
    "from gpudebug.core.trace.summary import summarise\ndef run():\n    summarise(chunks(1 << 20)).answer\n"
)
_HTA = """
import logging
logging.disable(logging.CRITICAL)
from hta.common.trace import Trace
def run():
    Trace({0: sys.argv[1]}, "/").parse_traces(use_multiprocessing=False)
"""
_TIMED = "import sys, time\n{0}{1}start = time.process_time()\nrun()\nprint(time.process_time() - start)\n"


def rows(megabytes: int = DEFAULT_MB) -> Iterator[Row]:
    """Ratios to the unit and peak memory, each with the bound that it must keep."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "trace.json"
        device = traces.write(path, megabytes * 10**6)
        unit = timed(_UNIT, path)
        whole = timed(_ALL, path)
        yield Row(f"trace of {megabytes:,} MB: plain pass", unit, float("inf"), "s")
        yield Row("  all keys", whole / unit, ALL, "plain passes")
        python = os.environ.get("GPUDEBUG_HTA_PYTHON")
        if python:
            # Its time grows faster than the file: the bound is for 200 MB.
            bound = HTA if megabytes >= 200 else float("inf")
            yield Row("  all keys", whole / timed(_HTA, path, python, 1), bound, "of HTA's loader")
        yield memory(peak_mb(path), device, "lines")
        for layout in ("one", "pretty"):
            device = traces.write(path, megabytes * 10**6, layout)
            yield memory(peak_mb(path), device, layout)
        yield from kernels_alone(path)


def kernels_alone(path: Path) -> Iterator[Row]:
    """Peak memory of a trace that is nothing but kernels, and by how much a further one raises it."""
    peaks = []
    for count in (MANY // 4, MANY):
        traces.write_kernels(path, count)
        peaks.append(peak_mb(path))
    yield memory(peaks[1], MANY, "kernels alone")
    slope = (peaks[1] - peaks[0]) * 2**20 / (MANY - MANY // 4)
    yield Row("  memory of each further kernel", slope, BYTES_PER_EVENT, "bytes")


def memory(peak: float, device: int, what: str) -> Row:
    """What the analysis takes beyond so many device events."""
    beyond = peak - device * BYTES_PER_EVENT / 2**20
    return Row(f"  memory beyond {device:,} events, {what}", beyond, MEMORY_MB, "MB")


def timed(code: str, path: Path, python: str = sys.executable, repeats: int = REPEATS) -> float:
    """The least CPU seconds of so many processes."""
    command = [python, "-c", _TIMED.format(_READ, code), str(path)]
    return min(float(subprocess.check_output(command).split()[-1]) for _ in range(repeats))


def peak_mb(path: Path) -> float:
    """Peak resident memory of `gpudebug analyze`, in MB of 2**20 bytes."""
    child = subprocess.Popen(
        [sys.executable, "-m", "gpudebug", "analyze", "--json", str(path)], stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    with child.stdout as said:
        json.load(said)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0
    return _peak(usage)


def _peak(usage: resource.struct_rusage) -> float:
    return usage.ru_maxrss / 1024


if __name__ == "__main__":
    sys.exit(0 if print_table(rows(*map(int, sys.argv[1:]))) else 1)
