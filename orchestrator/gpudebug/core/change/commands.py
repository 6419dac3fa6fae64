"""Of which of a workload's two commands a change is, and whether that has the flag.

`server:--flag` and `server:NAME` are of the server. A flag that only the server's command has, or a variable
that only its `env` sets, is of the server without saying so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

from gpudebug.core.change.intervention import SERVER, Intervention, SingleChange
from gpudebug.core.command import command_line
from gpudebug.core.command.synonyms import folded

_NEAR = 0.6


def located(
    change: Intervention,
    argv: Sequence[str],
    env: Mapping[str, str],
    server_argv: Sequence[str],
    server_env: Mapping[str, str],
) -> Intervention:
    """Return the change with the prefix in front of what only the server has."""
    theirs, ours = _flags(server_argv), _flags(argv)

    def placed(part: SingleChange) -> SingleChange:
        if part.of_server or part.kind not in ("set", "unset", "env"):
            return part
        if part.kind == "env":
            servers = part.name in server_env and part.name not in env
            return part._replace(name=f"{SERVER}{part.name}") if servers else part
        name = folded(part.name)
        return part._replace(name=f"{SERVER}{theirs[name]}") if name in theirs and name not in ours else part

    changes = tuple(map(placed, change.changes))
    return change if changes == change.changes else replace(change, changes=changes)


def of_server(change: Intervention) -> Intervention | None:
    """Return what of the change is of the server, without the prefix; None if nothing is."""
    parts = tuple(part._replace(name=part.bare) for part in change.changes if part.of_server)
    return Intervention(parts, change.compound) if parts else None


def _flags(argv: Sequence[str]) -> dict[str, str]:
    """Return the options of a command as it spells them, by their names without dashes."""
    return {folded(option.name): option.name for option in command_line.options(argv)}


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
