"""The commands that explain: diagnose, catalogue."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpudebug.cli.options import Directory, Json, app, choose, print_
from gpudebug.core.errors import UsageError


@app.command(
    epilog="Example: gpudebug diagnose\n\nExample: gpudebug diagnose 0007-sample\n\n"
    "Example: gpudebug diagnose --layer cached-batch"
)
def diagnose(
    run: Annotated[
        str | None,
        typer.Argument(metavar="[RUN]", help="A run's name, its folder, or samples; default: the baseline."),
    ] = None,
    layer: Annotated[
        str | None,
        typer.Option(metavar="LAYER", help="Run the workload once with cached-batch, quiet or double-batch."),
    ] = None,
    directory: Directory = None,
    json: Json = False,
) -> None:
    """Rank the root causes by the evidence.

    Each comes with the hypothesis that would test it.

    With --layer it is one run without a whole layer of the training: the same batch of each loader repeated;
    no logging, evaluation and saving; or twice the batch. It is a diagnosis, not a fix.
    """
    folder = choose(directory, json)
    if layer is not None:
        _layer(folder, run, layer)
        return
    from gpudebug.engine.diagnosis.diagnose import diagnose as engine
    from gpudebug.terminal.diagnose import diagnose as render

    print_(engine(folder, run), render)


def _layer(folder: Path, run: str | None, layer: str) -> None:
    from gpudebug.core.diagnosis.layers import layer_named
    from gpudebug.engine.campaign.session import session_of
    from gpudebug.engine.diagnosis.layer_run import record_layer
    from gpudebug.terminal.layers import layer as render
    from gpudebug.terminal.live import LiveLine

    layer_named(layer)
    if run is not None:
        raise UsageError("--layer runs the workload itself", next="leave RUN out")
    with LiveLine() as live:
        answer = record_layer(folder, layer, live, session_of())
    print_(answer, render)


@app.command(epilog="Example: gpudebug catalogue dl-no-workers\n\nExample: gpudebug catalogue slow NFS")
def catalogue(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="ID|WORDS", help="Id of a root cause, or words to find some; default: all."),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option("--group", metavar="G", help="Only the causes of a group, e.g. data-loading."),
    ] = None,
    signals: Annotated[
        bool, typer.Option("--signals", help="List the evidence that root causes can read, instead.")
    ] = False,
    directory: Directory = None,
    json: Json = False,
) -> None:
    """List the known root causes, find some, or show one.

    One is shown with its signs, test and fix.
    """
    folder = choose(directory, json)
    if bool(words) + (group is not None) + signals > 1:
        raise UsageError("an id, --group and --signals exclude each other", next="keep one of them")
    from gpudebug.engine.diagnosis import catalogue_view as engine
    from gpudebug.terminal import catalogue as render

    if signals:
        print_(engine.signals(), render.signals)
    elif words:
        print_(engine.asked(folder, " ".join(words)), render.asked)
    else:
        print_(engine.overview(folder, group), render.overview)
