"""What `verify` answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpudebug.core.answers.answer import Answer


@dataclass(frozen=True, kw_only=True)
class Mismatch:
    """A value that does not follow from the evidence, of a hypothesis, a baseline or a run.

    `expected` is what follows and `found` what is in `file` at `line` (from 1), both as JSON has them: a
    record's field can hold anything. Null: nothing would follow, or nothing is there. `why` says more.
    """

    hypothesis: int | None
    baseline: str | None
    run: str | None
    field: str
    expected: Any
    found: Any
    why: str | None
    file: str
    line: int | None


@dataclass(frozen=True, kw_only=True)
class AbsentEvidence:
    """A hypothesis or a baseline none of whose `runs` is here."""

    hypothesis: int | None = None
    baseline: str | None = None
    runs: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class CheckedEvidence:
    """Roles, numbers and names of what was checked, and how many files of runs."""

    baselines: tuple[str, ...]
    hypotheses: tuple[int, ...]
    runs: tuple[str, ...]
    files: int


@dataclass(frozen=True, kw_only=True)
class VerifyAnswer(Answer):
    """`ok` is null if nothing differs, but evidence is `absent` or `unchecked`.

    `root` is the campaign's folder.
    """

    ok: bool | None
    campaign: str
    root: str
    problems: tuple[Mismatch, ...]
    absent: tuple[AbsentEvidence, ...]
    unchecked: tuple[str, ...]
    notes: tuple[str, ...]
    checked: CheckedEvidence
