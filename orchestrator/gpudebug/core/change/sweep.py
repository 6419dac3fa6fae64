"""A sweep: one flag or variable, several values, one hypothesis each. Parsed from one text, told from the
hypotheses alone."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from gpudebug.core.change.intervention import Intervention, SingleChange, from_options
from gpudebug.core.command import command_line, launchers
from gpudebug.core.errors import InterventionError
from gpudebug.core.lazy import regex

Key = TypeVar("Key")

VARIABLE = "env:"
SYNTAX = "--sweep FLAG=V1,V2,… or --sweep env:NAME=V1,V2,…"

_VALUE = regex(r"""\s*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<plain>[^,]*?))\s*(?:,|$)""")


@dataclass(frozen=True, slots=True)
class Sweep:
    """`name` as it was written, and the change that each value asks for, in the order of the values."""

    name: str
    changes: tuple[tuple[str, Intervention], ...]


def parse(text: str) -> Sweep:
    """Return the sweep that `--sweep`'s text asks for, `--denoising_steps=4,2,1`; see SYNTAX.

    A value with a comma is in quotes. Raises InterventionError for fewer than two values, an
    empty or repeated one, and a name that is not a flag or variable.
    """
    name, equals, values = text.partition("=")
    variable = name.startswith(VARIABLE)
    name = name.removeprefix(VARIABLE)
    if not equals or not name:
        raise InterventionError(f"--sweep {text!r} names no values", next=f"write {SYNTAX}")
    found = _values(text, values)
    if len(found) < 2:
        kind = "env" if variable else "set"
        single = shlex.quote(f"{name}={found[0]}")
        raise InterventionError(
            f"--sweep {text!r} has one value only", next=f"add values, or propose --title T --{kind} {single}"
        )
    twice = next((v for v in found if found.count(v) > 1), None)
    if twice is not None:
        raise InterventionError(f"--sweep {text!r} has {twice!r} twice", next="name each value once")
    return Sweep(name, tuple((v, _change(name, v, variable=variable)) for v in found))


def _change(name: str, value: str, *, variable: bool) -> Intervention:
    texts = [f"{name}={value}"]
    return from_options(env=texts) if variable else from_options(set=texts)


def _values(text: str, values: str) -> list[str]:
    found, position = [], 0
    while True:
        match = _VALUE.match(values, position)
        assert match is not None
        value = next(v for v in match.groupdict().values() if v is not None)
        _refuse(text, value, quoted=match["plain"] is None)
        found.append(value)
        position = match.end()
        if not match[0].endswith(","):
            return found


def _refuse(text: str, value: str, *, quoted: bool) -> None:
    if not value and not quoted:
        raise InterventionError(
            f"--sweep {text!r} has an empty value", next="take the comma away, or write '' for an empty text"
        )
    open_quote = not quoted and value[:1] in ("'", '"')
    if open_quote or (not quoted and any(value.count(a) != value.count(b) for a, b in ("[]", "{}", "()"))):
        raise InterventionError(
            f"--sweep {text!r}: {value} is half a value", next="put each value that holds a comma in quotes"
        )


@dataclass(frozen=True, slots=True)
class Standing:
    """Words and variables of a workload's command, and those of its server if it has one."""

    argv: Sequence[str]
    env: Mapping[str, str]
    server_argv: Sequence[str] = ()
    server_env: Mapping[str, str] = field(default_factory=dict)

    def has(self, change: SingleChange) -> bool:
        """Tell whether the command that the change is of, or its environment, has this very value."""
        return self.value(change) == change.value

    def value(self, change: SingleChange) -> str | None:
        """Return the value that the flag or variable has now; None: none."""
        if change.kind == "env":
            return (self.server_env if change.of_server else self.env).get(change.bare)
        argv = self.server_argv if change.of_server else self.argv
        return command_line.value_of(argv, change.bare)


def sweeps(changes: Iterable[tuple[Key, Intervention]]) -> list[tuple[str, list[tuple[str, Key]]]]:
    """Hypotheses that set one flag or variable, alone, to different values: its name, and value and key each.

    Two values make a sweep. Values are in ascending order if all are numbers, else as written.
    """
    groups: dict[tuple[str, str], list[tuple[str, str, Key]]] = {}
    for key, intervention in changes:
        change = intervention.changes[0]
        if intervention.size == 1 and change.kind in ("set", "env") and change.value is not None:
            knob = command_line.bare_name(change.name).replace("-", "_")
            groups.setdefault((change.kind, knob), []).append((change.name, change.value, key))
    return [
        (members[0][0], _ordered([(value, key) for _, value, key in members]))
        for members in groups.values()
        if len({value for _, value, _ in members}) > 1
    ]


def _ordered(rows: list[tuple[str, Key]]) -> list[tuple[str, Key]]:
    if all(launchers.is_number(value) for value, _ in rows):
        return sorted(rows, key=lambda row: float(row[0]))
    return rows
