"""Options with several names: `-j` and `--workers` are one knob where the program defines them as one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gpudebug.core.command import command_line

Synonyms = Sequence[Sequence[str]]
"""Options by all their names, as they are written; the long one is first."""


def folded(name: str) -> str:
    """`--num-workers`, `num_workers` and `+num_workers` are one."""
    return command_line.bare_name(name).replace("-", "_")


def names_of(name: str, synonyms: Synonyms) -> tuple[str, ...]:
    """Return the name, then every other name of the same option."""
    wanted = folded(name)
    group = next((group for group in synonyms if wanted in map(folded, group)), ())
    return (name, *(other for other in group if folded(other) != wanted))


def long_name(name: str, synonyms: Synonyms) -> str:
    """Return the long name of an option; the name itself if it has no other."""
    wanted = folded(name)
    return next((group[0] for group in synonyms if wanted in map(folded, group)), name)


def as_written(argv: Sequence[str], name: str, synonyms: Synonyms) -> str:
    """Return the name that the command has for an option; `name` if it has none of them, or that one."""
    found = [other for other in names_of(name, synonyms) if command_line.find(argv, other)]
    return found[0] if found else name


def used_by(argv: Sequence[str], synonyms: Synonyms) -> tuple[tuple[str, ...], ...]:
    """Return those of which the command has a name."""
    written = {folded(option.name) for option in command_line.options(argv)}
    return tuple(tuple(group) for group in synonyms if written & set(map(folded, group)))


def merged(groups: Iterable[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Groups of at least two names; of two that share a name the first."""
    found: list[tuple[str, ...]] = []
    for group in groups:
        known = {folded(name) for other in found for name in other}
        if len({folded(name) for name in group}) > 1 and not known & set(map(folded, group)):
            found.append(tuple(group))
    return tuple(found)
