"""Lines that announce what the rows below them are of, training or evaluation, or what was before them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gpudebug.core.lazy import regex

TRAIN, EVALUATION, REPORTED = "train", "val", "reported"
WHOLE, STOPPED, PAGE = "whole", "stopped", "page"
"""An epoch is over; the training was ended in a batch, whatever is drawn of its epoch below; HTML begins."""

LONGEST_PAGE = 400

LONGEST = 160
MOST_WORDS = 6
"""An announcement is short: longer lines are prose."""

_LOGGER = regex(r".*\b(?:INFO|DEBUG|NOTICE)\b[\]:|\s-]*")
_EVALUATION = regex(r"\b(?:eval(?:uat(?:ion|ing|e))?|validat(?:ion|ing|e)|testing)\b", re.I)
_TRAINING = regex(r"\b(?:train(?:ing)?|resum(?:e|ing))\b", re.I)
_REPORTED = regex(
    r"\breport(?:ing|s|ed)?\b.{0,40}\bon (?:the )?(?:validation|valid|val|dev|test|evaluation|eval)\b", re.I
)
_SETTINGS = regex(
    r"\b(?:hyper|param|config|arg|setting|dataset|loader|option|batch|metric|interval|strategy)\w*|\bevery\b",
    re.I,
)
_OVER = regex(r"\b(?:done|finished|completed?|ends?|ended|took|samples|skipp\w+)\b", re.I)
_EPOCH_OVER = regex(
    r"\bepoch\W{0,3}0+\W{1,3}(?:(?:is )?(?:completed?|done|finished|ended|over)|.{0,80}\btook)\b", re.I
)
_PAGE = regex(r"\s*<(?:!doctype html|html)\b", re.I)
_BATCH_STOPS = regex(r"(?<![a-z])batch 0+: .{0,60}\b(?:terminating|stopping) training\b", re.I)
_VALUE = regex(r"[:=]\s*['\"]?[\w.+-]|0\.0")


def stopped_in(text: bytes) -> int:
    """Return the batch, counted from 0, in which a line says that the training is ended."""
    return int(text.lower().rpartition(b"batch ")[2].partition(b":")[0])


def announced(text: str) -> str:
    """Return what a line of this text (digits zeroed) announces: train, val, reported (losses are those of
    validation from there on), whole, stopped, page, or nothing."""
    if _PAGE.match(text):
        return PAGE
    if len(text) > LONGEST:
        return ""
    text = _LOGGER.sub("", text, count=1)
    if _REPORTED.search(text):
        return REPORTED
    if _BATCH_STOPS.search(text):
        return STOPPED
    evaluation, training = _EVALUATION.search(text), _TRAINING.search(text)
    short = (evaluation or training) and len(text.split()) <= MOST_WORDS
    if short and not _VALUE.search(text) and not _SETTINGS.search(text):
        return TRAIN if _OVER.search(text) or training else EVALUATION
    return WHOLE if _EPOCH_OVER.search(text) else ""


@dataclass(slots=True)
class LogSection:
    """The part of the log that is being read; `phase` is val, reported, or empty of training."""

    phase: str = ""
    _trains: bool = False

    def read(self, said: str, begun: bool) -> None:
        """Take in what a line announces; `begun` says that a loss of training was printed before it.

        Evaluation is believed only in a log that announces training too: in any other nothing ends it.
        """
        if said == TRAIN:
            self.phase, self._trains = "", True
        elif said == REPORTED or (said and self._trains and begun):
            self.phase = said


@dataclass(slots=True)
class PageLines:
    """HTML pages in a log, as of an error that was saved behind it; `count` are those seen, `left` lines that
    may be of the last one."""

    count: int = 0
    left: int = 0

    def holds(self, said: str, segment: bytes) -> bool:
        """Tell whether a line is of a page, by what it announces; one that never ends has LONGEST_PAGE."""
        if said == PAGE and not self.left:
            self.count, self.left = self.count + 1, LONGEST_PAGE
        if not self.left:
            return False
        self.left = 0 if b"</html>" in segment.lower() else self.left - 1
        return True
