"""What `init`, `demo`, `clean`, `doctor`, `settings` and `report` answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpudebug.core.answers.answer import Answer
from gpudebug.core.answers.next import NextAnswer
from gpudebug.core.answers.show import UnreadRun
from gpudebug.core.answers.status import StatusAnswer


@dataclass(frozen=True, kw_only=True)
class InitAnswer(Answer):
    """`framework` is null if the command's is not recognised; `files` are those that were written."""

    campaign: str
    framework: str | None
    notes: tuple[str, ...]
    files: tuple[str, ...]
    next_command: str = "gpudebug next"


@dataclass(frozen=True, kw_only=True)
class DefaultsAnswer(Answer):
    """`init --print-defaults`: a gpudebug.yaml with every setting."""

    defaults: str


@dataclass(frozen=True, kw_only=True)
class DemoAnswer(Answer):
    """What each `next` answered, in their order, and what `status` answers at the end."""

    folder: str
    cycles: tuple[NextAnswer, ...]
    status: StatusAnswer
    files: tuple[str, ...]
    next_command: str


@dataclass(frozen=True, kw_only=True)
class LeftPath:
    """A file, folder or git reference that gpudebug left, with all `bytes` in it on the disk."""

    kind: str
    path: str
    bytes: int


@dataclass(frozen=True, kw_only=True)
class KeptPath:
    """What was to be removed and is there still."""

    path: str
    why: str


@dataclass(frozen=True, kw_only=True)
class CleanAnswer(Answer):
    """What was `left` here, `bytes` in all; `chosen` are the paths that the call asked to remove.

    `campaign` is null in a folder without one. `action` is `listed`, or `cleaned` after a removal: then
    `removed` and `kept` say what came of `chosen`.
    """

    action: str
    campaign: str | None
    left: tuple[LeftPath, ...]
    bytes: int
    chosen: tuple[str, ...]
    removed: tuple[str, ...] = ()
    kept: tuple[KeptPath, ...] = ()
    next_command: None = None
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class DoctorCheck:
    """One check: `result` is ok, warning, unknown or failed; `next` mends it, null if nothing is amiss."""

    name: str
    result: str
    found: str
    next: str | None = None


@dataclass(frozen=True, kw_only=True)
class DoctorAnswer(Answer):
    """`doctor`: `ok` is false if a check failed. Warnings do not fail."""

    ok: bool
    checks: tuple[DoctorCheck, ...]


@dataclass(frozen=True, kw_only=True)
class GpuDoctorAnswer(DoctorAnswer):
    """`doctor --gpu`: checks that are unknown do not fail. `bundle` is the file to attach to a report."""

    bundle: str


@dataclass(frozen=True, kw_only=True)
class ChangedSetting:
    """A setting whose value in gpudebug.yaml is not the pinned one, both as JSON has them.

    `weaker`: whether a change passes more easily by it; null if that cannot be compared.
    """

    key: str
    value: Any
    pinned: Any
    weaker: bool | None


@dataclass(frozen=True, kw_only=True)
class SettingsAnswer(Answer):
    """The settings that bind a campaign: the pinned ones, else those of gpudebug.yaml.

    `settings` has them by key, as the file has them, and `lines` as texts; `classes` says of each whether
    another value is weaker (`ordered`) or asks for a new baseline (`different`). `action` is `pinned` if this
    call pinned them, `was_pinned` says whether they were before. `when` and `digest` are null if nothing is
    pinned. `changed`, as texts `differences`, is what gpudebug.yaml has otherwise; after a pin, what it had.
    `problem` says why what was pinned cannot be read. `replayed`: recordings are the device. `next_command`
    is null if nothing is to be pinned.
    """

    action: str
    campaign: str
    pinned: bool
    was_pinned: bool
    when: str | None
    digest: str | None
    replayed: bool
    settings: Mapping[str, Any]
    lines: tuple[str, ...]
    changed: tuple[ChangedSetting, ...]
    differences: tuple[str, ...]
    problem: str | None
    classes: Mapping[str, str]
    next_command: str | None
    files: tuple[str, ...]


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
    skipped: tuple[UnreadRun, ...]
    notes: tuple[str, ...]
    next_command: str | None
    files: tuple[str, ...]
