"""Progress bars in lines: where their positions, clocks and rates are, and what they say that they count."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gpudebug.core.lazy import regex
from gpudebug.core.trainlog.names import VALIDATION, classify, phase_of, words
from gpudebug.core.trainlog.text import Span
from gpudebug.core.words import word_set

_CLOCK = r"(?:0{1,4} ?d(?:ays?)?,? ?)?(?:0{1,4}:)?0{1,3}:00(?:\.0{1,9})?"
_NUM = r"0[0,]{0,15}(?:\.0{0,9})?(?:[kKMGB](?![A-Za-z]))?"
_BAR = regex(
    rf"(?<![\w.,])(?:0{{1,3}}(?:\.0{{1,9}})?% ?\|[^|]{{0,400}}\| *)?(?P<n>{_NUM})/(?P<total>{_NUM}|\?) *"
    rf"(?:(?P<open>\[) *(?P<elapsed>{_CLOCK})(?: *< *(?P<eta>{_CLOCK}|\?|-:--:--))?"
    rf"(?: *, *(?P<rate>{_NUM}|\?) ?(?P<unit>[A-Za-z%]{{1,12}}/s|s/[A-Za-z]{{1,12}}))?"
    rf"|(?P<elapsed_r>{_CLOCK}) +(?:{_CLOCK}|-:--:--) +(?P<rate_r>{_NUM}) ?(?P<unit_r>it/s))"
)
_COUNTER = regex(
    rf"(?<![\w.,])(?P<n>0{{1,15}})(?:it|step|steps|batch|batches) \[(?P<elapsed>{_CLOCK}), *"
    rf"(?P<rate>{_NUM}|\?) ?(?P<unit>[A-Za-z%]{{1,12}}/s|s/[A-Za-z]{{1,12}})"
)
_MEASURED = regex(
    r"(?P<name>[A-Za-z_][\w./-]*(?: [A-Za-z_][\w./-]*)?) ?[:=] *"
    r"[+-]?(?:0+(?:\.0*)?(?:e[+-]?0+)?|nan|inf)(?![\w/])%?",
    re.I,
)
OPENING = 32
"""The beginning of a line tells what is done where a path stands between it and its bar."""
COUNTS = frozenset(("step", "epoch", "epochs", "other", "limit"))
"""Kinds of numbers that place a line in a run."""

_PREPARING = word_set("map download tokenize filter preprocess shards checkpoint evaluate inference")
_GOING_ON = VALIDATION | word_set(
    "training pretraining finetuning tuning learning fitting optimizing sampling running working"
)
_DOING = regex(r"[a-z]{2,}ing$")
"""`Loading`, `Capturing`: a bar without a loss whose words are of something else than training."""
_NUMBERED = regex(r"epochs\W{0,3}0", re.I)
_FRAMES = word_set("frame frames timestep timesteps")
_IGNORED_UNIT = regex(r"^(?:B|[kMG]i?B|examples|files|file|items|docs|tokens|tok|ex|example)/s$")


@dataclass(frozen=True, slots=True)
class Bar:
    """A progress bar's position, clock and rate; `counts` is what its words say that it counts, as
    `_counted_by` names it."""

    label: str
    phase: str
    n: Span
    total: Span | None
    elapsed: Span | None
    rate: Span | None
    inverse: bool
    counts: str = ""


def take_bars(text: str) -> tuple[str, tuple[Bar, ...]]:
    """Return the skeleton with its bars masked, and the bars that may count a training's steps."""
    bars: list[Bar] = []
    out, at = [], 0
    for pattern in (_BAR, _COUNTER):
        for match in pattern.finditer(text):
            if match.start() < at:
                continue
            found = match.groupdict()
            elapsed = "elapsed" if found.get("elapsed") else "elapsed_r"
            rate = "rate" if found.get("rate") else "rate_r"
            unit = (found.get("unit") or found.get("unit_r") or "").strip()
            described = text[max(0, match.start() - 80) : match.start()]
            label = words(_undescribed(described))
            doing = {word for word in (*label, *words(text[:OPENING])) if _DOING.match(word)} - _GOING_ON
            prepares = _PREPARING.intersection(label) or (doing and "loss" not in text.lower())
            if not _IGNORED_UNIT.match(unit) and not prepares:
                bars.append(
                    Bar(
                        label=" ".join(label[-6:]),
                        phase=phase_of(label),
                        n=match.span("n"),
                        total=match.span("total") if found.get("total", "?") not in ("?", None) else None,
                        elapsed=match.span(elapsed),
                        rate=match.span(rate) if found.get(rate) not in (None, "?") else None,
                        inverse=unit.startswith("s/"),
                        counts=_counted_by(label, words(unit), _NUMBERED.search(described) is not None),
                    )
                )
            out.append(text[at : match.start()] + "~" * (match.end() - match.start()))
            at = match.end()
        if bars:
            break
    return "".join(out) + text[at:], tuple(bars)


def _undescribed(text: str) -> str:
    """Return a bar's description without its figures, whose names say nothing of what the bar counts."""
    if ":" in text or "=" in text:
        text = _MEASURED.sub(lambda m: m[0] if classify(m["name"]).kind in COUNTS else " ", text)
    return text.replace("%", " ")


def _counted_by(label: list[str], unit: list[str], numbered: bool) -> str:
    """Return what a bar says that it counts: env (frames of one), epoch, or the unit of its rate; not the
    epochs if its words say their number."""
    if _FRAMES.intersection([*label, *unit]):
        return "env"
    if ("epochs" in label and not numbered) or {"epoch", "epochs"} & {*unit}:
        return "epoch"
    return "batch" if {"ba", "batch", "batches"} & {*unit} else ""
