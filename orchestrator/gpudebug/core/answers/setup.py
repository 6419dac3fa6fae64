"""What `init`, `demo` and `clean` answer."""

from __future__ import annotations

from dataclasses import dataclass

from gpudebug.core.answers.answer import Answer
from gpudebug.core.answers.next import NextAnswer
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
