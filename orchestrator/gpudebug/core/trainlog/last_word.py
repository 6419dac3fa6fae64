"""What a program says of one setting several times: which of its values holds, and when that is unknown.

Programs echo the file of their configuration before they apply the command line, print the same arguments
again once they are resolved, and say that they override one. Order means something only between such
statements; two that contradict each other otherwise leave the setting unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from gpudebug.core.text.values import same_value

_RANK = re.compile(r"(?:\w*[._])?(?:local_|global_|node_)?rank|proc(?:ess)?_(?:id|index)", re.I)
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
