"""What `report` answers: of the command, not of the page that it writes."""

from __future__ import annotations

from dataclasses import dataclass

from gpudebug.core.answers.answer import Answer


@dataclass(frozen=True, kw_only=True)
class SkippedRun:
    """A run that is not in the report."""

    run: str
    why: str


@dataclass(frozen=True, kw_only=True)
class ReportAnswer(Answer):
    """`page`, its size in `bytes` and the text `markdown`: null if not asked for.

    `runs` and `hypotheses` count what they show. `campaign` is null of a run without one.
    """

    campaign: str | None
    page: str | None
    bytes: int | None
    markdown: str | None
    runs: int
    hypotheses: int
    skipped: tuple[SkippedRun, ...]
    notes: tuple[str, ...]
    next_command: str | None
    files: tuple[str, ...]
