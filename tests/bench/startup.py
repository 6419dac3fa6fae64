"""`gpudebug status` over a typer hello-world: whole processes in turn, the median of the pairs' ratios."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.table import Row

HELLO = """import typer
app = typer.Typer()

@app.command()
def main(name: str = "world") -> None:
    print("hello", name)

app()
"""
PAIRS = 15
BOUND = 1.25


def _campaign(folder: Path) -> None:
    """A campaign of 20 hypotheses, some with results that nothing verifies, in a repository of its own."""
    from tests.support.progress_files import many_hypotheses

    from gpudebug.edges import git

    (folder / "gpudebug.yaml").write_text(
        "campaign: bench\nworkload:\n  command: python train.py --lr=0.1 --num_workers=0\ndevice: cpu:1\n"
    )
    (folder / "train.py").write_text("print('step 1 loss 1.0')\n")
    (folder / "progress").mkdir()
    (folder / "progress" / "bench.md").write_bytes(many_hypotheses(20))
    git.create(folder, "Start")


def _seconds(argv: list[str]) -> float:
    """CPU seconds of one whole process: wall time would measure whoever else uses the machine."""
    # Installed packages have their bytecode beside them; so must ours.
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, env=env)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{argv} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def rows() -> list[Row]:
    """One row: the ratio of CPU seconds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        hello = folder / "hello.py"
        hello.write_text(HELLO)
        repository = folder / "campaign"
        repository.mkdir()
        _campaign(repository)
        ours = [str(Path(sys.executable).parent / "gpudebug"), "-C", str(repository), "status"]
        theirs = [sys.executable, str(hello)]
        ratios = [_seconds(ours) / _seconds(theirs) for _ in range(PAIRS + 1)][1:]
    return [Row("status over a typer hello-world", statistics.median(ratios), BOUND, "x CPU time")]
