"""The report command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpudebug.cli.options import Directory, Force, Json, app, choose, print_


@app.command(
    epilog="Example: gpudebug report\n\nExample: gpudebug report -o report.html --png campaign.png\n\n"
    "Example: gpudebug report --markdown"
)
def report(
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="DIR|F.html", help="Where; default: runs/report."),
    ] = None,
    png: Annotated[
        Path | None,
        typer.Option("--png", metavar="F.png", help="Draw the campaign as a picture; -o adds the page."),
    ] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print a summary for a pull request instead.")
    ] = False,
    force: Force = False,
    directory: Directory = None,
    json: Json = False,
) -> None:
    """Write the campaign as one HTML page.

    It contains its plots, data and settings.
    """
    folder = choose(directory, json)
    from gpudebug.engine.report import report as engine
    from gpudebug.terminal.live import LiveLine
    from gpudebug.terminal.report import report as render

    with LiveLine() as live:
        places = (output and folder / output, png and folder / png)
        answer = engine(folder, *places, markdown, live.doing, force=force)
    print_(answer, render)
