"""The shape of a line: where its numbers stand and what they are called.

A shape is read from the line's skeleton (digits zeroed), so it holds for every line with the same
skeleton; the reader keeps shapes and reads most lines by slicing alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from gpudebug.core.lazy import regex
from gpudebug.core.trainlog.bars import COUNTS, Bar, take_bars
from gpudebug.core.trainlog.losses import UnnamedPlace, find_unnamed
from gpudebug.core.trainlog.names import (
    TRAINING,
    VALIDATION,
    Role,
    classify,
    phase_of,
    words,
)
from gpudebug.core.trainlog.origin import NO_RANKS, RankPlaces, find_ranks, recognise
from gpudebug.core.trainlog.tables import find_header, find_rows, row_like
from gpudebug.core.trainlog.text import NUMBER, Span, last_digit
from gpudebug.core.words import word_set

LONGEST_UNIT = 5
"""Longer words right after a number are other text that was printed there, as after a bar."""

_STAMP = regex(
    r"(?P<date>0000[-/.]00[-/.]00|00/00/(?:00)?00|00[-/]00)[T _]00:00:00(?:[.,]0+)?(?:Z|[+-]00:?00)?"
    r"|[IWEF]0000 00:00:00\.0+ +0+|0+:00:00(?:[.,]0+)?|0000-00-00"
)
_BUILD = regex(
    r"\s*\[0+/0+\] (?:(?:\S*/)?(?:c\+\+|g\+\+|gcc|cc|clang\+{0,2}|nvcc|hipcc|ccache|ar|ld|cmake) "
    r"|(?:Building|Linking|Generating) )|\s+[\w.]+=.*,$"
)
"""What ninja prints of a library's kernels, compiled as a training begins; what a printed object holds."""
_PLACE = regex(r"(?<![\w./-])[\w./-]{1,160}\.(?:py|cc|cpp|cu|c|h|hpp|rs|go):0+")
_HAS_PLACE = regex(r"\.(?:py|cc|cpp|cu|c|h|hpp|rs|go):0")
_VERSION = regex(r"0x[0a-f]{4,}|(?<![\w.])0+(?:\.0+){2,}\w*")
_HAS_VERSION = regex(r"0x0|0\.0+\.0")
_RATIO_GAP = regex(r" ?/ *$| of $")
_WRAPPED = regex(r"(?:[\w.]{0,20}(?:tensor|array|Array|float0*|scalar))\(\[*$")
_PARENS = regex(r" ?\(([A-Za-z_ /.-]{1,20})\)")
_DELIMITER = regex(r"[|,;{}\[\]()~\t]|:(?!:)|\s{2,}|\s-+\s|^-+\s|=>|\s\*+\s|\.\s(?=[A-Z])")
_TWIN = regex(r"([A-Za-z_]{1,40}) \(([A-Za-z_]{1,40})\): $")
_PARENT = regex(r"([A-Za-z_]{1,40})\[([A-Za-z_]{1,40})$")
_NOTE = regex(
    r" ?[\[(](?:0+ ?[-:,] ?0+|(?:mean|avg|average|last|over)\b[^\[\]()]{0,40})[\])](?= ?[:=])"
    r"|(?<=[\[(])0+-(?=0+[\])])"  # What a range of batches begins with: its end is how far they came.
)
_OF_EPOCH = regex(r"^[- ]epoch \($|(?<![A-Za-z_])(?:i|idx)[=:] ?$")  # `0-epoch (99/400)`, `i=99/400`
_PAIRED = regex(r"[\])]? *[\[(]? *0+ ?/ ?0+[\]) ]")  # The epoch in `29/30 160/165`.
_OF_OTHERS = regex(r" ?[A-Za-z]{2,}s[)\]]")  # `(342/759 merges)`
_PAIR = regex(r"\W{0,3}[\[(] *(?P<epoch>0+), *(?P<step>0+) *[\])].*(?:loss|Loss)")
_LIST = regex(r"[+-]?[0nN.][\w.+-]*(?:,? +[+-]?[0nN.][\w.+-]*)+(?=\])")
_SPLIT = regex(r"['\"](?:mode|split|phase|stage|subset)['\"]: *['\"]([A-Za-z_]{1,20})['\"]")
_SUMMARY = regex(
    r"[^0]{0,60}?\b(?:[Bb]est|[Ll]owest) (?:model|epoch|checkpoint|iteration|step|result)s?\b(?! saved)"
)
_DECIMAL = regex(r" +[+-]?0+\.0+| (?:batches|steps|iter(?:ation)?s|epochs|updates)\b")
_UNIT_BEFORE = regex(r"^[a-z]{1,12}/s(?:ec)? +")
_LETTERS = regex(r"[A-Za-z]")
_SEPARATORS = " \t=:<>~\"'`([{#"
_TIME_UNITS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    "ms": 1e-3,
    "us": 1e-6,
    "min": 60.0,
    "m": 60.0,
    "h": 3600.0,
}
_PER_STEP_UNIT = regex(r"(ms|us|s|secs?|seconds?)/(?:it|iter|iteration|step|batch)$")
_RATE_UNIT = regex(r"(?:it|its|iters?|iterations?|steps?|batch|batches)/s(?:ec|econd)?$")
_SPEED = word_set("speed throughput rate train training avg average mean")
_PHASES = TRAINING | VALIDATION | {"training"}

_HEAD = regex(
    r"oss|error| total |rmse|mae\b|mse\b"
    r"|^\W{0,2}(?:step|epoch|iter|batch|round|update|frame|episode)\w*(?:[,\t]| .*  )",
    re.I,
)
_INTEREST = regex(
    r"loss|nll|xent|mse\b|rmse|mae\b|l0\b|learn|ppl|perplexity|error|deviance|elbo|bp[bc]\b|cost|objective"
    r"|entropy|tr?e?l:|step|iter|epoch|update|batch|round|it/s|frames|0 ?/ *0|time|data|fps",
    re.I,
)


COARSE = ("K", "M", "B", "k", "G")  # Behind a number: thousands, millions, ….


@dataclass(frozen=True, slots=True)
class LoggedNumber:
    """One number of a line. `name` is zeroed where it holds digits; `named` is then its place.

    `bare` says that it has no name and may be the cell of a row, `grain` what the last digit of a duration is
    worth.
    """

    role: Role
    name: str
    named: Span | None
    style: str
    value: Span
    scale: float = 1.0
    total: Span | None = None
    bare: bool = False
    at: slice = field(init=False)
    key: tuple[str, str] = field(init=False)
    terms: bool = False
    grain: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "at", slice(*self.value))
        object.__setattr__(self, "key", (self.style, self.name))


@dataclass(frozen=True, slots=True)
class Shape:
    """All that can be read from lines of one skeleton."""

    fields: tuple[LoggedNumber, ...] = ()
    bars: tuple[Bar, ...] = ()
    stamp: Span | None = None
    ranks: RankPlaces = NO_RANKS
    rows: tuple[tuple[str, tuple[Span, ...]], ...] = ()
    header: tuple[str, tuple[Span, ...]] | None = None
    framework: str | None = None
    unnamed: UnnamedPlace | None = None

    @property
    def size(self) -> int:
        """How much it takes to keep, in fields."""
        return len(self.fields) + len(self.bars) + sum(len(cells) for _, cells in self.rows)


@dataclass(frozen=True, slots=True)
class NumberToken:
    """The place of a number, of its unit, and of the total in `n/total`."""

    start: int
    end: int
    unit: str
    unit_end: int
    total: Span | None = None


def read_shape(skeleton: str) -> Shape | None:
    """Return the shape of a skeleton, or None if the line says nothing about the training's progress."""
    if _BUILD.match(skeleton):
        return None
    framework = recognise(skeleton)
    text, ranks = find_ranks(skeleton)
    header = find_header(text) if _HEAD.search(text) else None
    if header is not None:
        return Shape(header=header, framework=framework)
    tabular = row_like(text)
    unnamed = find_unnamed(text)
    if not tabular and unnamed is None and not _INTEREST.search(text):
        return Shape(framework=framework) if framework else None
    text, bars = take_bars(text) if "/" in text or "[" in text else (text, ())
    text, stamp = without_marks(text)
    if ("]" in text or ")" in text) and _NOTE.search(text):
        text = _NOTE.sub(lambda match: " " * len(match[0]), text)
    fields = _fields(text, bars)
    rows = find_rows(text, bool(bars)) if tabular else ()
    if rows:
        end = max(cells[-1][1] for _, cells in rows)
        fields = tuple(replace(f, bare=f.bare and f.value[1] <= end) for f in fields)
    if _SUMMARY.match(text):
        fields, rows = tuple(f for f in fields if f.role.kind not in ("loss", *COUNTS)), ()
    if not (fields or bars or rows or unnamed):
        return Shape(framework=framework) if framework else None
    return Shape(
        fields=fields,
        bars=bars,
        stamp=stamp,
        ranks=ranks,
        rows=rows,
        framework=framework,
        unnamed=unnamed,
    )


def _mask(match: re.Match[str]) -> str:
    return "~" * len(match[0])


def without_marks(text: str) -> tuple[str, Span | None]:
    """Masks what is no measurement: (text, dated time stamp)."""
    stamp = _STAMP.search(text) if "00" in text else None
    if stamp:
        text = _STAMP.sub(_mask, text)
    if _HAS_PLACE.search(text):
        text = _PLACE.sub(_mask, text)
    if _HAS_VERSION.search(text):
        text = _VERSION.sub(_mask, text)
    return text, stamp.span() if stamp and stamp["date"] else None


def tokens_of(text: str) -> list[NumberToken]:
    """Return the numbers of a skeleton, each with the unit that is printed right behind it."""
    tokens: list[NumberToken] = []
    for match in NUMBER.finditer(text):
        start, end = match.span("value")
        unit = (match["unit"] or "").strip()
        last = tokens[-1] if tokens else None
        if last and last.total is None and not last.unit and _RATIO_GAP.match(text[last.end : start]):
            whole = "." not in text[last.start : end] and "e" not in text[last.start : end].lower()
            if whole and text[end : end + 1] != "/" and not (unit and "/" in unit):
                tokens[-1] = NumberToken(last.start, last.end, unit, match.end(), (start, end))
                continue
        tokens.append(NumberToken(start, end, unit, match.end()))
    return tokens


def _fields(text: str, bars: tuple[Bar, ...]) -> tuple[LoggedNumber, ...]:
    fields: list[LoggedNumber] = []
    of_row = _of_row(text)
    phase = of_row or (bars[0].phase if bars else "")
    at = 0
    opening = pending = after = ""
    tokens = tokens_of(text)
    table = text.lstrip()[:1] == "|"
    for index, token in enumerate(tokens):
        if token.start < at:
            continue
        gap = text[at : token.start]
        key, prefix, style, key_span = label_of(gap, at, table)
        twin = _TWIN.search(gap) if gap[-2:-1] == ":" else None
        if twin and text[token.end : token.end + 2] == " (":
            key, after = twin[1], twin[2]
        elif after and gap == " (":
            key, after = after, ""
        counting = token.total is not None and _OF_EPOCH.search(gap)
        role = Role("step", tier=1) if counting else classify(key) if key else Role("")
        if role.kind == "loss" and style == " " and (about := _told_at(key, text, token)):
            role = Role("step", role.phase, tier=1, about=about)
        if style == " " and not role.kind and text[token.end - 1] in "nNfFyY":
            continue
        at = token.unit_end
        counts = token.total is not None and not role.kind  # `valid on 'valid' subset  10 / 13 loss=1.6`
        phase = next_phase([*prefix, key] if counts else prefix, phase)
        metric = not role.kind and style in ":=" and not _PHASES.issuperset(words(key))
        if index == 0 and role.kind in ("step", "epoch", "") and not metric:
            phase = phase_of(words(key)) or phase
        if index == 0:
            opening = phase
        if counts and gap.rstrip()[-1:] in ("[", "(") and _PHASES.issuperset(words(key)):
            key = ""  # `Training  [  40/5000]`
        if not key or (pending and key == "is"):
            suffix = _suffix(text, token, tokens[index + 1].start if index + 1 < len(tokens) else len(text))
            role, key = _unnamed(token, pending, suffix, text, fields, gap)
        pending = ""
        if role.about:
            pending = role.about if role.about != "#" else ""
        phase = of_row or phase
        timed = role.kind in ("total", "data", "update", "part") or not role.kind
        field = _field(role, key, key_span, style, token, role.phase or (opening if timed else phase))
        if field:
            fields.append(_whole(field, text, gap))
            at = max(at, fields[-1].value[1])
    return tuple(fields)


def _whole(field: LoggedNumber, text: str, gap: str) -> LoggedNumber:
    """Return a loss with all its terms: `[0.1, 0.2]`; a duration with its grain."""
    if field.role.kind in ("data", "update", "total"):
        return replace(field, grain=field.scale * last_digit(text[field.at]))
    terms = _LIST.match(text, field.value[0]) if field.role.kind == "loss" and gap[-1:] == "[" else None
    return replace(field, value=terms.span(), terms=True) if terms else field


def _of_row(text: str) -> str:
    """Return the phase that a record names itself, as `"split": "valid"`; empty if it names none."""
    match = _SPLIT.search(text) if "'" in text or '"' in text else None
    return "" if match is None else "train" if match[1] == "opt" else phase_of(words(match[1]))


def _told_at(key: str, text: str, token: NumberToken) -> str:
    """Return the loss in `Loss step 10: 0.5`, `Train loss 10 0.51`, `error last 10 batches`; else empty."""
    name, _, last = key.rpartition(" ")
    if last.lower() in ("step", "epoch", "iter", "iteration") and text[token.end :][:2] in (": ", " ="):
        return name
    return key if "." not in text[token.start : token.end] and _DECIMAL.match(text, token.end) else ""


def next_phase(prefix: list[str], phase: str) -> str:
    """Return the phase that the names before a number speak of; `phase` if they say nothing."""
    for part in prefix:
        parts = words(part)
        if 0 < len(parts) <= 5:
            phase = phase_of(parts) or phase
    return phase


def label_of(gap: str, at: int, table: bool) -> tuple[str, list[str], str, Span | None]:
    """Return the name before a number: (name, parts before it, style, its place)."""
    trimmed = _WRAPPED.sub("", gap).rstrip(_SEPARATORS)
    if table:
        trimmed = trimmed.rstrip(_SEPARATORS + "|")
    after = gap[len(trimmed) :]
    style = "q" if "'" in after or '"' in after else "=" if "=" in after else ":" if ":" in after else " "
    parts = _DELIMITER.split(_PARENS.sub(r" \1", trimmed))
    key = _UNIT_BEFORE.sub("", parts[-1].strip(" '\"`-./*>")) if parts else ""
    parent = _PARENT.search(trimmed)
    if parent and parent[2] == key:
        return f"{parent[1]} {key}", parts[:-1], style, None
    if not _LETTERS.search(key):
        return "", parts, style, None
    where = gap.rfind(key)
    return key, parts[:-1], style, (at + where, at + where + len(key)) if where >= 0 and "0" in key else None


def _suffix(text: str, token: NumberToken, until: int) -> str:
    """Words after a nameless number up to a delimiter: `6.1 avg loss,`, `200/2983 batches |`."""
    after = text[token.unit_end : until]
    cut = _DELIMITER.search(after)
    if cut is None and until < len(text):
        return ""
    return (after[: cut.start()] if cut else after).strip()


def _unnamed(
    token: NumberToken, pending: str, suffix: str, text: str, fields: list[LoggedNumber], gap: str
) -> tuple[Role, str]:
    pair = _PAIR.match(text)
    if pair and token.start == pair.start("epoch"):
        return Role("epoch"), "epoch"
    if pair and token.start == pair.start("step"):
        return Role("step", tier=2, about="#"), "#"
    if pending:
        role = classify(pending)
        return role if role.kind else Role("loss", tier=4), pending  # `Score at iteration 10 is 1.2`
    role = classify(suffix) if suffix and _LETTERS.search(suffix) else Role("")
    if token.total is not None:
        if _PAIRED.match(text, token.unit_end):
            return Role("epoch"), "epoch"
        if role.kind == "step":
            return role, suffix
        before = text[: token.start]
        alone = (
            not before.strip(" ~\t")
            or before.rstrip().endswith((":", "|", "%"))
            or before.rstrip(" ")[-1:] in "[("
            or (fields and fields[-1].role.kind == "epoch" and not gap.strip())
        )
        percent = "%" in text[token.unit_end : token.unit_end + 12]
        if (alone or percent) and "/" not in token.unit and not _OF_OTHERS.match(text, token.unit_end):
            return Role("step", tier=1, about="#"), ""
        return Role(""), ""
    if role.kind == "loss" and "." in text[token.start : token.end]:
        return role, suffix
    first = not fields and not token.unit and not gap.strip(" \t~[]|(#")
    again = bool(fields) and fields[-1].name == "#" and not gap.strip(" \t|")
    if (first or again) and "." not in text[token.start : token.end]:
        return Role("step", tier=2, about="#"), "#"
    return Role(""), ""


def _field(
    role: Role, key: str, key_span: Span | None, style: str, token: NumberToken, phase: str
) -> LoggedNumber | None:
    known = len(token.unit) <= LONGEST_UNIT or "/" in token.unit or token.unit in _TIME_UNITS
    unit = token.unit if known else ""
    scale = role.scale
    end = token.end
    kind = role.kind
    if unit in COARSE:
        end = token.unit_end
    per_step = _PER_STEP_UNIT.match(unit)
    if per_step:
        role, scale = Role("total", phase), _TIME_UNITS[per_step[1]]
    elif _RATE_UNIT.match(unit) and kind in ("", "rate", "step"):
        role = Role("rate" if kind == "rate" or _SPEED.issuperset(words(key)) else "", phase)
    elif unit in _TIME_UNITS and kind == "step" and token.unit_end == token.end + len(unit):
        role = Role("", phase)  # `Step: 366ms`, `3s512ms`: how long one takes.
    elif unit in _TIME_UNITS and kind not in ("step", "loss", "other"):
        scale = _TIME_UNITS[unit]
        if kind in ("", "epoch"):  # `epoch: 29.04 secs`
            role = classify(f"{key} time") if key else role
    elif (kind in ("data", "update") and role.tier and unit) or (
        unit and "/" in unit and kind in ("step", "other", "loss")
    ):
        role = Role("", phase)
    if not role.kind or (unit == "%" and role.kind != "loss"):
        return None
    if role.kind == "round" and scale > 1:
        # The rest of `1m 25s` is another number.
        return None
    if role.kind == "loss" and unit and unit not in ("s", "nats", "bits") and unit != "%":
        return None
    role = Role(role.kind, role.phase or phase, role.tier, role.scale, role.about)
    name = " ".join(key.lower().split())
    bare = name in ("", "#") and role.kind == "step"
    return LoggedNumber(role, name, key_span, style, (token.start, end), scale, token.total, bare)
