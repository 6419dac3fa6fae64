"""Lines that tell of an occasion: evaluations, checkpoints, caches, runs that go on, another objective."""

from __future__ import annotations

import re

from gpudebug.core.command.cadence import CHECKPOINT, EVALUATION, LOG
from gpudebug.core.lazy import regex

_SHOWN = 300
_MADE = (
    r"(?:cached?|caches|pre-?processed|(?:pre-?)?tokeni[sz]ed|pre-?computed|packed|mem-?map(?:ped)?|"
    r"compiled|indexed)"
)
_FINDS_CACHE = regex(
    rf"\b(?:us(?:ing|e[sd]?)|load(?:ed|ing|s)?|reus(?:ed|ing|e)|found|read(?:ing)?|restor(?:ed|ing)|hit)\b"
    rf".{{0,80}}(?<![a-z]){_MADE}(?![a-z])"
    rf"|(?<![a-z]){_MADE}(?![a-z]).{{0,80}}\b(?:found|exists?|loaded|reused|hit|valid|up to date)\b"
    r"|\balready (?:exists?|processed|cached|tokeni[sz]ed|pre-?processed|built|compiled|prepared)\b"
    r"|\breusing (?:the )?dataset\b|\.cache\.{3}",
    re.I,
)
_NO_CACHE = regex(
    r"\b(?:no|not|none|never|without|cannot|can't|unable|false|disabled|miss(?:es|ed|ing)?|if|would|will"
    r"|kv|key.value)\b|^\W*[\w.-]+['\"]?\s?[:=]\s*\S*$",
    re.I,
)
_CACHE_WORDS = regex(rb"cache|processed|toke|computed|packed|memmap|compiled|index|already|reusing", re.I)


def finds_cache(text: bytes) -> str | None:
    """Return the line, at most 300 characters, if it says so; None for any other."""
    line = _shown(text, _CACHE_WORDS)
    return line if line and _FINDS_CACHE.search(line) and not _NO_CACHE.search(line) else None


def _shown(text: bytes, hint: re.Pattern[bytes]) -> str | None:
    """Return the beginning of a line that has a word of the `hint`; None for any other."""
    return text[: 4 * _SHOWN].decode("utf-8", "replace").strip()[:_SHOWN] if hint.search(text) else None


_STATE = r"(?:snapshot|checkpoint(?!ing|er)|ckpt|last\.pt\b|(?:training|trainer|optimizer|saved) state)"
_COUNT = r"\b(?:epoch|step|iter(?:ation)?|update)s?\b"
# What a run may go on from: a state, a count of what is behind it, a file or a folder.
_RESUMES = regex(
    rf"\bresum(?:ed|e|es|ing)\b(?:.{{0,80}}(?:\btraining\b|{_STATE}|{_COUNT})|.{{0,40}}\bfrom\b[\W_]*\w)"
    rf"|\bcontinuing\b.{{0,80}}(?:{_STATE}|{_COUNT}\D{{0,12}}\d)"
    rf"|\bstart(?:ing|ed|s)?\b.{{0,30}}\b(?:from|at)\b.{{0,10}}{_COUNT}\D{{0,12}}\d",
    re.I,
)
_LOADS = regex(
    rf"\b(?:load(?:ed|ing|s)?|restor(?:ed|ing)|found|reading)\b.{{0,60}}{_STATE}"
    rf"|{_STATE}.{{0,60}}\b(?:loaded|restored|found)\b"
    rf"|\brestor(?:ed|ing)\b.{{0,80}}{_COUNT}\D{{0,12}}\d",
    re.I,
)
# A setting is no act; nor is what is looked for, or is not there.
_NOT_RESUMED = regex(
    r"\b(?:no|not|none|null|never|without|cannot|can't|unable|false|disabled|skipp\w*|if|shards?|from scratch"
    r"|look(?:ing|s)? for|search\w*|found 0|would|could|will be saved)\b|^\W*[\w.]*resume\w*['\"]?\s?[:=]",
    re.I,
)
# The beginning is where every run begins: nothing is behind it.
_FROM_ZERO = regex(r"\b(?:epoch|step|iter(?:ation)?|update|at|from)s?\W{0,3}0\b(?![.\d])", re.I)
# Weights that every run of a training begins with, those of other models, and the best ones at the end.
_OTHER_STATES = regex(
    r"\b(?:pre-?train\w*|backbone|teacher|encoder|tokenizer|vae|data(?:set)?|hub|base|init|initial|best)\b"
    r"|\bfor (?:eval\w*|test\w*|inference|sampling|prediction)\b|\bconfig(?:uration)?\b"
    r"|https?://|torchvision://|[./]cache\b",
    re.I,
)
_RESUMING_WORDS = regex(rb"resum|load|restor|found|reading|continuing|start", re.I)


def resumes(text: bytes, trained: bool = False) -> str | None:
    """Return the line, at most 300 characters, if it says so; None for any other.

    What is loaded once the program has `trained` is not what it began with.
    """
    line = _shown(text, _RESUMING_WORDS)
    if not line or _NOT_RESUMED.search(line) or _FROM_ZERO.search(line):
        return None
    loads = not trained and _LOADS.search(line) and not _OTHER_STATES.search(line)
    return line if loads or _RESUMES.search(line) else None


LONGEST = 400
_NUMBERED = regex(
    rb"\b(?:(?:training|curriculum)[ _-])?(?P<what>stage|phase|curriculum(?:[ _](?:level|step|stage))?)"
    rb"['\"]?[ _]?[:=#]?[ _]?(?P<at>0?[1-9]|one|two|three|four|five|i{1,3}|iv|v)\b(?!\.\d|%)",
    re.I,
)
_CHANGES = regex(
    rb"\b(?:switch(?:ed|es|ing)?|chang(?:ed|es|ing)|moving on|advanc(?:ed|es|ing)|progress(?:ed|ing))"
    rb"\b.{0,40}\b(?:stage|phase|curriculum|objective|loss(?: function)?|resolution|image size|task)\b"
    rb"|\b(?:curriculum|objective|loss function|resolution|task)\b.{0,30}"
    rb"\b(?:switched|changed|advanced|increased)\b"
    rb"|\b(?:un-?freez(?:ing|e[sd]?)|unfrozen)\b.{0,40}"
    rb"\b(?:layers?|backbone|encoder|body|model|weights|parameters)\b",
    re.I,
)
_NO_OBJECTIVE = regex(
    rb"\bzero|stage[ _-]?[123] (?:optimi|shard|offload)|\bif\b|\bwill\b|\bevery\b|/stage", re.I
)
_HINT = regex(rb"stage|phase|curric|switch|chang|freez|advanc|progress|moving|increased", re.I)
_WORTH = {"one": "1", "two": "2", "three": "3", "four": "4", "five": "5"}
_ROMAN = {"i": "1", "ii": "2", "iii": "3", "iv": "4", "v": "5"}


def may_turn(text: bytes) -> bool:
    """Tell whether a line may say that the objective changes, whatever digits are in it."""
    return len(text) <= LONGEST and _HINT.search(text) is not None and not _NO_OBJECTIVE.search(text)


class Objectives:
    """Follows the lines of a log; `changed` is the last one that told of another objective."""

    def __init__(self) -> None:
        self._at: dict[str, str] = {}
        self.changed: str | None = None

    def read(self, text: bytes, begun: bool) -> bool:
        """Tell whether this line says that the objective changes; `begun`: a loss was printed before it."""
        if not may_turn(text):
            return False
        told = _CHANGES.search(text) is not None
        for match in _NUMBERED.finditer(text):
            what, at = match["what"].decode("ascii").lower(), match["at"].decode("ascii").lower().lstrip("0")
            at = _WORTH.get(at, _ROMAN.get(at, at))
            before = self._at.get(what)
            self._at[what] = at
            told = told or (at != before and (before is not None or at != "1"))
        if told and begun:
            self.changed = text.decode("ascii").strip()
        return told and begun


_LONGEST = 1024
# Steps that may be shown before a program says that it resumes: what it loads later is its own.
_MOST_BEFORE = 3
_EVALUATION = regex(
    r"(?<![a-z])(?:eval(?:uat(?:ion|e[sd]?|ing))?|validat(?:ion|ing|e[sd]?)|val|valid|test)(?![a-z])"
    r"(?![\w/ ]{0,30}['\"]?\s?[:=]\s?(?:n/a|none|null|-+)(?:[\s,|;)]|$)).*0"
    r"|\b(?:evaluating|validating)\b|\brunning (?:evaluation|validation)\b",
    re.I,
)
_THING = (
    r"(?:checkpoint|ckpt|snapshot|model|weights|state|optimizer|policy"
    r"|\.pth?\b|\.ckpt\b|\.safetensors\b|\.pkl\b|\.bin\b)"
)
_CHECKPOINT = regex(
    rf"\b(?:sav(?:e[sd]?|ing)|wr(?:ote|iting)|written|dump(?:ed|ing)|stor(?:ed|ing))\b.{{0,80}}{_THING}"
    rf"|{_THING}.{{0,80}}\b(?:sav(?:ed|ing)|written|stored|dumped)\b"
    r"|checkpoint created\b|(?:^|[\]:0] )checkpoint(?:ing)? (?:policy|model|after|at|step|iteration)\b",
    re.I,
)
_FIGURES = regex(
    r"(?:eval|val|valid|validation|evaluation|test)[\w/ .-]{0,40}['\"]?\s*[:=]\s*['\"]?([-+\d.e]+)", re.I
)


def occasion(skeleton: str) -> str:
    """Return what lines of this skeleton tell of: a checkpoint, an evaluation, or nothing."""
    plain = skeleton[:_LONGEST]
    if _CHECKPOINT.search(plain):
        return CHECKPOINT
    return EVALUATION if _EVALUATION.search(plain) else ""


def mentions_state(skeleton: bytes) -> bool:
    """Tell whether lines of this skeleton may say that a run goes on, or that a cache was found."""
    return bool(_RESUMING_WORDS.search(skeleton) or _CACHE_WORDS.search(skeleton))


class Occasions:
    """Counts lines that tell of an evaluation or a checkpoint.

    A figure that a progress bar repeats is one evaluation. What comes before the first step, a configuration
    or an evaluation of the untrained model, counts apart. `resumed` is the line of one that goes on, `cached`
    of one that found what another run has made.
    """

    def __init__(self) -> None:
        self.evaluations = [0, 0]
        self.checkpoints = [0, 0]
        self._last: list[str] = []
        self.resumed: str | None = None
        self.cached: str | None = None

    def read(self, kind: str, text: bytes, seen: int, trained: bool = False, state: bool = True) -> None:
        """Takes a line in that tells of an occasion of this `kind`; `seen` is how many steps were seen before
        it, `trained` says that a loss was, `state` that it `mentions_state`."""
        if state and seen < _MOST_BEFORE:
            self.resumed = self.resumed or resumes(text, trained)
            self.cached = self.cached or finds_cache(text)
        begun = seen > 0
        if kind == CHECKPOINT:
            self.checkpoints[begun] += 1
        elif kind == EVALUATION:
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
