"""`gpudebug analyze`: what a file says, recognised by its content."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from gpudebug.core.answers.analyze import AnalyzeAnswer, FilesAnswer
from gpudebug.core.answers.sections import SectionsAnswer
from gpudebug.core.compare.sections import compare as compare_reports
from gpudebug.core.errors import GpudebugError, UsageError
from gpudebug.core.inside.sections import Report
from gpudebug.edges import charts, store
from gpudebug.engine.run.trace_file import trace
from gpudebug.engine.tools.analyze.kinds import HEAD, KNOWN, AnalyzedFile, FileKind, kind_of
from gpudebug.engine.tools.analyze.logs import log
from gpudebug.engine.tools.analyze.outputs import Outputs
from gpudebug.engine.tools.analyze.samples import samples
from gpudebug.engine.tools.analyze.sections import read, sections

__all__ = ["Outputs", "analyze"]

_NOTHING = Outputs()


def analyze(
    files: Sequence[Path],
    *,
    compare: Path | None = None,
    outputs: Outputs = _NOTHING,
    text: Callable[[AnalyzeAnswer], str] = str,
) -> AnalyzeAnswer:
    """What one file says, or several, of section reports also together.

    `compare` is a section report to set beside these. `outputs` are written from the answer, as `text` shows
    it in full; their names are `written`.
    """
    if not files:
        raise UsageError("no file to analyze", next="gpudebug analyze runs/0001-baseline-workload/train.log")
    _refuse_twins(files)
    others = [compare] if compare else []
    outputs.check([*files, *others])
    kinds = [_kind(path) for path in files]
    if outputs.charts and len(kinds) > 1 and {kind for kind, _ in kinds} != {FileKind.SECTIONS}:
        raise UsageError("--charts draws one file, or several section reports together", next="give one file")
    if compare:
        _refuse_other_kinds([*zip(files, kinds, strict=True), (compare, _kind(compare))])
    reports: list[Report] = []
    found = [_one(path, kind, packed, reports) for path, (kind, packed) in zip(files, kinds, strict=True)]
    together = sections(reports, f"{len(reports)} reports together") if len(reports) > 1 else None
    if compare:
        against = read(compare, packed=_kind(compare)[1])
        both = compare_reports(reports, [against], (", ".join(map(str, files)), str(compare)))
        if together:
            together = replace(together, comparison=both)
        elif isinstance(found[0].answer, SectionsAnswer):
            found[0] = replace(found[0], answer=replace(found[0].answer, comparison=both))
    answer: AnalyzeAnswer = found[0].answer
    if len(found) > 1:
        answer = FilesAnswer(files=tuple(one.answer for one in found), merged=together)
    if not outputs.paths:
        return answer
    each = [one.detailed() for one in found]
    detailed = {**answer.as_json(), "files": each} if len(each) > 1 else each[0]
    picture = AnalyzedFile(together, charts.sections) if together else found[0]
    return replace(answer, written=tuple(outputs.write(answer, detailed, picture, text)))


def _refuse_twins(files: Sequence[Path]) -> None:
    """UsageError if a file is given twice: its times would be counted twice."""
    seen: set[str] = set()
    for path in files:
        if os.path.realpath(path) in seen:
            raise UsageError(f"{path.name} is given twice", next="give each file once")
        seen.add(os.path.realpath(path))


def _kind(path: Path) -> tuple[FileKind, bool]:
    """Its kind, and whether it is in gzip."""
    head = store.read_head(path, HEAD)
    if not head:
        raise GpudebugError("is empty", file=str(path), next=f"give {KNOWN}")
    return kind_of(head)


def _one(path: Path, kind: FileKind, packed: bool, reports: list[Report]) -> AnalyzedFile:
    """What one file says; a section report is added to `reports`."""
    if kind is FileKind.SECTIONS:
        reports.append(read(path, packed=packed))
        return AnalyzedFile(sections(reports[-1:], str(path)), charts.sections)
    if kind is FileKind.TRACE:
        return AnalyzedFile(trace(path), charts.trace)
    if packed:
        raise GpudebugError("is compressed", file=str(path), next=f"unpack it: gunzip -k {path.name}")
    return samples(path) if kind is FileKind.SAMPLES else log(path)


def _refuse_other_kinds(files: list[tuple[Path, tuple[FileKind, bool]]]) -> None:
    """UsageError if `--compare` would set anything but section reports side by side."""
    for path, (kind, _) in files:
        if kind is not FileKind.SECTIONS:
            raise UsageError(
                f"--compare sets section reports side by side, and {path.name} is none",
                next="give section reports; `gpudebug compare A B` compares two runs",
            )
