"""The runs of one side of a comparison: their folders, whether they completed, what is read of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gpudebug.core.catalogue import frameworks
from gpudebug.core.compare.compared_run import ComparedRun
from gpudebug.core.errors import GpudebugError
from gpudebug.core.records import Evidence, RunRecord
from gpudebug.core.trainlog.latency import Latency, LatencyReader
from gpudebug.core.trainlog.text import readable
from gpudebug.core.words import AS_PLANNED, Outcome
from gpudebug.edges import store
from gpudebug.engine.run import adapters

# Of a longer log the beginning is read.
_LOG_READ = 64 << 20
_TAIL_READ = 4096
_LINE = 200


class CompareFailed(GpudebugError):
    """A run did not complete, so its figures are not those of the whole command."""

    code = "compare"


@dataclass(frozen=True)
class ComparedSide:
    """A or B with the folders of its runs, and what is in these."""

    label: str
    folders: tuple[store.RunFolder, ...]
    runs: tuple[ComparedRun, ...] = ()


def asked_of(record: RunRecord) -> int | None:
    """Return the steps that a run's command asks for."""
    return frameworks.steps_of(record.argv, adapters.known())


def refuse_incomplete(folder: store.RunFolder, evidence: Evidence, who: str = "") -> None:
    if evidence.outcome in AS_PLANNED:
        return
    raise CompareFailed(
        f"run {folder.name}{who} did not complete: {_ending(folder, evidence)}",
        file=str(folder.log),
        next="compare commands that complete" if who else "compare runs that completed",
    )


def _ending(folder: store.RunFolder, e: Evidence) -> str:
    """Return how a run ended, in the last words of its log if they say more: `CRASHED (oom_gpu): …`."""
    if e.failure and e.failure.lines:
        return f"{e.outcome} ({e.failure.kind}): {e.failure.lines[-1]}"
    if e.outcome is not Outcome.CRASHED:
        return f"{e.outcome}: {e.reason}" if e.reason else str(e.outcome)
    status = f"signal {e.signal}" if e.signal else f"exit status {e.exit_status}"
    last = folder.scrub(_last_line(folder.log))
    return f"{e.outcome}, {status}" + (f": {last}" if last else "")


def _last_line(log: Path) -> str:
    if not log.exists():
        return ""
    lines = store.read_tail(log, _TAIL_READ).splitlines()
    return next((text for line in reversed(lines) if (text := readable(line, _LINE).strip())), "")


def latency_of(folder: store.RunFolder) -> Latency | None:
    if not folder.has("train.log"):
        return None
    reader = LatencyReader()
    reader.feed(store.read_head(folder.log, _LOG_READ))
    return reader.latency()
