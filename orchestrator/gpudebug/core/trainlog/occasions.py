"""Evaluations and checkpoints that a log tells of, once training has begun."""

from __future__ import annotations

import re

from gpudebug.core.command.cadence import CHECKPOINT, EVALUATION, LOG
from gpudebug.core.trainlog.cached import finds_cache
from gpudebug.core.trainlog.resumed import resumes

_KEPT = 2048
_LONGEST = 1024
# Steps that may be shown before a program says that it resumes: what it loads later is its own.
_MOST_BEFORE = 3
_EVALUATION = re.compile(
    r"(?<![a-z])(?:eval(?:uat(?:ion|e[sd]?|ing))?|validat(?:ion|ing|e[sd]?)|val|valid|test)(?![a-z])"
    r"(?![\w/ ]{0,30}['\"]?\s?[:=]\s?(?:n/a|none|null|-+)(?:[\s,|;)]|$)).*0"
    r"|\b(?:evaluating|validating)\b|\brunning (?:evaluation|validation)\b",
    re.I,
)
_THING = (
    r"(?:checkpoint|ckpt|snapshot|model|weights|state|optimizer|policy"
    r"|\.pth?\b|\.ckpt\b|\.safetensors\b|\.pkl\b|\.bin\b)"
)
_CHECKPOINT = re.compile(
    rf"\b(?:sav(?:e[sd]?|ing)|wr(?:ote|iting)|written|dump(?:ed|ing)|stor(?:ed|ing))\b.{{0,80}}{_THING}"
    rf"|{_THING}.{{0,80}}\b(?:sav(?:ed|ing)|written|stored|dumped)\b"
    r"|checkpoint created\b|(?:^|[\]:0] )checkpoint(?:ing)? (?:policy|model|after|at|step|iteration)\b",
    re.I,
)
_FIGURES = re.compile(
    r"(?:eval|val|valid|validation|evaluation|test)[\w/ .-]{0,40}['\"]?\s*[:=]\s*['\"]?([-+\d.e]+)", re.I
)


class Occasions:
    """Counts lines that tell of an evaluation or a checkpoint.

    A figure that a progress bar repeats is one evaluation. What comes before the first step, a configuration
    or an evaluation of the untrained model, counts apart. `resumed` is the line of one that goes on, `cached`
    of one that found what another run has made.
    """

    def __init__(self) -> None:
        self.evaluations = [0, 0]
        self.checkpoints = [0, 0]
        self._kinds: dict[bytes, tuple[bool, bool]] = {}
        self._last: list[str] = []
        self.resumed: str | None = None
        self.cached: str | None = None

    def read(self, key: bytes, text: bytes, seen: int, trained: bool = False) -> None:
        """Takes a line in; `key` is its skeleton, `seen` how many steps were seen before it, `trained` says
        that a loss was."""
        if self.resumed is None and seen < _MOST_BEFORE:
            self.resumed = resumes(text, trained)
        if self.cached is None and seen < _MOST_BEFORE:
            self.cached = finds_cache(text)
        begun = seen > 0
        kinds = self._kinds.get(key)
        if kinds is None:
            plain = key[:_LONGEST].decode("ascii", "replace")
            kinds = _EVALUATION.search(plain) is not None, _CHECKPOINT.search(plain) is not None
            if len(self._kinds) < _KEPT and len(key) <= _LONGEST:
                self._kinds[key] = kinds
        if kinds[1]:
            self.checkpoints[begun] += 1
        elif kinds[0]:
            figures = _FIGURES.findall(text[:_LONGEST].decode("utf-8", "replace"))
            if figures and figures == self._last:
                return
            self._last = figures
            self.evaluations[begun] += 1

    def counted(self, steps: int, losses: int) -> dict[str, int]:
        """Return those of the training, all of a log that shows no step; and lines with a step or a loss."""
        counted = ((EVALUATION, self.evaluations), (CHECKPOINT, self.checkpoints))
        counts = {kind: found[1] if steps else sum(found) for kind, found in counted}
        return {kind: count for kind, count in {**counts, LOG: max(steps, losses)}.items() if count}
