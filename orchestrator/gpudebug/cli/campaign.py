"""The commands that run a campaign: init, status, show, propose, next, baseline."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from gpudebug.cli.options import (
    Directory,
    Hypothesis,
    Json,
    Overwrite,
    TorchProfile,
    app,
    choose,
    chosen,
    permit,
    print_,
    seconds,
)
from gpudebug.core.errors import UsageError

if TYPE_CHECKING:
    from gpudebug.core.answers.next import NextAnswer


@app.command(
    context_settings={"allow_interspersed_args": False},
    epilog="Example: gpudebug init -- python train.py --lr=1e-3 --output_dir=out\n\n"
    "Example: gpudebug init --command 'python train.py --lr=1e-3' --agent claude",
)
def init(
    argv: Annotated[
        list[str] | None,
        typer.Argument(metavar="[CMD…]", help="The training command to debug, and its arguments."),
    ] = None,
    command: Annotated[
        str | None, typer.Option("--command", metavar="CMD", help="The same as one text.")
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            "--reference", metavar="CMD", help="A command with known good utilisation on this host."
        ),
    ] = None,
    campaign: Annotated[
        str | None, typer.Option("--campaign", metavar="NAME", help="Name; default: the folder's.")
    ] = None,
    progress: Annotated[
        str | None,
        typer.Option("--progress", metavar="FILE", help="The progress file; it may exist already."),
    ] = None,
    goal: Annotated[str, typer.Option("--goal", metavar="TEXT", help="What to achieve.")] = "",
    run: Annotated[
        str | None,
        typer.Option("--from", metavar="RUN", help="Begin with this run of gpudebug why and its command."),
    ] = None,
    agent: Annotated[
        list[str] | None,
        typer.Option(
            "--agent",
            metavar="NAME",
            help="Write instructions for codex, claude, …; alone: in an existing campaign.",
        ),
    ] = None,
    print_defaults: Annotated[
        bool, typer.Option("--print-defaults", help="Print every setting with its default, write nothing.")
    ] = False,
    directory: Directory = None,
    json: Json = False,
) -> None:
    """Start a campaign in this repository.

    Writes gpudebug.yaml, the progress file and the folders; overwrites nothing.
    """
    folder = choose(directory, json)
    from gpudebug.terminal.setup import init as render

    if print_defaults:
        from gpudebug.core.answers.setup import DefaultsAnswer
        from gpudebug.core.config import print_defaults as defaults

        print_(DefaultsAnswer(defaults=defaults()), lambda answer: answer.defaults.rstrip())
        return
    from gpudebug.engine.campaign.session import persons_only, session_of
    from gpudebug.engine.tools.init import init as engine

    if argv and command:
        raise UsageError("--command and a command exclude each other", next="keep one of them")
    command = shlex.join(argv) if argv else command
    if command or reference or run:
        persons_only("choosing the measured command", "gpudebug next works on this campaign")
    answer = engine(
        folder,
        command=command,
        reference=reference,
        campaign=campaign,
        progress=progress,
        goal=goal,
        agent=agent or (),
        session=session_of(),
        run=run,
    )
    print_(answer, render)


@app.command(epilog="Example: gpudebug -C ~/my-training status\n\nExample: gpudebug status --watch")
def status(
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="Watch the run under way, once a second; q quits. Without a terminal, or with TERM=dumb: "
            "a line every 10 s until no run is under way.",
        ),
    ] = False,
    directory: Directory = None,
    json: Json = False,
) -> None:
    """Show where the campaign is and what `next` would do."""
    folder = choose(directory, json)
    if watch:
        _watch(folder)
        return
    from gpudebug.engine.status.status import status as engine
    from gpudebug.terminal.status import status as render

    print_(engine(folder, every=bool(chosen["json"])), render)


def _watch(folder: Path) -> None:
    if chosen["json"]:
        raise UsageError("--watch draws a screen and has no JSON", next="gpudebug status --json")
    from gpudebug.engine.status.watch import Looker
    from gpudebug.terminal import screen, watch

    screen.watch(Looker(folder).look, watch.frame, watch.line)


@app.command(epilog="Example: gpudebug settings\n\nExample: gpudebug settings --accept")
def settings(
    accept: Annotated[
        bool, typer.Option("--accept", help="Pin the settings of gpudebug.yaml as they are; for a person.")
    ] = False,
    directory: Directory = None,
    json: Json = False,
) -> None:
    """Print the pinned settings and what gpudebug.yaml changes."""
    folder = choose(directory, json)
    from gpudebug.engine.campaign.session import session_of
    from gpudebug.engine.campaign.settings import settings as engine
    from gpudebug.terminal import hypotheses

    print_(engine(folder, accept, session_of()), hypotheses.settings)


@app.command(epilog="Example: gpudebug show 3")
def show(
    hypothesis: Hypothesis,
    directory: Directory = None,
    json: Json = False,
) -> None:
    """Show one hypothesis with its evidence, gates and files."""
    folder = choose(directory, json)
    from gpudebug.engine.status.answer import show as engine
    from gpudebug.terminal.show import show as render

    print_(engine(folder, hypothesis), render)


@app.command(
    epilog="Example: gpudebug propose --title 'Loader waits' --set --num_workers=4\n\n"
    "Example: gpudebug propose --sweep --denoising_steps=4,2,1\n\n"
    "Example: gpudebug propose --from-catalogue dl-no-workers\n\n"
    "Example: gpudebug propose --none 'Each likely cause was tested'"
)
def propose(
    title: Annotated[
        str, typer.Option(metavar="TEXT", help="The cause, in one line; not needed for a sweep.")
    ] = "",
    description: Annotated[str, typer.Option(metavar="TEXT", help="Why it would idle the device.")] = "",
    method: Annotated[str, typer.Option(metavar="TEXT", help="What to change and what should move.")] = "",
    set_: Annotated[list[str] | None, typer.Option("--set", metavar="FLAG=V", help="Set a flag.")] = None,
    unset: Annotated[list[str] | None, typer.Option(metavar="FLAG", help="Remove a flag.")] = None,
    env: Annotated[list[str] | None, typer.Option(metavar="K=V", help="Set a variable.")] = None,
    sweep: Annotated[
        str | None,
        typer.Option(
            metavar="FLAG=V,V,…", help="One hypothesis a value; env:K=V,V for a variable; quote a comma."
        ),
    ] = None,
    patch: Annotated[str | None, typer.Option(metavar="FILE", help="A patch in hypotheses/patches.")] = None,
    code: Annotated[bool, typer.Option("--code", help="The change is code, still to be written.")] = False,
    compound: Annotated[bool, typer.Option("--compound", help="Allow several changes at once.")] = False,
    cause: Annotated[
        str | None, typer.Option(metavar="ID", help="The root cause that it tests, from the catalogue.")
    ] = None,
    from_catalogue: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Take what is not given from the catalogue's entry."),
    ] = None,
    none: Annotated[
        str | None,
        typer.Option(
            "--none", metavar="WHY", help="There is nothing to propose: end this session, and say why."
        ),
    ] = None,
    directory: Directory = None,
    json: Json = False,
) -> None:
    """Add a hypothesis to the progress file.

    A change that the file already has is refused.
    """
    folder = choose(directory, json)
    from gpudebug.core.change.intervention import from_options
    from gpudebug.engine.campaign.session import session_of
    from gpudebug.engine.hypotheses.propose import propose as engine
    from gpudebug.engine.hypotheses.propose import propose_sweep
    from gpudebug.terminal.next import propose as render

    texts = {"title": title, "description": description, "method": method}
    if none is not None:
        if any((*texts.values(), sweep, set_, unset, env, patch, code, compound, cause, from_catalogue)):
            raise UsageError("--none proposes nothing", next="leave the other options out")
        _none(folder, none)
    if sweep is not None:
        if set_ or unset or env or patch or code or compound:
            raise UsageError("--sweep is the change itself", next="leave the other change out")
        if cause or from_catalogue:
            raise UsageError("--sweep takes no cause", next="propose each value with --cause")
        answer = propose_sweep(
            folder,
            sweep,
            title=title,
            description=description,
            method=method,
            session=session_of(),
        )
        print_(answer, render)
        return
    change = None
    if any((set_, unset, env, patch, code)):
        change = from_options(set_ or (), unset or (), env or (), patch, code, compound)
    more: dict[str, Any] = {**texts, "change": change, "session": session_of()}
    if from_catalogue is not None:
        from gpudebug.engine.diagnosis.from_catalogue import propose_from_catalogue

        if cause is not None:
            raise UsageError("--from-catalogue names the cause already", next="leave --cause out")
        answer = propose_from_catalogue(folder, from_catalogue, **more)
    else:
        answer = engine(folder, **more, cause=cause)
    print_(answer, render)


def _none(folder: Path, why: str) -> NoReturn:
    from gpudebug.engine.campaign.session import session_of
    from gpudebug.engine.cycle.next import exit_status
    from gpudebug.engine.cycle.nothing import propose_nothing
    from gpudebug.terminal.next import next_ as render

    answer = propose_nothing(folder, why, session_of())
    print_(answer, render)
    raise typer.Exit(exit_status(answer))


@app.command(
    name="next",
    epilog="Example: gpudebug next --json\n\nExample: gpudebug next --detach\n\n"
    "Example: gpudebug next 2 --within 10m",
)
def next_(
    hypothesis: Annotated[
        int | None, typer.Argument(min=1, metavar="[H]", help="Test this one; for a person.")
    ] = None,
    detach: Annotated[
        bool, typer.Option("--detach", help="Run in the background; `wait` waits for it.")
    ] = False,
    whole: Annotated[
        bool, typer.Option("--whole", help="Repeat what this session's last page had already.")
    ] = False,
    more: Annotated[
        int | None,
        typer.Option("--more", min=1, metavar="H", help="Go on with H, which ended INCONCLUSIVE."),
    ] = None,
    within: Annotated[
        str | None,
        typer.Option(
            "--within", metavar="TIME", help="End a test before a run that would end later, e.g. 10m."
        ),
    ] = None,
    overwrite: Overwrite = False,
    directory: Directory = None,
    json: Json = False,
) -> None:
    """Do the one next thing, exactly once.

    Recover, record a baseline, test a hypothesis, or ask for one.
    """
    folder = choose(directory, json)
    permit(overwrite)
    from gpudebug.engine.campaign.session import persons_only, session_of
    from gpudebug.engine.cycle.begin import next_here
    from gpudebug.engine.cycle.next import exit_status
    from gpudebug.terminal.live import LiveLine
    from gpudebug.terminal.next import next_ as render
    from gpudebug.terminal.next import without_repeats

    if whole:
        from gpudebug.engine.brief.shown import forget

        forget(folder, session_of())
    if hypothesis is not None:
        if more is not None:
            raise UsageError("--more names the hypothesis already", next=f"gpudebug next --more {more}")
        persons_only("choosing what is tested", "gpudebug next")
    asked: dict[str, Any] = {"more": more, "hypothesis": hypothesis, "within_s": seconds("--within", within)}
    with LiveLine() as live:
        answer = next_here(folder, live, session_of(), detach=detach, **asked)
    print_(answer, lambda shown: render(without_repeats(shown, live.new_notes)))
    raise typer.Exit(exit_status(answer))


@app.command(
    epilog="Example: gpudebug baseline workload\n\n"
    "Example: gpudebug baseline --aa\n\n"
    "Example: gpudebug baseline workload --torch-profile wait=2,warmup=2,active=4\n\n"
    "Example: gpudebug baseline reference --import gpu_usage.csv --log train.log"
)
def baseline(
    role: Annotated[str | None, typer.Argument(metavar="[workload|reference]", help="Which one.")] = None,
    import_: Annotated[
        Path | None, typer.Option("--import", metavar="F", help="The samples of a completed run.")
    ] = None,
    run: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Of several runs in the import.")
    ] = None,
    log: Annotated[Path | None, typer.Option("--log", metavar="F", help="The imported run's output.")] = None,
    aa: Annotated[bool, typer.Option("--aa", help="Run the workload against its own baseline.")] = False,
    runs: Annotated[
        int | None, typer.Option(min=1, max=1000, metavar="N", help="How many with --aa.")
    ] = None,
    torch_profile: TorchProfile = None,
    overwrite: Overwrite = False,
    directory: Directory = None,
    json: Json = False,
) -> None:
    """Record the baseline that trials are judged against.

    By running it, or from a completed run (--import); --aa measures the run-to-run noise.

    With --torch-profile it is one extra run, for its trace; no baseline or verdict uses it.
    """
    folder = choose(directory, json)
    permit(overwrite)
    from gpudebug.engine.campaign.session import session_of
    from gpudebug.terminal.live import LiveLine
    from gpudebug.terminal.next import next_ as render

    if role not in (None, "workload", "reference"):
        raise UsageError(f"unknown baseline {role!r}", next="name workload or reference")
    if log is not None and import_ is None:
        raise UsageError("--log goes with --import", next="add --import SAMPLES.csv")
    if run is not None and import_ is None:
        raise UsageError("--run goes with --import", next="add --import SAMPLES.csv")
    if runs is not None and not aa:
        raise UsageError("--runs goes with --aa", next="add --aa")
    if aa and (role == "reference" or import_ is not None):
        raise UsageError("--aa runs the workload itself", next="gpudebug baseline --aa")
    if torch_profile is not None and (aa or import_ is not None):
        raise UsageError("--torch-profile is a run of its own", next="leave --aa and --import out")
    answer: NextAnswer
    with LiveLine() as live:
        if import_ is not None:
            from gpudebug.engine.trial.import_baseline import import_baseline

            answer = import_baseline(
                folder, role or "workload", folder / import_, log and folder / log, live, session_of(), run
            )
        elif aa:
            from gpudebug.engine.cycle.begin import aa_here

            answer = aa_here(folder, live, runs, session_of())
        elif torch_profile is not None:
            from gpudebug.engine.cycle.begin import profile_here

            answer = profile_here(folder, role or "workload", torch_profile, live, session_of())
        else:
            from gpudebug.engine.cycle.begin import baseline_here

            answer = baseline_here(folder, role, live, session_of())
    print_(answer, render)
