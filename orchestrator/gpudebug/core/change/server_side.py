"""Which of a workload's two commands a change is of: the one that gpudebug measures, or its server's.

`server:--flag` and `server:NAME` are of the server. A flag that only the server's command has, or a variable
that only its `env` sets, is of the server without saying so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpudebug.core.change.intervention import SERVER, Intervention, SingleChange
from gpudebug.core.command import command_line


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
        name = _folded(part.name)
        return part._replace(name=f"{SERVER}{theirs[name]}") if name in theirs and name not in ours else part

    changes = tuple(map(placed, change.changes))
    return change if changes == change.changes else replace(change, changes=changes)


def of_server(change: Intervention) -> Intervention | None:
    """Return what of the change is of the server, without the prefix; None if nothing is."""
    parts = tuple(part._replace(name=part.bare) for part in change.changes if part.of_server)
    return Intervention(parts, change.compound) if parts else None


def _flags(argv: Sequence[str]) -> dict[str, str]:
    """Return the options of a command as it spells them, by their names without dashes."""
    return {_folded(option.name): option.name for option in command_line.options(argv)}


def _folded(name: str) -> str:
    return command_line.bare_name(name).replace("-", "_")
