"""Parsing a progress file of 10,000 hypotheses, in a process that does nothing else."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.table import Row

COUNT = 10_000
_CHILD = """
import json, resource, sys, time
from pathlib import Path
from gpudebug.core.progress import parse
data = Path(sys.argv[1]).read_bytes()
start = time.process_time()
document = parse(data, "bench.md")
seconds = time.process_time() - start
assert len(document.hypotheses) == int(sys.argv[2])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([seconds, peak, len(data)]))
"""


def rows() -> list[Row]:
    """Seconds of parsing, and the process's peak memory with the file in it."""
    from tests.support.progress_files import many_hypotheses

    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "progress.md"
        path.write_bytes(many_hypotheses(COUNT))
        runs = [
            json.loads(subprocess.check_output([sys.executable, "-c", _CHILD, str(path), str(COUNT)]))
            for _ in range(5)
        ]
    size = runs[0][2] / 1e6
    return [
        Row(f"parse {COUNT:,} hypotheses ({size:.1f} MB)", statistics.median(r[0] for r in runs), 0.3, "s"),
        Row("  peak memory of that process", max(r[1] for r in runs), 60.0, "MB"),
    ]
