"""Which process of a job printed a line, by the labels of launchers, loggers and programs.

`[default0]:` and `[rank0]:` of torchrun, `0: ` of srun, `[1,0]<stdout>:` of mpirun, `[Rank 0]` of DeepSpeed,
`(0/8)` behind a place in the source of icefall, `rank 0` in the words of a line. A line may carry several.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from gpudebug.core.trainlog.text import Span

MOST_LABELS = 4
MOST_RANKS = 64
FEWEST_FALLS = 2
ORDERED, ORDERED_FALLS = 4, 4
"""So few labels may come in order by chance; a counter that begins again as often is not so short."""

_WHO = r"(?:default|(?:local_|global_)?rank|gpu|cuda|node|worker|proc(?:ess)?)"
_FIRST = tuple(
    re.compile(pattern, re.I)
    for pattern in (
        rf"\W{{0,3}}\[{_WHO}[ :=_#-]{{0,3}}(?P<rank>0{{1,5}})\]:? ?",
        r"\[[a-z_]{1,24}(?P<rank>0{1,5})\]: ?",  # torchrun names its workers by the role.
        r"\[(?:0{1,5},)?(?P<rank>0{1,5})\]<std(?:out|err)>:? ?",
        rf"\W{{0,3}}{_WHO}[ :=_#-]{{0,3}}(?P<rank>0{{1,5}})(?: ?[:|>] ?|, )",
        r"\[[\w.-]{1,60}:(?P<rank>0{1,5})/0{1,5}\] (?=0000-00-00)",  # ESPnet.
    )
)
_RAY = re.compile(r"\([\w.:, ]{0,60}pid=(?P<rank>0+)[^)]{0,60}\) ?")
_NUMBERED = re.compile(r" {0,5}(?P<rank>0{1,5}): (?=\S)")
_WITHIN = re.compile(
    rf"\[{_WHO}[ :=_#-]{{0,3}}(?P<rank>0{{1,5}})\]:?"
    r"|\.py:0{1,5}\] \((?P<of>0{1,5})/0{1,5}\)(?= )"
    r"|(?<![\w./])(?<!mean )(?<!avg )(?<!average )(?<!median )(?:local_|global_|dp_)?rank['\"]?[ :=_#-]{0,3}"
    r"(?P<word>0{1,5})(?![\w.%]|,0)",
    re.I,
)
_HINT = re.compile(
    r"rank|pid=|<std|(?:^|: )\W{0,4}\[?[A-Za-z]{3,20}[ :=_#-]{0,3}0|\.py:0{1,5}\] \(|/0+\] 0000-", re.I
)


@dataclass(frozen=True, slots=True)
class RankPlaces:
    """Where a line's labels are, that of a process which has no rank, and a number that may be a label."""

    sure: tuple[Span, ...] = ()
    process: Span | None = None
    numbered: Span | None = None


NO_RANKS = RankPlaces()


def find_ranks(text: str) -> tuple[str, RankPlaces]:
    """Return the skeleton with its labels masked, and their places; a lone number ahead of the line stays."""
    sure: list[Span] = []
    first = _NUMBERED.match(text)
    numbered, at = (first.span("rank"), first.end()) if first else (None, 0)
    if not _HINT.search(text):
        return text, RankPlaces(numbered=numbered)
    ray = _RAY.match(text, at)
    process = ray.span("rank") if ray else None
    if ray:
        text, at = _blanked(text, *ray.span()), ray.end()
    while len(sure) < MOST_LABELS:
        found = next((match for pattern in _FIRST if (match := pattern.match(text, at))), None)
        if found is None:
            break
        sure.append(found.span("rank"))
        text, at = _blanked(text, *found.span()), found.end()
    while len(sure) < MOST_LABELS:
        within = _WITHIN.search(text, at)
        if within is None:
            break
        name = within.lastgroup or "rank"
        sure.append(within.span(name))
        start = within.start() if name != "of" else within.start("of") - 1
        text, at = text[:start] + "~" * (within.end() - start) + text[within.end() :], within.end()
    if numbered and (sure or process):
        sure.insert(0, numbered)
        text, numbered = _blanked(text, 0, numbered[1] + 1), None
    return text, RankPlaces(tuple(sure), process, numbered)


def _blanked(text: str, start: int, end: int) -> str:
    return text[:start] + " " * (end - start) + text[end:]


def rank_of(text: bytes, places: RankPlaces) -> str:
    """Return the process that printed a line, by all its labels: `0`, or `1/0` where they differ, `pid 71`
    without a rank; empty if the line says nothing."""
    labels: list[str] = []
    for start, end in places.sure:
        label = text[start:end].decode("ascii").lstrip("0") or "0"
        if not labels or label != labels[-1]:
            labels.append(label)
    if not labels and places.process:
        labels.append(f"pid {text[slice(*places.process)].decode('ascii')}")
    return "/".join(labels)


def order_of(rank: str) -> list[int]:
    """Return the order of ranks: the lowest speaks for a job. Processes without one are alike."""
    return [int(part) if part.isdecimal() else 0 for part in rank.split("/")]


@dataclass(slots=True)
class NumberedLines:
    """Whether the number ahead of lines is a label, as of `srun --label`, or a counter.

    A counter rises by ones, or in equal steps, and begins again now and then; labels are the numbers from 0
    on, in any order.
    """

    _last: int = -1
    _falls: int = 0
    _jumps: int = 0
    _seen: set[int] = field(default_factory=set)

    def add(self, value: int) -> None:
        """Takes in the number ahead of the next line."""
        self._falls += value < self._last
        self._jumps += value not in (0, self._last, self._last + 1)
        self._last = value
        if len(self._seen) <= MOST_RANKS:
            self._seen.add(value)

    @property
    def labels(self) -> bool:
        """Whether it is a label, by the lines so far."""
        count = len(self._seen)
        if not 1 < count <= MOST_RANKS or max(self._seen) >= count:
            return False
        ordered = count <= ORDERED and self._falls >= ORDERED_FALLS
        return ordered or (self._falls >= FEWEST_FALLS and self._jumps >= FEWEST_FALLS)
