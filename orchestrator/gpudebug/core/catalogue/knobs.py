"""Where a knob of the catalogue has to go, applied to one command or program."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from gpudebug.core.catalogue.model import Knob, written
from gpudebug.core.catalogue.program import Default, Kind, OwnFlag, folded
from gpudebug.core.command import cadence, command_line, launchers
from gpudebug.core.command.cadence import UNKNOWN_LENGTH, PlannedLength
from gpudebug.core.command.synonyms import Synonyms, long_name
from gpudebug.core.lazy import regex

_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0", "none", "null", ""})
_OFTEN = regex(r"every|freq|interval|period|steps$")
NEVER = 10**9
"""Steps that no training makes; 0 would be a division by zero in `step % every`."""
_OF_CORES = regex(
    r"(workers?|threads?|proc(s|esses)?|jobs|concurrency|parallel_calls)(_(count|da|per_\w+|in_\w+))?$", re.I
)
"""Options of these names ask for hands, each of which wants a core of its own."""


class CurrentOption(NamedTuple):
    """An option as the program has it and as it is set now: `value` is None if unknown, `given`
    that the command or the environment says it."""

    name: str
    value: Default
    kind: Kind
    given: bool
    variable: bool = False
    choices: tuple[str, ...] = ()


def standing(
    argv: Sequence[str], env: Mapping[str, str], own: Mapping[str, OwnFlag], synonyms: Synonyms = ()
) -> dict[str, CurrentOption]:
    """Return every option of the command and of its program by the folded long name."""
    found = {}
    for key, flag in own.items():
        if flag.variable:
            value = env.get(flag.name, flag.default)
            found[key] = CurrentOption(flag.name, value, "str", flag.name in env, variable=True)
        else:
            found[key] = CurrentOption(flag.name, flag.default, flag.kind, given=False, choices=flag.choices)
    for option in command_line.program_options(argv):
        key = folded(long_name(option.name, synonyms))
        defined = own.get(key)
        kind = defined.kind if defined else _kind_of(option.value)
        bare: Default = kind != "unset_switch" if option.value is None else option.value
        found[key] = CurrentOption(option.name, bare, kind, True, choices=defined.choices if defined else ())
    return found


def _kind_of(value: str | None) -> Kind:
    if value is None:
        return "switch"
    if re.fullmatch(r"[-+]?\d+", value):
        return "int"
    if launchers.is_number(value):
        return "float"
    return "bool" if value.lower() in ("true", "false") else "str"


def turned(
    knobs: Sequence[Knob],
    options: Mapping[str, CurrentOption],
    limit: float | None,
    plan: PlannedLength = UNKNOWN_LENGTH,
    refused: list[str] | None = None,
) -> Iterator[str]:
    """The changes that the knobs ask for in `propose`'s words, of each option the first that changes it.

    `limit` is the most that options which mean workers or threads rise to. `plan` is how long the run is: as
    rare as that leaves some in it, evaluations, checkpoints and log lines are made; `refused` takes why not.
    """
    for knob in knobs:
        for key, option in options.items():
            if not meant(knob, key):
                continue
            if knob.side_work:
                change, why = _rarer(knob, key, option, plan)
                if why is not None and refused is not None:
                    refused.append(why)
                yield from [change] if change is not None else []
            else:
                yield from _change(knob, key, option, limit)


def _rarer(knob: Knob, key: str, option: CurrentOption, plan: PlannedLength) -> tuple[str | None, str | None]:
    """Return the change of an option that says how often, and else why there is none."""
    if knob.direction in ("on", "off"):
        switched = next(_change(knob, key, option, None), None)
        off = f"{option.name} would switch it off, which is a layer test: gpudebug diagnose --layer quiet"
        return None, off if switched is not None else None
    every, kind = _number(option.value), cadence.kind_of(key) or cadence.EVALUATION
    if every is None or every <= 0 or knob.factor is None:
        return None, None
    wanted = cadence.rarer(key, every, kind, knob.factor, plan)
    if wanted is None:
        left = f"{cadence.LEFT[kind]} {cadence.PLURAL[kind]} have to remain in the run"
        return None, f"{option.name}={written(every)} stays: {left}"
    text = f"{option.name}={written(float(int(wanted)) if wanted >= 1 else wanted)}"
    return (f"--env {text}" if option.variable else f"--set {text}"), None


def meant(knob: Knob, key: str) -> bool:
    """Tell whether a knob is the option of this folded name, or of its last part: `data.num_workers`."""
    names = {key, key.rpartition(".")[2]}
    return any(pattern.fullmatch(name) for pattern in map(_compiled, knob.names) for name in names)


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def _change(knob: Knob, key: str, option: CurrentOption, limit: float | None) -> Iterator[str]:
    if knob.direction in ("on", "off") and option.kind in ("switch", "unset_switch", "pair"):
        yield from _switched(knob.direction == "on", option)
        return
    value = _value(knob, key, option, limit if is_hands(key) else None)
    if value is None or not _takes(option, value):
        return
    switched = knob.direction in ("on", "off") and value != str(NEVER)
    if not (switched and _truth(option.value) == _truth(value)):
        text = f"{option.name}={value}"
        yield f"--env {text}" if option.variable else f"--set {text}"


def is_hands(name: str) -> bool:
    """Tell whether an option of this name means workers, threads or processes."""
    return _OF_CORES.search(folded(name)) is not None


def within(hands: int, limit: float | None) -> int:
    """Return no more hands than there are cores: halved, as what is shared out among them is often even."""
    while limit is not None and hands > max(1.0, limit):
        hands //= 2
    return hands


def _takes(option: CurrentOption, value: str) -> bool:
    """Tell whether the program would read the value."""
    if option.choices:
        return value in option.choices
    return option.kind not in ("int", "float") or launchers.is_number(value)


def _switched(on: bool, option: CurrentOption) -> Iterator[str]:
    """Yield a bare flag put in or taken out. One whose name means its own opposite is turned by that name."""
    if option.kind == "unset_switch":
        # `--no-cache` stores false; the knob is about what its name says.
        now = option.given
    else:
        now = bool(option.value)
    if now == on:
        return
    if on:
        yield f"--set {_dashed(option.name)}"
    elif option.given:
        yield f"--unset {option.name}"
    elif option.kind == "pair":
        yield f"--set --no-{option.name.lstrip('-')}"


def _dashed(name: str) -> str:
    return name if name.startswith("-") else f"--{name}"


def _value(knob: Knob, key: str, option: CurrentOption, limit: float | None) -> str | None:
    """Return what the option is to be set to; None if it is so already, or unknown."""
    if knob.direction in ("on", "off"):
        return _said(knob, key, option)
    if option.kind in ("switch", "unset_switch", "pair"):
        return None
    present, wanted = _number(option.value), knob.value
    if knob.factor is not None and present:
        wanted = present * knob.factor
        if option.kind == "int" or isinstance(present, int):
            wanted = max(1, round(wanted))
    if wanted is None:
        return None
    number = _number(wanted)
    if knob.direction in ("up", "down") and number is not None:
        if knob.direction == "up" and limit is not None:
            number = min(number, max(1, int(limit)))
        if option.kind == "int" and number != int(number):
            number = round(number)
        if present is not None and (number <= present if knob.direction == "up" else number >= present):
            return None
        return written(float(number))
    text = written(wanted)
    if isinstance(wanted, bool) and (option.kind in ("int", "float") or str(option.value) in ("0", "1")):
        text = str(int(wanted))
    return None if option.value is not None and text == written(option.value) else text


def _said(knob: Knob, key: str, option: CurrentOption) -> str | None:
    """On and off in the way in which the option says them; of what is done every so often, off is never."""
    on = knob.direction == "on"
    if not on and option.kind == "int" and _OFTEN.search(key):
        present = _number(option.value)
        return str(NEVER) if present is None or 0 < present < NEVER else None
    if knob.value is not None and not isinstance(knob.value, bool) and option.kind != "bool":
        return written(knob.value)
    shown = str(option.value)
    if option.kind in ("int", "float") or shown in ("0", "1"):
        return "1" if on else "0"
    if option.kind == "bool" or shown.lower() in _TRUE | (_FALSE - {"", "none", "null"}):
        return str(on) if shown in ("True", "False") and option.given else str(on).lower()
    return None


def _truth(value: Default) -> bool | None:
    """Tell whether a value means on; None if unknown."""
    if value is None:
        return None
    return written(value).lower() not in _FALSE and _number(value) != 0


def _number(value: Default) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str):
        finite = launchers.is_number(value) and value.lower()[-3:] not in ("inf", "nan")
        return float(value) if finite else None
    return value
