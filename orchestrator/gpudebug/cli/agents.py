"""The commands that agents and their supervisors use."""

from __future__ import annotations

from typing import Annotated

import typer

from gpudebug.cli.options import Directory, Json, app, choose, chosen, print_
from gpudebug.core.errors import UsageError


@app.command(epilog="Example: gpudebug wait --for 9m")
def wait(
    for_: Annotated[
        str | None, typer.Option("--for", metavar="TIME", help="Wait this long at most, e.g. 9m.")
    ] = None,
    directory: Directory = None,
    json: Json = False,
) -> None:
    """Wait for the run that is under way, then say what came of it; Ctrl-C ends the wait, not the run."""
    folder = choose(directory, json)
    from gpudebug import render
    from gpudebug.core.quantities import QuantityError, parse_duration
    from gpudebug.engine.cycle import exit_status
    from gpudebug.engine.detached import wait as engine
    from gpudebug.engine.session import session_of
    from gpudebug.live import LiveLine

    try:
        limit = None if for_ is None else parse_duration(for_)
    except QuantityError as e:
        raise UsageError(f"--for: {e}", next="write it as 90s, 9m or 1h") from None
    with LiveLine() as live:
        answer = engine(folder, live, session_of(), limit)
    print_(answer, render.next_)
    raise typer.Exit(exit_status(answer))


@app.command(epilog="Example: gpudebug -C ~/my-training mcp")
def mcp(directory: Directory = None) -> None:
    """Serve the commands as tools of the Model Context Protocol, on standard input and output."""
    folder = choose(directory, False)
    import os

    from gpudebug.mcp import serve

    serve(folder, chosen["directory"], os.environ)
