"""The command line: parse, call the engine, print, map errors to exit statuses. Imports inside commands."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from gpudebug import door
from gpudebug.core.errors import GpudebugError, LaunchError, UsageError

SAMPLE_FAILED = 125

app = typer.Typer(
    help="Finds why a GPU sits idle in training, one measured hypothesis at a time.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Directory = Annotated[
    Path | None, typer.Option("-C", metavar="DIR", help="Work as if started in DIR, as git does.")
]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on standard output, nothing else.")
]
Debug = Annotated[bool, typer.Option("--debug", help="Show a traceback where gpudebug itself fails.")]

_chosen: dict[str, Any] = {"directory": None, "json": False, "debug": False, "own_failure": None}


def _version(value: bool) -> None:
    if value:
        from gpudebug import __version__

        print(f"gpudebug {__version__}")
        raise typer.Exit


@app.callback()
def _global(
    directory: Directory = None,
    json: Json = False,
    debug: Debug = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    _choose(directory, json)
    _chosen["debug"] = debug


def _choose(directory: Path | None, json: bool) -> Path:
    """Remember what stands before or behind the command's name; the folder to work in."""
    if directory is not None:
        _chosen["directory"] = directory
    _chosen["json"] = _chosen["json"] or json
    return door.working_folder(_chosen["directory"] or Path())


def _print(answer: dict[str, Any], text: Callable[[dict[str, Any]], str]) -> None:
    said = answer.get("next_command")
    if said and _chosen["directory"] is not None and " -C " not in said:
        from shlex import quote

        folder = quote(str(_chosen["directory"]))
        answer = {**answer, "next_command": said.replace("gpudebug", f"gpudebug -C {folder}", 1)}
    door.print_answer(answer, text, as_json=bool(_chosen["json"]))


@app.command(epilog="Example: gpudebug demo")
def demo(directory: Directory = None, json: Json = False) -> None:
    """Tell the whole story on a real training program, in about two minutes, without a GPU."""
    _choose(directory, json)
    from gpudebug import render
    from gpudebug.engine import demo as engine
    from gpudebug.live import LiveLine

    with LiveLine() as live:

        def tell(text: str) -> None:
            live.close()
            print(text + "\n", file=sys.stderr if _chosen["json"] else sys.stdout, flush=True)

        answer = engine.demo(live, tell, render.next_)
    _print(answer, render.demo)


@app.command(epilog="Example: gpudebug init --command 'python train.py --lr=1e-3 --output_dir=out'")
def init(
    command: Annotated[str | None, typer.Option("--command", help="The training command to debug.")] = None,
    reference: Annotated[
        str | None, typer.Option("--reference", help="A command with known good utilisation on this host.")
    ] = None,
    campaign: Annotated[str | None, typer.Option("--campaign", help="Name; default: the folder's.")] = None,
    progress: Annotated[
        str | None, typer.Option("--progress", help="Progress file, also one that is there already.")
    ] = None,
    goal: Annotated[str, typer.Option("--goal", help="What is to be achieved.")] = "",
    print_defaults: Annotated[
        bool, typer.Option("--print-defaults", help="Print every setting with its default, write nothing.")
    ] = False,
    directory: Directory = None,
    json: Json = False,
) -> None:
    """Write gpudebug.yaml, the progress file and the folders of a campaign; never overwrite."""
    folder = _choose(directory, json)
    from gpudebug import render

    if print_defaults:
        from gpudebug.core.config import print_defaults as defaults

        _print({"defaults": defaults()}, lambda answer: str(answer["defaults"]).rstrip())
        return
    from gpudebug.engine.init import init as engine

    _print(
        engine(folder, command=command, reference=reference, campaign=campaign, progress=progress, goal=goal),
        render.init,
    )


@app.command(epilog="Example: gpudebug doctor")
def doctor(directory: Directory = None, json: Json = False) -> None:
    """Say what works here: device, driver, git, permissions, disk, containment; and how to mend the rest."""
    folder = _choose(directory, json)
    from gpudebug import render
    from gpudebug.engine.doctor import doctor as engine

    answer = engine(folder)
    _print(answer, render.doctor)
    if not answer["ok"]:
        raise typer.Exit(1)


@app.command(
    context_settings={"allow_interspersed_args": False},
    epilog="Example: gpudebug sample -o run.csv --interval 0.5 -- python train.py --steps=200",
)
def sample(
    command: Annotated[list[str], typer.Argument(metavar="CMD…", help="The command and its arguments.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="F.csv", help="Samples; the log goes to F.log.")
    ] = None,
    interval: Annotated[float, typer.Option(min=0.02, max=60.0, help="Seconds between samples.")] = 0.2,
    device: Annotated[str, typer.Option(help="auto, nvml, cpu, cpu:N or replay:FOLDER.")] = "auto",
    timeout: Annotated[str | None, typer.Option(help="End the command after this time, e.g. 10m.")] = None,
    directory: Directory = None,
    json: Json = False,
) -> None:
    """Run any command under the sampler. The exit status is the command's; 124 time-out, 125 own failure."""
    _chosen["own_failure"] = SAMPLE_FAILED
    folder = _choose(directory, json)
    from gpudebug import render
    from gpudebug.engine.sample import sample as engine
    from gpudebug.live import LiveLine

    limit = door.timeout(timeout)
    with LiveLine() as live:
        answer = engine(folder, command, live, output=output, interval=interval, device=device, timeout=limit)
    _print(answer, render.sample)
    raise typer.Exit(answer["exit_status"])


@app.command(
    epilog="Example: gpudebug baseline workload\n\n"
    "Example: gpudebug baseline --aa\n\n"
    "Example: gpudebug baseline reference --import gpu_usage.csv --log train.log"
)
def baseline(
    role: Annotated[str | None, typer.Argument(metavar="[workload|reference]", help="Which one.")] = None,
    import_: Annotated[
        Path | None, typer.Option("--import", metavar="CSV", help="Samples of a run that is completed.")
    ] = None,
    log: Annotated[Path | None, typer.Option("--log", help="The imported run's output.")] = None,
    aa: Annotated[bool, typer.Option("--aa", help="Run the workload against its own baseline.")] = False,
    runs: Annotated[int | None, typer.Option(min=1, max=1000, help="How many with --aa.")] = None,
    directory: Directory = None,
    json: Json = False,
) -> None:
    """Record a baseline by running it, import a completed run, or measure the noise with --aa."""
    folder = _choose(directory, json)
    from gpudebug import render
    from gpudebug.live import LiveLine

    if role not in (None, "workload", "reference"):
        raise UsageError(f"there is no baseline {role!r}", next="name workload or reference")
    if log is not None and import_ is None:
        raise UsageError("--log goes with --import", next="add --import SAMPLES.csv")
    if runs is not None and not aa:
        raise UsageError("--runs goes with --aa", next="set protocol.baseline_runs in gpudebug.yaml")
    if aa and (role == "reference" or import_ is not None):
        raise UsageError("--aa runs the workload itself", next="gpudebug baseline --aa")
    with LiveLine() as live:
        if import_ is not None:
            from gpudebug.engine.imports import import_baseline

            answer = import_baseline(folder, role or "workload", folder / import_, log and folder / log, live)
        elif aa:
            from gpudebug.engine.aa import record_aa

            answer = record_aa(folder, live, runs)
        else:
            from gpudebug.engine.cycle import record_baseline

            answer = record_baseline(folder, role, live)
    _print(answer, render.next_)


@app.command(
    epilog="Example: gpudebug propose --title 'Loader waits' --set --num_workers=4\n\n"
    "Example: gpudebug propose --sweep --denoising_steps=4,2,1"
)
def propose(
    title: Annotated[str, typer.Option(help="The cause, in one line; a sweep needs none.")] = "",
    description: Annotated[str, typer.Option(help="Why it would idle the device.")] = "",
    method: Annotated[str, typer.Option(help="What is changed and what should move.")] = "",
    set_: Annotated[list[str] | None, typer.Option("--set", metavar="FLAG=V", help="Set a flag.")] = None,
    unset: Annotated[list[str] | None, typer.Option(metavar="FLAG", help="Take a flag away.")] = None,
    env: Annotated[list[str] | None, typer.Option(metavar="K=V", help="Set a variable.")] = None,
    sweep: Annotated[
        str | None,
        typer.Option(
            metavar="FLAG=V,V,…", help="One hypothesis a value; env:K=V,V for a variable; quote a comma."
        ),
    ] = None,
    patch: Annotated[str | None, typer.Option(metavar="FILE", help="A patch in hypotheses/patches.")] = None,
    code: Annotated[bool, typer.Option("--code", help="The change is code, still to be written.")] = False,
    compound: Annotated[bool, typer.Option("--compound", help="Several changes at once are meant.")] = False,
    directory: Directory = None,
    json: Json = False,
) -> None:
    """Add an UNTESTED hypothesis to the progress file; refuse a change that stands there already."""
    folder = _choose(directory, json)
    from gpudebug import render
    from gpudebug.engine.propose import propose as engine
    from gpudebug.engine.propose import propose_sweep

    if sweep is not None:
        if set_ or unset or env or patch or code or compound:
            raise UsageError("--sweep is the change itself", next="leave the other change out")
        answer = propose_sweep(folder, sweep, title=title, description=description, method=method)
        _print(answer, render.propose)
        return
    answer = engine(
        folder,
        title=title,
        description=description,
        method=method,
        set_=set_ or (),
        unset=unset or (),
        env=env or (),
        patch=patch,
        code=code,
        compound=compound,
    )
    _print(answer, render.propose)


@app.command(name="next", epilog="Example: gpudebug next --json")
def next_(directory: Directory = None, json: Json = False) -> None:
    """Do the one next thing, exactly once: recover, record a baseline, test a hypothesis, or ask for one."""
    folder = _choose(directory, json)
    from gpudebug import render
    from gpudebug.engine.cycle import exit_status, next_cycle
    from gpudebug.live import LiveLine

    with LiveLine() as live:
        answer = next_cycle(folder, live)
    _print(answer, render.next_)
    raise typer.Exit(exit_status(answer))


@app.command(epilog="Example: gpudebug -C ~/my-training status")
def status(directory: Directory = None, json: Json = False) -> None:
    """Say where the campaign stands and what `next` would do."""
    folder = _choose(directory, json)
    from gpudebug import render
    from gpudebug.engine.status import status as engine

    _print(engine(folder), render.status)


@app.command(epilog="Example: gpudebug show 3")
def show(
    hypothesis: Annotated[int, typer.Argument(metavar="H", help="Number of the hypothesis.")],
    directory: Directory = None,
    json: Json = False,
) -> None:
    """Show one hypothesis with its evidence, gates and files."""
    folder = _choose(directory, json)
    from gpudebug import render
    from gpudebug.engine.status import show as engine

    _print(engine(folder, hypothesis), render.show)


@app.command(epilog="Example: gpudebug verify --json")
def verify(
    hypothesis: Annotated[
        int | None, typer.Argument(metavar="H", help="Number of a hypothesis; default: everything.")
    ] = None,
    directory: Directory = None,
    json: Json = False,
) -> None:
    """Derive every number and verdict again from the run folders; what differs is named, exit status 1."""
    folder = _choose(directory, json)
    from gpudebug.engine.verify import verify as engine
    from gpudebug.live import LiveLine
    from gpudebug.render.verify import verify as render

    with LiveLine() as live:
        answer = engine(folder, hypothesis, live.doing)
    _print(answer, render)
    raise typer.Exit(1 if answer["problems"] else 0)


@app.command(epilog="Example: gpudebug analyze runs/0001-baseline-workload/train.log")
def analyze(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Training logs or samples CSVs.")],
    directory: Directory = None,
    json: Json = False,
) -> None:
    """Say what a training log or a samples CSV holds, recognised by its content."""
    folder = _choose(directory, json)
    from gpudebug import render
    from gpudebug.engine.analyze import analyze as engine

    _print(engine([folder / f for f in files]), render.analyze)


@app.command(
    epilog="Example: gpudebug compare 0001-baseline-workload 0005-h1\n\n"
    "Example: gpudebug compare 'python infer.py' 'python infer.py --compile' --runs 4 --warm-up"
)
def compare(
    a: Annotated[
        str, typer.Argument(metavar="A", help="A run, baseline, a hypothesis's number, or a command.")
    ],
    b: Annotated[str, typer.Argument(metavar="B", help="The same kind as A; a command is one quoted word.")],
    runs: Annotated[int | None, typer.Option(min=1, max=100, help="Runs of each command; default 2.")] = None,
    warm_up: Annotated[bool, typer.Option("--warm-up", help="First run each once, unmeasured.")] = False,
    interval: Annotated[float, typer.Option(min=0.02, max=60.0, help="Seconds between samples.")] = 0.2,
    device: Annotated[str, typer.Option(help="auto, nvml, cpu, cpu:N or replay:FOLDER.")] = "auto",
    timeout: Annotated[str | None, typer.Option(help="End a command after this time, e.g. 10m.")] = None,
    directory: Directory = None,
    json: Json = False,
) -> None:
    """Say whether B is faster than A, slower, or nobody can tell: two runs, or two commands run in turn."""
    folder = _choose(directory, json)
    from gpudebug.engine.compare import compare as engine
    from gpudebug.live import LiveLine
    from gpudebug.render.compare import compare as render

    how: dict[str, Any] = {"interval": interval, "device": device, "timeout": door.timeout(timeout)}
    with LiveLine() as live:
        answer = engine(folder, a, b, live, pairs=runs, warm_up=warm_up, **how)
    _print(answer, render)


def run(words: list[str]) -> int:
    """Parse and run one command line; its exit status. Every failure leaves through the door."""
    # `--json` behind a command's name counts even where that command's options cannot be parsed.
    _chosen["json"] = "--json" in (words[: words.index("--")] if "--" in words else words)
    return door.run(
        lambda: _invoke(words), json=lambda: bool(_chosen["json"]), debug=lambda: bool(_chosen["debug"])
    )


def _invoke(words: list[str]) -> int:
    # typer 0.16 and later bring their own click; its usage error is reached through a public name.
    usage_error = typer.BadParameter.__mro__[1]
    try:
        result = app(words, prog_name="gpudebug", standalone_mode=False)
    except typer.Abort:
        raise KeyboardInterrupt from None
    except usage_error as e:  # type: ignore[misc]
        return _usage(e)
    except GpudebugError as e:
        if _chosen["own_failure"] is None or e.exit_code == door.INTERRUPTED:
            raise
        status = e.status if isinstance(e, LaunchError) else SAMPLE_FAILED
        return door.report(e, status, as_json=bool(_chosen["json"]))
    return result if isinstance(result, int) else 0


def _usage(e: Any) -> int:
    """A command line that cannot be parsed; `sample` keeps 125 for its own failures, as `timeout` does."""
    if type(e).__name__ == "NoArgsIsHelpError":
        print(e.format_message())
        return UsageError.exit_code
    name = e.ctx.command_path if getattr(e, "ctx", None) else "gpudebug"
    own = _chosen["own_failure"] is not None or name.endswith(" sample")
    error = UsageError(e.format_message().rstrip("."), next=f"{name} --help")
    return door.report(error, SAMPLE_FAILED if own else error.exit_code, as_json=bool(_chosen["json"]))
