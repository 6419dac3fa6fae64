"""`gpudebug mcp`: the commands as tools of the Model Context Protocol, over standard input and output."""

from __future__ import annotations

from collections.abc import MutableMapping
from importlib.util import find_spec
from pathlib import Path

from gpudebug.core.errors import GpudebugError


def serve(
    folder: Path,
    env: MutableMapping[str, str],
    *,
    allow_commands: bool = False,
    allow_decisions: bool = False,
) -> None:
    """Serve one client until it closes our standard input.

    `folder` is the campaign's or one within it. With `allow_commands` the client may run commands of its own,
    with `allow_decisions` it may decide what a person decides. GpudebugError without the SDK.
    """
    if find_spec("mcp") is None or find_spec("mcp_types") is None:
        raise GpudebugError(
            "the Model Context Protocol needs its SDK, version 2", next="pip install 'gpudebug[mcp]'"
        )
    from gpudebug.mcp.server import serve as served

    served(folder, env, allow_commands=allow_commands, allow_decisions=allow_decisions)
