"""What `check` answers."""

from __future__ import annotations

from dataclasses import dataclass

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
