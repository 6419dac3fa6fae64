"""How much of the time is spent in code that an option of the program decides on, by whatever cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpudebug.core.catalogue.touches import meets
from gpudebug.core.change.intervention import Intervention
from gpudebug.core.diagnosis.figures import number
from gpudebug.core.diagnosis.model import DiagnosisFacts
from gpudebug.core.records import Stacks

Touched = Mapping[str, frozenset[str]]


def options_of(change: Intervention | None) -> list[str]:
    """The options that a change sets or takes away, by folded name."""
    parts = change.changes if change is not None else ()
    return [part.name.lstrip("-+~").replace("-", "_") for part in parts if part.kind in ("set", "unset")]


def decided(change: Intervention | None, facts: DiagnosisFacts, touched: Touched) -> float:
    """The share of the time (0 to 1) in functions that the change's options decide on; 0 if none is seen.

    What loader workers do counts as far as the training waits for it.
    """
    options = options_of(change)
    if not options or facts.stacks is None:
        return 0.0
    waits = number(facts.signals.get("data_wait_share")) or 0.0
    own = _share(facts.stacks.training, options, touched)
    return max(own, waits * _share(facts.stacks.workers, options, touched))


def _share(stacks: Stacks | None, options: Sequence[str], touched: Touched) -> float:
    if stacks is None or not stacks.seconds:
        return 0.0
    functions = [frame.rpartition(":")[2] for frame in stacks.frames]
    met = {
        place for place, name in enumerate(functions) for option in options if meets(name, touched, option)
    }
    inside = sum(seconds for _, frames, _, seconds, _ in stacks.stacks if met.intersection(frames))
    return min(1.0, inside / stacks.seconds)
