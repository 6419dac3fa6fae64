"""What a check found, in the order in which it was found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gpudebug.core.answers.verify import AbsentEvidence, Mismatch
from gpudebug.core.redaction.records import scrubbed


@dataclass(frozen=True)
class Finding:
    """A value that does not follow from the evidence; `expected` does, None if nothing would.

    `file` and `line` (1-based) are where `found` is. `why` says more if the values do not.
    """

    field: str
    expected: Any = None
    found: Any = None
    file: Path = Path()
    line: int | None = None
    why: str | None = None
    hypothesis: int | None = None
    baseline: str | None = None
    run: str | None = None

    def but(self, **fields: Any) -> Finding:
        """Return the same problem, with other values."""
        return replace(self, **fields)

    def told(self, scrub: Callable[[str], str]) -> Mismatch:
        """`scrub` takes secrets out: what is derived again has seen the log as the process wrote it."""
        return Mismatch(
            hypothesis=self.hypothesis,
            baseline=self.baseline,
            run=self.run,
            field=self.field,
            expected=scrubbed(self.expected, scrub),
            found=scrubbed(self.found, scrub),
            why=self.why,
            file=str(self.file),
            line=self.line,
        )


@dataclass
class Findings:
    """`absent`: entries whose evidence is not here; `unchecked`: what this gpudebug could not check."""

    problems: list[Finding] = field(default_factory=list)
    absent: list[AbsentEvidence] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool | None:
        if self.problems:
            return False
        return None if self.absent or self.unchecked else True

    def differs(self, problem: Finding) -> None:
        self.problems.append(problem)

    def is_absent(
        self, runs: Sequence[str], *, hypothesis: int | None = None, baseline: str | None = None
    ) -> None:
        self.absent.append(AbsentEvidence(hypothesis=hypothesis, baseline=baseline, runs=tuple(runs)))
