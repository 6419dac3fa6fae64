"""Options of different names that set one thing: `--ims-per-batch` and `--batch_size`.

Names are those that public programs use; a name of none of these kinds means what it says alone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from gpudebug.core.command import batch
from gpudebug.core.command.synonyms import Synonyms, folded

_KINDS: dict[str, re.Pattern[str]] = {
    "batch": re.compile(
        r"(?:\w+_)?(?:ims|imgs|images|samples|sequences|envs)_per_(?:batch|gpu|device|step)|(?:micro_|train_)?bsz?"
        r"|(?:micro|mini|global|train)_?batch"
    ),
    "learning rate": re.compile(r"(?:base_|init_|initial_|max_|peak_)?(?:lr|learning_rate)"),
    "epochs": re.compile(r"(?:num_|n_|max_|num_train_|total_|train_)?epochs?"),
    "steps": re.compile(
        r"(?:num_|n_|max_|total_|num_train_|train_|training_)?(?:train_)?(?:steps|iters|iterations|timesteps)"
        r"|max_iter|num_iter"
    ),
    "seed": re.compile(r"(?:random_|rng_|manual_|train_)?seed"),
    "sequence length": re.compile(
        r"(?:max_|train_)?(?:seq|sequence|context|ctx|block)_?(?:len|length|size)|max_(?:position|length|tokens)|ctx"
    ),
    "image size": re.compile(
        r"(?:train_)?(?:img|image|input|crop)_?(?:size|sz|res|resolution)|resolution|imgsz"
    ),
}


def kind_of(name: str) -> str | None:
    """Which of the known things an option sets, by the last part of its name; None for every other."""
    last = folded(name).lower().rpartition(".")[2]
    if batch.sets_size(last):
        return "batch"
    return next((kind for kind, names in _KINDS.items() if names.fullmatch(last)), None)


def by_meaning(locked: Iterable[str], names: Iterable[str], known: Collection[str]) -> Synonyms:
    """A group for each name that sets what a locked option sets under another name.

    Not where both are options that the program is `known` to have: then it has a reason for two.
    """
    own, groups = {folded(name) for name in known}, list[Sequence[str]]()
    for knob in locked:
        kind = kind_of(knob)
        if kind is None:
            continue
        others = {name for name in names if kind_of(name) == kind and folded(name) != folded(knob)}
        groups += [(knob, name) for name in sorted(others) if not {folded(knob), folded(name)} <= own]
    return groups
