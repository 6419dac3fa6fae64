"""`gpudebug analyze` of traces and of exports of Nsight Systems, and of several ranks' together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpudebug.core.answers.analyze import RanksTogether, TraceAnswer
from gpudebug.core.errors import GpudebugError
from gpudebug.core.words import counted, from_to
from gpudebug.edges.sqlite import Database
from gpudebug.engine.run.trace_file import summary_of

if TYPE_CHECKING:
    from gpudebug.core.trace.nsys import NsysExport
    from gpudebug.core.trace.summary import TraceSummary

# A node of sixteen GPUs, twice: of more each is read by its number.
MOST_PROCESSES = 32
_NAMED = re.compile(r"(?:rank|worker|gpu)[-_.]?(\d+)", re.IGNORECASE)


@dataclass(frozen=True)
class AnalyzedTrace:
    """One process's trace: its answer, and what a comparison of ranks needs beside it.

    `left_out` processes of its file were not read.
    """

    answer: TraceAnswer
    summary: TraceSummary
    left_out: int = 0


def trace_of(path: Path) -> AnalyzedTrace:
    """Return what a trace says. Raises GpudebugError if the file holds none."""
    summary = summary_of(path)
    return AnalyzedTrace(TraceAnswer(file=str(path), **summary.answer), summary)


def nsys(path: Path, number: int | None = None) -> list[AnalyzedTrace]:
    """Return what an export of Nsight Systems says of the first processes that used a GPU, at most
    `MOST_PROCESSES`, or of one, counted from 1.

    Raises GpudebugError if the database is no such export, or damaged, or has no such process.
    """
    # numpy takes longer to import than a log to analyse.
    from gpudebug.core.trace.nsys import NsysExport

    try:
        with Database(path) as database:
            export = NsysExport(database)
            processes: Sequence[int | None] = export.processes or (None,)
            count = len(processes)
            if number is not None and number > count:
                raise GpudebugError(
                    f"has no run {number}: {counted(count, 'process', 'processes')} used a GPU",
                    next=from_to("--run", 1, count),
                )
            chosen = processes[:MOST_PROCESSES] if number is None else [processes[number - 1]]
            found = [_process(path, export, process, count > 1) for process in chosen]
            return found if number is not None or count == len(found) else _cut(found, count)
    except GpudebugError as e:
        e.file = str(path)
        raise


def _cut(found: Sequence[AnalyzedTrace], count: int) -> list[AnalyzedTrace]:
    """Return the first of `count` processes, with a note at the last of them."""
    *before, last = found
    left_out = count - len(found)
    note = (
        f"{counted(left_out, 'more process', 'more processes')} used a GPU: "
        f"{from_to('--run', len(found) + 1, count)} reads one; "
        "no ranks are compared"
    )
    answer = replace(last.answer, notes=[*last.answer.notes, note])
    return [*before, replace(last, answer=answer, left_out=left_out)]


def _process(path: Path, export: NsysExport, process: int | None, several: bool) -> AnalyzedTrace:
    from gpudebug.core.trace.nsys import ProcessEvents, pid_of
    from gpudebug.core.trace.summary import summarise_events

    summary = summarise_events(ProcessEvents(export, process))
    answer = TraceAnswer(
        file=str(path),
        **summary.answer,
        source=export.source,
        process=pid_of(process) if several and process is not None else None,
    )
    return AnalyzedTrace(answer, summary)


def together(traces: Sequence[AnalyzedTrace]) -> RanksTogether | None:
    """Return the ranks of one job beside each other; None if these are no traces of several, or some were
    left out."""
    if len(traces) < 2 or any(one.left_out for one in traces):
        return None
    numbers = _ranks(traces)
    if numbers is None:
        return None
    from gpudebug.core.trace.ranks import RankTrace, compare_ranks

    return compare_ranks(
        [
            RankTrace(
                rank=rank,
                file=one.answer.file,
                collectives=one.summary.collectives,
                span_s=one.answer.span_s,
                exposed_s=(one.answer.nccl or {}).get("exposed_s"),
                busy_share=one.answer.busy_share,
            )
            for rank, one in zip(numbers, traces, strict=True)
        ]
    )


def _ranks(traces: Sequence[AnalyzedTrace]) -> list[int] | None:
    """Whose traces they are: as they say, as their files' names do, or processes of one export in order."""
    told = [one.answer.rank for one in traces]
    if all(rank is not None for rank in told):
        return [int(rank) for rank in told if rank is not None]
    if len({one.answer.file for one in traces}) == 1:
        return list(range(len(traces)))
    named = [_NAMED.findall(Path(one.answer.file).name) for one in traces]
    numbers = [int(found[-1]) for found in named if found]
    return numbers if len(set(numbers)) == len(traces) else None
