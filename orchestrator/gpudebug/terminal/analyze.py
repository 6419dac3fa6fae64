"""The answer of `gpudebug analyze` as text for people, by kind of file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpudebug.core.answers.log import LogAnswer
from gpudebug.terminal.log import log

if TYPE_CHECKING:
    from gpudebug.core.answers.analyze import AnalyzeAnswer, FilesAnswer, OneFile


def analyze(answer: AnalyzeAnswer, *, all_rows: bool = False) -> str:
    """Render one file, or several below each other with merged section reports last."""
    parts = [log(answer) if isinstance(answer, LogAnswer) else _others(answer, all_rows)]
    parts += ["\n".join(f"wrote {name}" for name in answer.written)] if answer.written else []
    return "\n\n".join(parts)


def in_full(answer: AnalyzeAnswer) -> str:
    """Render it for a file: no table is cut, and control characters are removed."""
    text = analyze(answer, all_rows=True)
    return "".join(c for c in text if c.isprintable() or c in "\n\t")


def _others(answer: AnalyzeAnswer, all_rows: bool) -> str:
    # Loading all that is shown of devices and sections takes longer than reading a page of a log.
    from gpudebug.core.answers.analyze import FilesAnswer

    return _files(answer, all_rows) if isinstance(answer, FilesAnswer) else _one(answer, all_rows)


def _files(answer: FilesAnswer, all_rows: bool) -> str:
    from gpudebug.core.answers.sections import SectionsAnswer
    from gpudebug.terminal.recorded import recording
    from gpudebug.terminal.sections import head
    from gpudebug.terminal.trace import ranks

    if answer.merged is None:
        parts = [_one(one, all_rows) for one in answer.files]
        if answer.recorded is not None:
            parts.append("\n".join(["all runs together", *recording(answer.recorded)]))
        if answer.ranks is not None:
            parts.append(ranks(answer.ranks))
        return "\n\n".join(parts)
    heads = [head(one) for one in answer.files if isinstance(one, SectionsAnswer)]
    others = [_one(one, all_rows) for one in answer.files if not isinstance(one, SectionsAnswer)]
    return "\n\n".join([*others, "\n".join(heads), _one(answer.merged, all_rows)])


def _one(answer: OneFile, all_rows: bool) -> str:
    from gpudebug.core.answers.analyze import SamplesAnswer
    from gpudebug.core.answers.sections import SectionsAnswer
    from gpudebug.terminal import recorded, sections, trace

    if isinstance(answer, LogAnswer):
        return log(answer)
    if isinstance(answer, SectionsAnswer):
        return sections.sections(answer, whole=all_rows)
    return recorded.samples(answer) if isinstance(answer, SamplesAnswer) else trace.trace(answer)
