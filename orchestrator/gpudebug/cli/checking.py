"""The commands that show and check what works: demo, doctor, verify."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from gpudebug.cli.options import AnyHypothesis, Directory, Json, app, choose, chosen, print_


@app.command(epilog="Example: gpudebug demo")
def demo(directory: Directory = None, json: Json = False) -> None:
    """Tell the whole story on a real training program, in about two minutes, without a GPU."""
    choose(directory, json)
    from gpudebug import render
    from gpudebug.engine import demo as engine
    from gpudebug.live import LiveLine

    with LiveLine() as live:

        def tell(text: str) -> None:
            live.close()
            print(text + "\n", file=sys.stderr if chosen["json"] else sys.stdout, flush=True)

        answer = engine.demo(live, tell, render.next_)
    print_(answer, render.demo)


@app.command(epilog="Example: gpudebug doctor")
def doctor(
    profiling: Annotated[
        bool,
        typer.Option(
            "--profiling", help="Try the profiling library instead: sections, memory, report, what it costs."
        ),
    ] = False,
    ask: Annotated[
        bool, typer.Option("--ask", help="Start the workload's Python too, to ask for its packages.")
    ] = False,
    directory: Directory = None,
    json: Json = False,
) -> None:
    """Say what works here: device, driver, git, permissions, disk, containment; and how to mend the rest."""
    folder = choose(directory, json)
    from gpudebug import render
    from gpudebug.engine import doctor as engine

    answer = (engine.profiling if profiling else engine.doctor)(folder, ask=ask)
    print_(answer, render.doctor)
    if not answer["ok"]:
        raise typer.Exit(1)


@app.command(epilog="Example: gpudebug verify --json")
def verify(
    hypothesis: AnyHypothesis = None,
    directory: Directory = None,
    json: Json = False,
) -> None:
    """Derive every number and verdict again from the run folders; what differs is named, exit status 1."""
    folder = choose(directory, json)
    from gpudebug.engine.verify import verify as engine
    from gpudebug.live import LiveLine
    from gpudebug.render.verify import verify as render

    with LiveLine() as live:
        answer = engine(folder, hypothesis, live.doing)
    print_(answer, render)
    raise typer.Exit(1 if answer["problems"] else 0)
