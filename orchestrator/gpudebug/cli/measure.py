"""The commands that also work outside a campaign: sample, compare, analyze."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gpudebug.cli.options import (
    SAMPLE_FAILED,
    Device,
    Directory,
    Force,
    Interval,
    Json,
    Overwrite,
    Timeout,
    TorchProfile,
    app,
    choose,
    chosen,
    permit,
    print_,
)
from gpudebug.terminal.output import timeout as seconds


@app.command(
    context_settings={"allow_interspersed_args": False},
    epilog="Example: gpudebug sample -o run.csv --interval 0.5 -- python train.py --steps=200\n\n"
    "Example: gpudebug sample --torch-profile wait=2,warmup=2,active=4,with_stack -- python train.py\n\n"
    "Example: gpudebug sample --methods policies.act:ACTPolicy -- python train.py",
)
def sample(
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[CMD…]", help="The command and its arguments; default: the workload."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="F.csv", help="Samples; the log goes to F.log.")
    ] = None,
    interval: Interval = 0.2,
    device: Device = "auto",
    timeout: Timeout = None,
    torch_profile: TorchProfile = None,
    methods: Annotated[
        list[str] | None,
        typer.Option("--methods", metavar="MODULE:CLASS", help="Time each method of this class; repeatable."),
    ] = None,
    force: Force = False,
    overwrite: Overwrite = False,
    directory: Directory = None,
    json: Json = False,
) -> None:
    """Run a command, or the workload, under the sampler.

    Exit status: the command's; 124 if timed out, 125 if gpudebug failed.
    """
    chosen["own_failure"] = SAMPLE_FAILED
    folder = choose(directory, json)
    permit(overwrite)
    from gpudebug.engine.campaign.session import persons_only
    from gpudebug.engine.run.sample import sample as engine
    from gpudebug.terminal.devices import sample as render
    from gpudebug.terminal.live import LiveLine

    if command:
        persons_only("running a command", "gpudebug sample, without one, runs the workload")
    how: dict[str, Any] = {"interval": interval, "device": device, "timeout": seconds(timeout)}
    if torch_profile is not None:
        from gpudebug.core.inside.torch_profile import parse_torch_profile

        how["torch_profile"] = parse_torch_profile(torch_profile)
    with LiveLine() as live:
        answer = engine(folder, command or (), live, output=output, methods=methods or (), force=force, **how)
    print_(answer, render)
    raise typer.Exit(answer.exit_status)


@app.command(
    epilog="Example: gpudebug compare 0001-baseline-workload 0005-h1\n\n"
    "Example: gpudebug compare 'python infer.py' 'python infer.py --compile' --runs 4 --warm-up"
)
def compare(
    a: Annotated[
        str, typer.Argument(metavar="A", help="A run, baseline, a hypothesis's number, or a command.")
    ],
    b: Annotated[str, typer.Argument(metavar="B", help="The same kind as A; a command is one quoted word.")],
    runs: Annotated[
        int | None, typer.Option(min=1, max=100, metavar="N", help="Runs of each command; default 2.")
    ] = None,
    warm_up: Annotated[bool, typer.Option("--warm-up", help="First run each once, not measured.")] = False,
    interval: Interval = 0.2,
    device: Device = "auto",
    timeout: Timeout = None,
    work: Annotated[str, typer.Option(metavar="UNIT", help="What throughput counts, e.g. tokens.")] = "auto",
    run_for: Annotated[
        str,
        typer.Option(
            "--run-for", metavar="TIME", help="When a command is ended: auto, 90s of steady work, or end."
        ),
    ] = "auto",
    overwrite: Overwrite = False,
    directory: Directory = None,
    json: Json = False,
) -> None:
    """Measure whether B is faster than A.

    Two runs, or two commands that are run in turn.
    """
    folder = choose(directory, json)
    permit(overwrite)
    from gpudebug.engine.tools.compare import ComparedHow
    from gpudebug.engine.tools.compare import compare as engine
    from gpudebug.terminal.compare import compare as render
    from gpudebug.terminal.live import LiveLine

    how = ComparedHow(runs, warm_up, interval, device, seconds(timeout), run_for)
    with LiveLine() as live:
        answer = engine(folder, a, b, live, how, work=work)
    print_(answer, render)


@app.command(
    epilog="Example: gpudebug analyze runs/0001-baseline-workload\n\n"
    "Example: gpudebug analyze sections.json --charts sections.png --compare before.json"
)
def analyze(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE…", help="A run's folder; logs, samples, traces, others' recordings."),
    ] = None,
    given: Annotated[
        list[Path] | None, typer.Option("--input", metavar="FILE", help="The same as FILE.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="F.txt", help="Also write the full text to this file.")
    ] = None,
    charts: Annotated[
        Path | None, typer.Option(metavar="F.png", help="Draw one file, or section reports together.")
    ] = None,
    detailed: Annotated[
        Path | None, typer.Option(metavar="F.json", help="Write all figures as JSON.")
    ] = None,
    compare: Annotated[
        Path | None, typer.Option(metavar="F", help="Compare with this section report.")
    ] = None,
    run: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Of several runs or processes in a recording.")
    ] = None,
    force: Force = False,
    directory: Directory = None,
    json: Json = False,
) -> None:
    """Summarise logs, samples, section reports and traces.

    Files are recognised by their content: those of nvidia-smi, dcgmi, W&B and Nsight Systems too.
    """
    folder = choose(directory, json, anywhere=True)
    from gpudebug.engine.tools.analyze import Outputs
    from gpudebug.engine.tools.analyze import analyze as engine
    from gpudebug.terminal.analyze import analyze as render
    from gpudebug.terminal.analyze import in_full

    text, picture, whole = (path and folder / path for path in (output, charts, detailed))
    outputs = Outputs(text, picture, whole, force)
    other = compare and folder / compare
    every = [folder / f for f in (*(files or ()), *(given or ()))]
    print_(engine(every, compare=other, run=run, outputs=outputs, text=in_full), render)
