"""Whether a program has the flag that a change sets: what is known of its options, and the nearest one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from gpudebug.core.change.intervention import Intervention
from gpudebug.core.command.synonyms import folded

_NEAR = 0.6


@dataclass(frozen=True)
class KnownFlags:
    """Options by name, as they are written where they were found."""

    names: tuple[str, ...] = ()

    def has(self, name: str) -> bool:
        """By the name, with `-` for `_`, by its last dotted part, or, as argparse does, by its beginning."""
        wanted = folded(name)
        names = {folded(known) for known in self.names}
        if wanted in names or wanted.removeprefix("no_") in names:
            return True
        last = wanted.rpartition(".")[2]
        if any(last == known.rpartition(".")[2] for known in names if "." in known or "." in wanted):
            return True
        return name.startswith("--") and any(known.startswith(wanted) for known in names)

    def nearest(self, name: str) -> str | None:
        """Return the name that is most like it; None if none is."""
        spelled = {folded(known): known for known in reversed(self.names)}
        found = get_close_matches(folded(name), spelled, n=1, cutoff=_NEAR)
        return spelled[found[0]] if found else None


def unknown(change: Intervention, known: KnownFlags) -> Iterator[tuple[str, str | None]]:
    """Yield the flags of a change that nothing has, each with the nearest that something has."""
    for one in change.changes:
        if one.kind in ("set", "unset") and not one.of_server and not known.has(one.name):
            yield one.name, known.nearest(one.name)
