"""What `verify` and `check` answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpudebug.core.answers.answer import Answer
from gpudebug.core.records import Estimate


@dataclass(frozen=True, kw_only=True)
class CheckAnswer(Answer):
    """Whether what was accepted still gains what it did.

    `result` is `kept`, `regressed` or `cannot_tell`, and `why` says it in a sentence. `delta` is the gain of
    today and `expected` the one that was accepted: points of utilisation, else ratios above 1 if better; null
    is not known. `text` and `of` say the same in words. With `paired` the workload without the accepted
    changes ran in turn; else the recorded baseline is what `delta` compares with, and `expected` is null.
    """

    action: str = "checked"
    campaign: str
    result: str
    why: str
    text: str | None
    delta: Estimate | None
    expected: Estimate | None
    of: str
    paired: bool
    runs_before: tuple[str, ...]
    runs_after: tuple[str, ...]
    notes: tuple[str, ...]
    files: tuple[str, ...]

    @property
    def regressed(self) -> bool:
        return self.result == REGRESSED


KEPT, REGRESSED, CANNOT_TELL = "kept", "regressed", "cannot_tell"


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
