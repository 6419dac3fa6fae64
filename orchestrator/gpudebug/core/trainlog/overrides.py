"""Lines by which a program says that it overrides a setting: name and new value."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from gpudebug.core.lazy import regex
from gpudebug.core.text.values import same_value

# `Overriding: eval_interval = 500`, `override lr: 0.1 -> 0.01`, `Overriding batch_size from 8 to 16`
_WORD = regex(r"\bover(?:rid(?:e|es|ing|den)|writ(?:e|es|ing|ten))\b", re.I)
_WHAT = regex(
    r"(?:[\s:(\[-]*(?:the|cli|command.line|config\w*|yaml|options?|arg\w*|settings?|params?|parameters?|"
    r"hyper\w*|values?|keys?|[\w./-]+\.(?:ya?ml|json|toml|py)|defaults?|fields?|with|of|from|for|in)\b(?!\s*=)[)\]]?)*[\s:`'\"-]*",
    re.I,
)
_NAME = r"(?P<name>[A-Za-z_][\w./-]*)(?![\w.])[`'\"]?"
_OLD = r"(?:\"[^\"]*\"|'[^']*'|\[[^\]]*\]|[^\s,;()]+)"
_VALUE = rf"(?P<value>{_OLD})"
_ARROW = r"(?:->|=>|→)"
_CHANGED = regex(
    rf"{_NAME}(?:(?:\s*[(:=]\s*|\s+(?:from|was)\s+){_OLD}\s*(?:{_ARROW}|\b(?:to|with)\b)|\s+{_OLD}\s+{_ARROW})\s*"
    rf"(?:\w+=)?{_VALUE}\)?\s*(?:#.*)?",
    re.I,
)
_SET = regex(
    rf"{_NAME}(?:\s*[=:]\s*|\s*{_ARROW}\s*|\s+(?:to|with)\s+(?:(?:the\s+)?(?:command.?line|cli)\b[\s\w]*[:=]\s*)?)(?:\w+=)?"
    rf"{_VALUE}\s*(?:#.*)?",
    re.I,
)
# `batch_size: 16 (overridden)`, `lr = 0.1  # from the command line`
_NOTED = regex(
    r".{0,80}(?:overrid(?:e|den)|(?:from|by|set on)\s+(?:the\s+)?(?:command.?line|cli)\b).{0,40}", re.I
)
_BEHIND = regex(
    rf"(?:.*?\s)?{_NAME}\s*[:=]\s*(?:{_OLD}\s*(?:{_ARROW}|\bto\b)\s*)?{_VALUE}\s*(?:#|\(|\[|--?\s)(?P<note>.*)",
    re.I,
)
# What a program says that it does not take over; and that something else than the command line decided.
_REFUSED = regex(
    r"\b(?:unknown|unused|un-?recogni[sz]ed|ignor(?:e[sd]?|ing)|unexpected|invalid|unsupported|extra|stale"
    r"|not|cannot|can't|fail(?:s|ed|ing)?|refus(?:e[sd]?|ing)|skipp?(?:ed|ing|s)?|dropp(?:ed|ing))\b",
    re.I,
)
_BY_OTHERS = regex(r"\bby\b(?!.{0,12}\b(?:command.?line|cli|flags?|arg\w*|user|option)s?\b)", re.I)
_HEADER = regex(r".*\boverrid(?:e|es|ing)\b.*\bwith\b.*:\s*", re.I)
_PAIR = regex(r"['\"]?(?:--|\+{1,2})?([A-Za-z_][\w./@-]*)=(\"[^\"]*\"|'[^']*'|\[[^\]]*\]|[^\s,'\"\]]*)['\"]?")
_BETWEEN = regex(r"[\s,\[\](){};]*")
_LIST = regex(r"(?:.*\.)?(?:\w+_)?overrides?(?:\.task|\.hydra)?", re.I)


def of_line(line: str) -> list[tuple[str, str]]:
    """Return the settings that a line overrides, with their new values; none for any other line."""
    word = _WORD.search(line) or re.search(r"\boverrides\b", line, re.I)
    if word is None and "ommand" not in line and "cli" not in line.lower():
        return []
    if is_refused(line):
        return []
    if word is not None:
        behind = line[word.end() :]
        tail = behind[match.end() :] if (match := _WHAT.match(behind)) else behind
        if behind.lstrip().startswith(":") or tail.startswith("["):
            several = _several(behind.lstrip(" :\t"))
            if several:
                return several
        for form in (_CHANGED, _SET):
            found = form.fullmatch(tail)
            if found is not None:
                return [(found["name"], _plain(found["value"]))]
    noted = _BEHIND.fullmatch(line)
    if noted is not None and _NOTED.fullmatch(noted["note"]) and not _BY_OTHERS.search(noted["note"]):
        return [(noted["name"], _plain(noted["value"]))]
    return []


def is_refused(line: str) -> bool:
    """Whether a line says that what it holds, or what follows it, is not taken over: `Unused keys: …`."""
    return _REFUSED.search(line) is not None


def is_header(line: str) -> bool:
    """Tell whether a line says that the settings below it override others: those of a file, say."""
    return _HEADER.fullmatch(line) is not None


def mentions(line: str) -> bool:
    """Tell whether what a line holds besides are overrides: `Overrides: {...}`."""
    return re.search(r"\boverrides?\b|\boverriding\b", line, re.I) is not None


def is_list(name: str) -> bool:
    """Tell whether a setting of this name lists overrides, as Hydra's does."""
    return _LIST.fullmatch(name) is not None


def of_words(words: Iterable[str]) -> list[tuple[str, str]]:
    """Settings of words like `trainer.max_steps=5` and `+seed=1`; others are left out."""
    found = (_PAIR.fullmatch(word.strip()) for word in words)
    return [(match[1], _plain(match[2])) for match in found if match is not None]


def _plain(value: str) -> str:
    """Without quotes, and without the full stop of a sentence."""
    return value.strip("\"'").rstrip(".")


def _several(text: str) -> list[tuple[str, str]]:
    """Settings of a text that is nothing but a list of them."""
    found = list(_PAIR.finditer(text))
    rest = _PAIR.sub("", text)
    if not found or not _BETWEEN.fullmatch(rest):
        return []
    return [(match[1], _plain(match[2])) for match in found]


_RANK = regex(r"(?:\w*[._])?(?:local_|global_|node_)?rank|proc(?:ess)?_(?:id|index)", re.I)
# A configuration that is printed again shares at least this of the smaller one's names.
_REPRINTED = 0.5


class Form(Enum):
    """How settings are printed: as what holds if nothing is set, as lines, as one structure (a Namespace, a
    dictionary), as an override."""

    DEFAULTS = "defaults"
    LINES = "lines"
    STRUCTURE = "structure"
    OVERRIDE = "override"


@dataclass
class SettingBlock:
    """Settings that a program prints in one go; `values` are those of each name, in order."""

    form: Form
    values: dict[str, list[str]] = field(default_factory=dict)

    def add(self, name: str, value: str) -> None:
        self.values.setdefault(name, []).append(value)


@dataclass(frozen=True)
class Settings:
    """`known` is each setting's last word, `restated` every value of one that was given several, in order.

    A name in `restated` alone is one of which it is unknown what holds.
    """

    known: Mapping[str, str] = field(default_factory=dict)
    restated: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def resolve(blocks: Sequence[SettingBlock]) -> Settings:
    """Settings of blocks in the order in which they were printed; defaults are before all others."""
    blocks = sorted(blocks, key=lambda block: block.form is not Form.DEFAULTS)
    statements: dict[str, list[tuple[str, SettingBlock]]] = {}
    for block in blocks:
        for name, values in block.values.items():
            statements.setdefault(name, []).extend((value, block) for value in values)
    known, restated = dict[str, str](), dict[str, tuple[str, ...]]()
    for name, every in statements.items():
        last, block = every[-1]
        all_defaults = block.form is Form.DEFAULTS
        given = [(value, by) for value, by in every if all_defaults or by.form is not Form.DEFAULTS]
        others = [(value, by) for value, by in given[:-1] if not same_value(value, last)]
        if not others:
            known[name] = given[0][0]
            continue
        superseded = {by.form for _, by in others} == {Form.LINES} and block.form is Form.STRUCTURE
        if block.form is Form.OVERRIDE or all(_printed_again(by, block) for _, by in others):
            known[name] = last
        else:
            restated[name] = tuple(_distinct(value for value, _ in given))
            if superseded:
                known[name] = last
    return Settings(known, restated)


def combined(first: Settings, *later: Settings) -> Settings:
    """Return the settings of several sources: where two differ, it is unknown which holds."""
    known, restated = dict(first.known), dict(first.restated)
    for settings in later:
        for name, values in settings.restated.items():
            restated[name] = tuple(_distinct((*restated.get(name, ()), *values)))
            known.pop(name, None)
        for name, value in settings.known.items():
            if name in restated:
                restated[name] = tuple(_distinct((*restated[name], value)))
                if name in known and not same_value(known[name], value):
                    del known[name]
            elif not same_value(known.setdefault(name, value), value):
                restated[name] = (known.pop(name), value)
    return Settings(known, restated)


def _distinct(values: Iterable[str]) -> list[str]:
    """Values in order, each where it is printed last."""
    found: list[str] = []
    for value in values:
        found = [*(other for other in found if not same_value(other, value)), value]
    return found


def _printed_again(earlier: SettingBlock, later: SettingBlock) -> bool:
    """Whether `later` is the configuration of `earlier` once more, so that its values are the newer ones.

    Ranks print theirs beside each other: what differs between these has no order.
    """
    if earlier is later or earlier.form is not later.form:
        return False
    smaller = min(len(earlier.values), len(later.values))
    shared = earlier.values.keys() & later.values.keys()
    if smaller < 2 or len(shared) < _REPRINTED * smaller:
        return False
    return not any(_RANK.fullmatch(n) and earlier.values[n] != later.values[n] for n in shared)
