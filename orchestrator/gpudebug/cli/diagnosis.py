"""The commands that explain: why, diagnose, catalogue."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from gpudebug.cli.options import Device, Directory, Json, Overwrite, app, choose, permit, print_
from gpudebug.core.errors import UsageError
from gpudebug.core.words import AS_PLANNED, Outcome


@app.command(
    context_settings={"allow_interspersed_args": False},
    epilog="Example: gpudebug why -- python train.py --batch_size=32\n\n"
    "Example: gpudebug why --for 3m -- torchrun --nproc_per_node=2 train.py\n\n"
    "Example: gpudebug why --pid 4711",
)
def why(
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[CMD…]", help="The command and its arguments; default: the workload."),
    ] = None,
    pid: Annotated[
        int | None,
        typer.Option("--pid", metavar="PID", help="Look at a job that runs already, by a process."),
    ] = None,
    gpu: Annotated[
        int | None, typer.Option("--gpu", min=0, metavar="N", help="Look at the job that runs on GPU N.")
    ] = None,
    most: Annotated[
        str | None, typer.Option("--for", metavar="TIME", help="End it after this time; default: 15 to 90 s.")
    ] = None,
    to_the_end: Annotated[
        bool, typer.Option("--to-the-end", help="Let the command run until it ends by itself.")
    ] = False,
    interval: Annotated[
        float | None,
        typer.Option(
            min=0.02,
            max=60.0,
            metavar="S",
            help="Seconds between samples; default: 0.2, of a job that runs 0.5.",
        ),
    ] = None,
    device: Device = "auto",
    overwrite: Overwrite = False,
    directory: Directory = None,
    json: Json = False,
) -> None:
    """Say why a training is slow, from one short run.

    It needs no campaign, no git and no configuration. The command is ended after 15 to 90 s.

    With --pid or --gpu it looks at a job that runs already, and leaves it as it is.
    """
    folder = choose(directory, json)
    permit(overwrite)
    if most is not None and to_the_end:
        raise UsageError("--for and --to-the-end exclude each other", next="keep one of them")
    if (pid is not None) + (gpu is not None) + bool(command) > 1:
        raise UsageError("--pid, --gpu and a command exclude each other", next="keep one of them")
    if pid is not None or gpu is not None:
        _attach(folder, pid, gpu, most=_most(most, to_the_end), interval=interval, device=device)
        return
    from gpudebug.engine.campaign.session import persons_only
    from gpudebug.engine.diagnosis.why import why as engine
    from gpudebug.terminal.live import LiveLine
    from gpudebug.terminal.output import INTERRUPTED
    from gpudebug.terminal.why import why as render

    if command:
        persons_only("running a command", "gpudebug why, without one, looks at the workload")
    with LiveLine() as live:
        answer = engine(
            folder,
            command or (),
            live,
            most=_most(most, to_the_end),
            interval=interval or 0.2,
            device=device,
        )
    print_(answer, render)
    if answer.outcome == Outcome.INTERRUPTED:
        raise typer.Exit(INTERRUPTED)
    if answer.outcome not in AS_PLANNED:
        raise typer.Exit(1)


def _most(text: str | None, to_the_end: bool) -> float | None:
    """Return how many seconds a look may take; None until it has seen enough."""
    from gpudebug.engine.diagnosis.why import TO_THE_END
    from gpudebug.terminal.output import timeout

    return TO_THE_END if to_the_end else timeout(text, "--for")


def _attach(
    folder: Path,
    pid: int | None,
    gpu: int | None,
    *,
    most: float | None,
    interval: float | None,
    device: str,
) -> None:
    from gpudebug.engine.diagnosis.attach import INTERVAL_S, attach
    from gpudebug.terminal.live import LiveLine
    from gpudebug.terminal.why import why as render

    with LiveLine() as live:
        answer = attach(
            folder,
            live,
            pid=pid,
            gpu=gpu,
            most=most,
            interval=interval or INTERVAL_S,
            device=device,
            tell=partial(typer.echo, err=True),
        )
    print_(answer, render)


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
    overwrite: Overwrite = False,
    directory: Directory = None,
    json: Json = False,
) -> None:
    """Rank the root causes by the evidence.

    Each comes with the hypothesis that would test it.

    With --layer it is one run without a whole layer of the training: the same batch of each loader repeated;
    no logging, evaluation and saving; or twice the batch. It is a diagnosis, not a fix.
    """
    folder = choose(directory, json)
    permit(overwrite)
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
    from gpudebug.terminal.diagnose import layer as render
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
    folder = choose(directory, json, anywhere=True)
    if bool(words) + (group is not None) + signals > 1:
        raise UsageError("an id, --group and --signals exclude each other", next="keep one of them")
    from gpudebug.engine.diagnosis import catalogue_view as engine
    from gpudebug.terminal import catalogue as render

    if signals:
        print_(engine.signals(), render.signals)
    elif words:
        print_(engine.asked(folder, " ".join(words)), render.asked)
    else:
        print_(engine.overview(folder, group), render.overview if group else render.index)
