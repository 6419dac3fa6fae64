"""What `show H` answers: one hypothesis with its evidence, gates and files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpudebug.core.answers.answer import Answer
from gpudebug.core.answers.course import VerdictCourse
from gpudebug.core.answers.gates import GateRow
from gpudebug.core.answers.probe import ProbeSide, SectionRow
from gpudebug.core.answers.sample import RunDevices
from gpudebug.core.answers.status import HypothesisRow


@dataclass(frozen=True, kw_only=True)
class UnreadRun:
    """A run whose evidence cannot be read."""

    run: str
    why: str


@dataclass(frozen=True, kw_only=True)
class ShowAnswer(HypothesisRow, Answer):
    """What `show` answers: `status`'s row of a hypothesis, and what else is known of it.

    `line` is that of the progress file. `figures` are the texts of the Result there, `evidence` is the
    evidence.json of each run that has one, as it was read, and `profile` the newest torch profile of the
    workload as its run recorded it. `probe` and `sections` are of baseline and trial. `devices` are those of
    runs that have several. `course` is the picture behind the verdict, None if there is none.
    """

    description: str
    test_method: str
    line: int
    notes: Sequence[str]
    figures: Mapping[str, str]
    gates: Sequence[GateRow]
    evidence: Sequence[Mapping[str, Any]]
    skipped: Sequence[UnreadRun]
    probe: Sequence[ProbeSide]
    sections: Sequence[SectionRow]
    profile: Mapping[str, Any] | None
    files: Sequence[str]
    devices: Sequence[RunDevices] = ()
    course: VerdictCourse | None = None
