"""The report command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpudebug.cli.options import Directory, Force, Json, app, choose, print_


@app.command(
    epilog="Example: gpudebug report\n\nExample: gpudebug report -o report.html\n\n"
    "Example: gpudebug report gpudebug-why-1\n\nExample: gpudebug report --markdown"
)
def report(
    run: Annotated[
        str | None,
        typer.Argument(metavar="[RUN]", help="One run, by its name or folder; default: the campaign."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="DIR|F.html", help="Where; default: runs/report."),
    ] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print a summary for a pull request instead.")
    ] = False,
    force: Force = False,
    directory: Directory = None,
    json: Json = False,
) -> None:
    """Write the campaign as one HTML page, or one run.

    It contains its plots, data and settings. The page of a run that gpudebug why made needs no campaign: it
    is RUN.html in the current folder.
    """
    folder = choose(directory, json)
    from gpudebug.engine.report import report as engine
    from gpudebug.engine.report import report_run
    from gpudebug.terminal.live import LiveLine
    from gpudebug.terminal.setup import report as render

    page = output and folder / output
    with LiveLine() as live:
        if run is not None:
            answer = report_run(folder, run, page, markdown, live.doing, force=force)
        else:
            answer = engine(folder, page, markdown, live.doing, force=force)
    print_(answer, render)
