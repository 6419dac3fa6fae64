"""`gpudebug status`, and `analyze` of a page of a log, over a typer hello-world.

Whole processes in turn, the median of the pairs' ratios. Both campaigns are as a cycle leaves them: their
summaries are written.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.bench.table import Row
from tests.engine.conftest import make_recordings
from tests.support.campaigns import Campaign, make_replay_campaign
from tests.support.many import multiply

from gpudebug.engine.status.summary import record

HELLO = """import typer
app = typer.Typer()

@app.command()
def main(name: str = "world") -> None:
    print("hello", name)

app()
"""
PAIRS = 15
BOUND = 1.15
MANY = 10_000
PAGE_BOUND = 1.5
MANY_BOUND = 3.5
"""0.6 s where the hello-world takes 0.17 s."""


def _campaign(folder: Path) -> Campaign:
    """A campaign with its baseline and a VALIDATED hypothesis."""
    campaign = make_replay_campaign(folder / "campaign", make_recordings(folder / "recordings"))
    campaign.pin()
    campaign.run("next").expect(0)
    campaign.propose("--set --lr=0.2")
    campaign.run("next").expect(0)
    return campaign


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


def _ratio(hello: Path, *words: str) -> float:
    ours = [str(Path(sys.executable).parent / "gpudebug"), *words]
    theirs = [sys.executable, str(hello)]
    return statistics.median([_seconds(ours) / _seconds(theirs) for _ in range(PAIRS + 1)][1:])


def rows() -> Iterator[Row]:
    """The ratios of CPU seconds."""
    with tempfile.TemporaryDirectory() as name:
        hello = Path(name, "hello.py")
        hello.write_text(HELLO)
        page = Path(name, "train.log")
        page.write_text(
            "".join(f"step {10 * n} loss {2.5 * 0.97**n:.4f} lr 0.001 12.3 it/s\n" for n in range(50))
        )
        campaign = _campaign(Path(name))
        status = ("-C", str(campaign.folder), "status")
        yield Row("status over a typer hello-world", _ratio(hello, *status), BOUND, "x CPU time")
        multiply(campaign, MANY)
        record(campaign.folder, None, "gpudebug next")
        yield Row("  of 10,000 verdicts", _ratio(hello, *status), MANY_BOUND, "x CPU time")
        yield Row(
            "analyze of a page of a log over it",
            _ratio(hello, "analyze", str(page)),
            PAGE_BOUND,
            "x CPU time",
        )
