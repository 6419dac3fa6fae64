"""The commands that agents and their supervisors use."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from gpudebug.cli.options import Directory, Hypothesis, Json, app, choose, print_, seconds
from gpudebug.core.errors import UsageError


@app.command(epilog="Example: gpudebug wait --for 9m")
def wait(
    for_: Annotated[
        str | None, typer.Option("--for", metavar="TIME", help="Wait this long at most, e.g. 9m.")
    ] = None,
    stop: Annotated[
        bool, typer.Option("--stop", help="End the detached run as Ctrl-C would, instead of waiting for it.")
    ] = False,
    directory: Directory = None,
    json: Json = False,
) -> None:
    """Wait for the run under way and print its result.

    Ctrl-C ends the wait, not the run.
    """
    folder = choose(directory, json)
    from gpudebug.engine.campaign.session import session_of
    from gpudebug.engine.cycle import detached
    from gpudebug.engine.cycle.next import exit_status
    from gpudebug.terminal.live import LiveLine
    from gpudebug.terminal.next import next_ as render

    limit = seconds("--for", for_)
    stopped = stop and detached.stop(folder, session_of())
    with LiveLine() as live:
        answer = detached.wait(folder, live, session_of(), limit)
    if stopped:
        answer = replace(answer, why=f"the detached run was ended; {answer.why}")
    print_(answer, render)
    raise typer.Exit(exit_status(answer))


@app.command(epilog="Example: gpudebug submit --dry-run")
def submit(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the batch script, and ask the cluster for nothing.")
    ] = False,
    directory: Directory = None,
    json: Json = False,
) -> None:
    """Ask the cluster for the campaign's allocation.

    `gpudebug next` does it by itself; this asks before there is anything to run. With runner.slurm.parallel
    above 1, for a job array: each element tests one of the hypotheses that wait.
    """
    folder = choose(directory, json)
    from gpudebug.engine.campaign.session import session_of
    from gpudebug.engine.cycle.submit import submit as engine
    from gpudebug.terminal import hypotheses
    from gpudebug.terminal.live import LiveLine

    with LiveLine() as live:
        answer = engine(folder, live, session_of(), dry_run=dry_run)
    print_(answer, hypotheses.submit)


@app.command(epilog="Example: gpudebug stop")
def stop(directory: Directory = None, json: Json = False) -> None:
    """End the campaign's allocation on the cluster.

    A run under way is sealed first and is void. For a person, or the session that asked for the allocation.
    """
    folder = choose(directory, json)
    from gpudebug.engine.campaign.session import session_of
    from gpudebug.engine.cycle.stop import stop as engine
    from gpudebug.terminal import hypotheses
    from gpudebug.terminal.live import LiveLine

    with LiveLine() as live:
        answer = engine(folder, live, session_of())
    print_(answer, hypotheses.stop)


@app.command(epilog="Example: gpudebug -C ~/my-training mcp")
def mcp(
    allow_commands: Annotated[
        bool, typer.Option("--allow-commands", help="Let the client sample and compare commands of its own.")
    ] = False,
    allow_decisions: Annotated[
        bool,
        typer.Option("--allow-decisions", help="Let the client accept, export and record the baseline."),
    ] = False,
    directory: Directory = None,
) -> None:
    """Serve the commands as MCP tools over standard input."""
    folder = choose(directory, False)
    import os

    from gpudebug.mcp import serve

    serve(folder, os.environ, allow_commands=allow_commands, allow_decisions=allow_decisions)


@app.command(epilog="Example: gpudebug accept 3")
def accept(
    hypothesis: Hypothesis,
    terms_differ: Annotated[
        bool,
        typer.Option("--terms-differ", help="Accept it by weaker terms than the pinned ones; for a person."),
    ] = False,
    directory: Directory = None,
    json: Json = False,
) -> None:
    """Make a VALIDATED change part of the baseline.

    Nothing runs: the runs of its trial are the baseline from then on. gpudebug.yaml and the checkout stay as
    they are.
    """
    folder = choose(directory, json)
    from gpudebug.engine.campaign.session import session_of
    from gpudebug.engine.hypotheses.accept import accept as engine
    from gpudebug.terminal import hypotheses

    print_(engine(folder, hypothesis, session_of(), terms_differ=terms_differ), hypotheses.accept)


@app.command(epilog="Example: gpudebug release 3")
def release(hypothesis: Hypothesis, directory: Directory = None, json: Json = False) -> None:
    """Release the claim on a hypothesis.

    A change that was begun is kept as a patch.
    """
    folder = choose(directory, json)
    from gpudebug.engine.agents.release import release as engine
    from gpudebug.engine.campaign.session import session_of
    from gpudebug.terminal import hypotheses

    print_(engine(folder, hypothesis, session_of()), hypotheses.release)


@app.command(
    epilog="Example: gpudebug reopen 3\n\n"
    'Example: gpudebug reopen 3 --because "the log counts each micro-batch since the rewrite"'
)
def reopen(
    hypothesis: Hypothesis,
    because: Annotated[
        str | None,
        typer.Option(
            "--because",
            metavar="WHY",
            help="Say why, of any verdict or of counts that do not fit; only a person may.",
        ),
    ] = None,
    directory: Directory = None,
    json: Json = False,
) -> None:
    """Test a hypothesis again; keep its result.

    If it is undecided, its premises changed, or a person says why.
    """
    folder = choose(directory, json)
    from gpudebug.engine.campaign.session import session_of
    from gpudebug.engine.hypotheses.reopen import reopen as engine
    from gpudebug.terminal import hypotheses

    print_(engine(folder, hypothesis, session_of(), because=because), hypotheses.reopen)


@app.command(epilog="Example: gpudebug export -o patches")
def export(
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="Where; default: runs/export.")
    ] = None,
    directory: Directory = None,
    json: Json = False,
) -> None:
    """Write the accepted changes as patches for git.

    A README lists what each gained, and all together.
    """
    folder = choose(directory, json)
    from gpudebug.engine.campaign.session import session_of
    from gpudebug.engine.hypotheses.export import export as engine
    from gpudebug.terminal import hypotheses

    print_(engine(folder, output and folder / output, session_of()), hypotheses.export)


@app.command(epilog="Example: gpudebug loop --agent 'claude -p --permission-mode acceptEdits' --hypotheses 5")
def loop(
    agent: Annotated[
        str,
        typer.Option(
            "--agent", metavar="CMD", help="Starts an agent that reads its brief on standard input."
        ),
    ],
    hypotheses: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Test this many at most.")
    ] = None,
    device_time: Annotated[
        str | None, typer.Option(metavar="TIME", help="Hold the device this long at most, e.g. 2h.")
    ] = None,
    failures: Annotated[int, typer.Option(min=1, metavar="N", help="End after so many in a row failed.")] = 3,
    idle: Annotated[
        int, typer.Option(min=1, metavar="N", help="End after so many in a row did nothing.")
    ] = 3,
    session_timeout: Annotated[str, typer.Option(metavar="TIME", help="For each session.")] = "60m",
    directory: Directory = None,
    json: Json = False,
) -> None:
    """Run agent sessions until the campaign stops.

    One session after the other, one hypothesis each.
    """
    folder = choose(directory, json)
    from gpudebug.core.campaign.loop_limits import Limits
    from gpudebug.engine.agents.loop import adopt, exit_status
    from gpudebug.engine.agents.loop import loop as engine
    from gpudebug.engine.campaign.session import persons_only
    from gpudebug.terminal import setup as render
    from gpudebug.terminal.live import LiveLine

    persons_only("starting agents", "gpudebug next does this session's one hypothesis")
    limits = Limits(hypotheses, seconds("--device-time", device_time), failures, idle)
    timeout = seconds("--session-timeout", session_timeout)
    if not timeout:
        raise UsageError("--session-timeout: a session needs some time", next="write it as 90s, 30m or 2h")
    adopt()
    with LiveLine() as live:
        answer = engine(folder, agent, limits, timeout, live)
    print_(answer, render.loop)
    raise typer.Exit(exit_status(answer))
