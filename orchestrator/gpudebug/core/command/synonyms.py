"""Options with several names: `-j` and `--workers` are one knob where the program defines them as one.

Options of different names may set one thing too: `--ims-per-batch` and `--batch_size`. Those names are the
ones that public programs use, and only those that mean one thing in every training: `--num_steps` is a length
here, a rollout or steps of denoising there. Where a name stands counts too: `--eval.batch_size` is another
thing than `--batch_size`. Every other name means what it says alone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from gpudebug.core.command import command_line
from gpudebug.core.lazy import regex

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


_KINDS: dict[str, re.Pattern[str]] = {
    "batch": regex(
        r"(?:train_)?(?:ims|imgs|images|samples|sequences)_per_(?:batch|gpu|device|step)|(?:train_)?bsz?"
        r"|(?:(?:micro|global|total|train|training|per_device|per_gpu|real|physical)_)*batch(?:_?size)?"
        r"(?:_per_(?:gpu|device|rank))?"
    ),
    "learning rate": regex(r"(?:base_|init_|initial_|max_|peak_)?(?:lr|learning_rate)"),
    "epochs": regex(r"(?:num_|n_|max_|num_train_|total_|train_)?epochs?"),
    "steps": regex(
        r"(?:max|total|train|training|num_train|max_train|total_train)_(?:steps|iters|iterations|timesteps)"
        r"|max_iter|num_(?:iters|iterations)|steps|iters|iterations"
    ),
    "seed": regex(r"(?:random_|rng_|manual_|train_)?seed"),
    "sequence length": regex(r"(?:max_|train_)?(?:seq|sequence|context|ctx|block)_?(?:len|length|size)|ctx"),
    "image size": regex(r"(?:train_)?(?:img|image|input)_?(?:size|sz|res|resolution)|resolution|imgsz"),
}
_IN_FULL = frozenset({"solver.ims_per_batch", "solver.base_lr", "solver.max_iter"})
"""Dotted names that mean the training's own wherever they are: those of detectron2 and its descendants."""


def kind_of(name: str) -> str | None:
    """Return which of the known things an option sets, by the last part of its name; None for every other."""
    last = _key(name).rpartition(".")[2]
    return next((kind for kind, names in _KINDS.items() if names.fullmatch(last)), None)


def by_meaning(
    locked: Iterable[str], names: Iterable[str], known: Collection[str], adapter: Collection[str] = ()
) -> Synonyms:
    """Return a group for each name that certainly sets what a locked option sets under another name.

    Both are of one kind and have the same dotted part in front, by default none. Without that count the
    names that the framework's `adapter` gives the training's own options, and detectron2's. Not where
    both are options that the program is `known` to have, or both the adapter's: there is a reason for two.
    """
    named = {_key(name) for name in adapter}
    own, groups = {*map(_key, known), *named}, list[Sequence[str]]()
    for knob in locked:
        kind = kind_of(knob)
        if kind is None:
            continue
        others = {name for name in names if kind_of(name) == kind and folded(name) != folded(knob)}
        groups += [
            (knob, name)
            for name in sorted(others)
            if not {_key(knob), _key(name)} <= own and _place(knob, named) == _place(name, named)
        ]
    return groups


def _key(name: str) -> str:
    return folded(name).lower()


def _place(name: str, named: Collection[str]) -> str:
    """Return what an option belongs to, by its dotted part; "" is the training itself."""
    key = _key(name)
    return "" if key in named or key in _IN_FULL else key.rpartition(".")[0]
