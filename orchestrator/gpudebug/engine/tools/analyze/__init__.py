"""`gpudebug analyze`: what a file says, recognised by its content."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from gpudebug.core.errors import GpudebugError, UsageError
from gpudebug.core.recordings.formats import text_of
from gpudebug.edges import launcher, store
from gpudebug.engine.run.readings import refuse_binary
from gpudebug.engine.tools.analyze.kinds import (
    HEAD,
    KNOWN,
    AnalyzedFile,
    FileKind,
    kind_of,
    telling_head,
)
from gpudebug.engine.tools.analyze.logs import beside, log, refuse_other
from gpudebug.engine.tools.analyze.outputs import Outputs

if TYPE_CHECKING:
    from gpudebug.core.answers.analyze import AnalyzeAnswer
    from gpudebug.core.inside.sections import Report
    from gpudebug.engine.tools.analyze.traces import AnalyzedTrace

__all__ = ["Outputs", "analyze"]

T = TypeVar("T")
_NOTHING = Outputs()
_STORES = ("*.wandb", "*.swanlab", "events.out.tfevents.*", "*.db", "metrics.jsonl")
_WITH_RUNS = (FileKind.SAMPLES, FileKind.SQLITE)


@dataclass
class _Parts:
    """What is also shown together, of all files."""

    reports: list[Report] = field(default_factory=list)
    traces: list[AnalyzedTrace] = field(default_factory=list)


def analyze(
    files: Sequence[Path],
    *,
    compare: Path | None = None,
    run: int | None = None,
    outputs: Outputs = _NOTHING,
    text: Callable[[AnalyzeAnswer], str] = str,
) -> AnalyzeAnswer:
    """Return what one file says, or several, of section reports also together. A run's folder is its samples,
    log and section report.

    `compare` is a section report to set beside these. Of a recording of several runs (or processes) each is
    analyzed, or `run` alone, counted from 1. `outputs` are written from the answer, as `text` shows it in
    full; their names are `written`.
    """
    if not files:
        raise UsageError("no file to analyze", next="gpudebug analyze runs/0001-baseline-workload")
    files = [part for path in files for part in _parts(path)]
    _refuse_twins(files)
    others = [compare] if compare else []
    outputs.check([*files, *others])
    kinds = [_or_what_is_beside(path, partial(_kind, path)) for path in files]
    if outputs.charts and len(kinds) > 1 and {kind for kind, _ in kinds} != {FileKind.SECTIONS}:
        raise UsageError("--charts draws one file, or several section reports together", next="give one file")
    if compare:
        _refuse_other_kinds([*zip(files, kinds, strict=True), (compare, _kind(compare))])
    _refuse_run(run, kinds)
    parts = _Parts()
    found = [
        one
        for path, (kind, packed) in zip(files, kinds, strict=True)
        for one in _or_what_is_beside(path, partial(_all, path, kind, packed, parts, run))
    ]
    if outputs.charts and len(found) > 1 and len(kinds) == 1 and kinds[0][0] in _WITH_RUNS:
        raise UsageError(f"{files[0].name} holds {len(found)} runs", next="draw one of them: --run N")
    answer: AnalyzeAnswer = found[0].answer
    if len(found) == 1 and not compare and not outputs.paths:
        return answer
    from gpudebug.core.answers.analyze import FilesAnswer
    from gpudebug.core.answers.sections import SectionsAnswer
    from gpudebug.edges import charts
    from gpudebug.engine.tools.analyze import traces
    from gpudebug.engine.tools.analyze.sections import read, sections

    reports = parts.reports
    together = sections(reports, f"{len(reports)} reports together") if len(reports) > 1 else None
    if compare:
        from gpudebug.core.compare.sections import compare as compare_reports

        against = read(compare, packed=_kind(compare)[1])
        both = compare_reports(reports, [against], (", ".join(map(str, files)), str(compare)))
        if together:
            together = replace(together, comparison=both)
        elif isinstance(found[0].answer, SectionsAnswer):
            found[0] = replace(found[0], answer=replace(found[0].answer, comparison=both))
    answer = found[0].answer
    if len(found) > 1:
        answer = FilesAnswer(
            files=tuple(one.answer for one in found),
            recorded=found[0].together if len(kinds) == 1 else None,
            merged=together,
            ranks=traces.together(parts.traces),
        )
    if not outputs.paths:
        return answer
    each = [one.detailed() for one in found]
    detailed = {**answer.as_json(), "files": each} if len(each) > 1 else each[0]
    picture = AnalyzedFile(together, charts.sections) if together else found[0]
    return replace(answer, written=tuple(outputs.write(answer, detailed, picture, text)))


def _or_what_is_beside(path: Path, read: Callable[[], T]) -> T:
    """Return what is read of a file; the error of one without figures names a log beside it that has some."""
    try:
        return read()
    except GpudebugError as e:
        if path.is_file():
            refuse_other(path, text_of(store.read_head(path, HEAD, follow=True)))
        # Another remedy than another file is better.
        near = beside(path) if e.next is not None and e.next.startswith("give ") else None
        if near is not None:
            e.next = f"gpudebug analyze {shlex.quote(str(near))}"
        raise


def _parts(path: Path) -> list[Path]:
    """Return the files of a run's folder, of a tracker's folder its one store; any other path as it is."""
    if not (path / "run.json").is_file():
        stores = [one for form in _STORES for one in sorted(path.glob(form))] if path.is_dir() else []
        if len(stores) > 1:
            raise GpudebugError(
                f"is a folder with {len(stores)} stores of runs",
                file=str(path),
                next=f"give one of them: gpudebug analyze {shlex.quote(str(stores[-1]))}",
            )
        return stores or [path]
    parts = [path / name for name in ("samples.csv", "train.log", launcher.SECTIONS)]
    return [part for part in parts if part.is_file() and part.stat().st_size] or [path]


def _refuse_twins(files: Sequence[Path]) -> None:
    """UsageError if a file is given twice: its times would be counted twice."""
    seen: set[str] = set()
    for path in files:
        if os.path.realpath(path) in seen:
            raise UsageError(f"{path.name} is given twice", next="give each file once")
        seen.add(os.path.realpath(path))


def _kind(path: Path) -> tuple[FileKind, bool]:
    """Its kind, and whether it is in gzip."""
    head = store.read_head(path, HEAD, follow=True)
    if not head:
        raise GpudebugError("is empty: nothing was written to it yet", file=str(path), next=f"give {KNOWN}")
    kind, packed = kind_of(head)
    if kind is FileKind.LOG:
        refuse_binary(path, telling_head(head), KNOWN)
    return kind, packed


def _all(path: Path, kind: FileKind, packed: bool, parts: _Parts, run: int | None) -> list[AnalyzedFile]:
    """Return what one file says, each run and part of it; section reports and traces are kept in `parts`."""
    if kind is FileKind.LOG and not packed:
        return [log(path)]
    # Loading what reads all others takes longer than reading a page of a log.
    from gpudebug.edges import charts
    from gpudebug.engine.tools.analyze.samples import samples
    from gpudebug.engine.tools.analyze.sections import read, sections
    from gpudebug.engine.tools.analyze.stores import database, events, swanlab, wandb
    from gpudebug.engine.tools.analyze.traces import nsys, trace_of

    if kind is FileKind.SECTIONS:
        parts.reports.append(read(path, packed=packed))
        return [AnalyzedFile(sections(parts.reports[-1:], str(path)), charts.sections)]
    if kind in (FileKind.TRACE, FileKind.SQLITE):
        try:
            found = [trace_of(path)] if kind is FileKind.TRACE else nsys(path, run)
        except GpudebugError:
            kept = database(path, run) if kind is FileKind.SQLITE else None
            if kept is None:
                raise
            return kept
        parts.traces += found
        return [AnalyzedFile(one.answer, charts.trace) for one in found]
    if kind is FileKind.WANDB:
        return wandb(path)
    if kind is FileKind.SWANLAB:
        return swanlab(path)
    if kind is FileKind.EVENTS:
        return events(path)
    if packed:
        raise GpudebugError("is compressed", file=str(path), next=f"unpack it: gunzip -k {path.name}")
    return samples(path, run)


def _refuse_run(run: int | None, kinds: Sequence[tuple[FileKind, bool]]) -> None:
    """UsageError if `--run` does not name a run of one recording."""
    if run is not None and (len(kinds) > 1 or kinds[0][0] not in _WITH_RUNS):
        raise UsageError("--run names one of several runs in a recording", next="give one recording")


def _refuse_other_kinds(files: list[tuple[Path, tuple[FileKind, bool]]]) -> None:
    """UsageError if `--compare` would set anything but section reports side by side."""
    for path, (kind, _) in files:
        if kind is not FileKind.SECTIONS:
            raise UsageError(
                f"--compare sets section reports side by side, and {path.name} is none",
                next="give section reports; `gpudebug compare A B` compares two runs",
            )
