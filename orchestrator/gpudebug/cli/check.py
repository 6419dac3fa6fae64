"""The commands that try, check and clean: demo, doctor, verify, check, clean."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpudebug.cli.options import (
    AnyHypothesis,
    Directory,
    Json,
    Overwrite,
    app,
    choose,
    chosen,
    permit,
    print_,
)
from gpudebug.core.errors import UsageError

if TYPE_CHECKING:
    from gpudebug.core.answers.setup import DoctorAnswer


@app.command(epilog="Example: gpudebug demo")
def demo(directory: Directory = None, json: Json = False) -> None:
    """Run a whole campaign on a small training, without a GPU.

    It takes about a minute.
    """
    choose(directory, json)
    from gpudebug.engine.tools import demo as engine
    from gpudebug.terminal import next as stage
    from gpudebug.terminal import setup
    from gpudebug.terminal.live import LiveLine

    with LiveLine() as live:

        def show(text: str) -> None:
            live.close()
            print(text + "\n", file=sys.stderr if chosen["json"] else sys.stdout, flush=True)

        answer = engine.demo(live, show, stage.next_)
    print_(answer, setup.demo)


@app.command(
    epilog="Example: gpudebug doctor\n\nExample: gpudebug doctor --agent claude\n\n"
    "Example: gpudebug doctor --gpu"
)
def doctor(
    profiling: Annotated[
        bool,
        typer.Option(
            "--profiling", help="Try the profiling library instead: sections, memory, report, overhead."
        ),
    ] = False,
    ask: Annotated[
        bool, typer.Option("--ask", help="Start the workload's Python too, to ask for its packages.")
    ] = False,
    agent: Annotated[
        str | None,
        typer.Option("--agent", metavar="NAME", help="Check the set-up of claude, codex, … here instead."),
    ] = None,
    gpu: Annotated[
        bool,
        typer.Option("--gpu", help="Load each GPU for a known time and compare; about two minutes a GPU."),
    ] = False,
    cluster: Annotated[
        bool,
        typer.Option("--cluster", help="Check runner.slurm from here and from two nodes, in a short job."),
    ] = False,
    directory: Directory = None,
    json: Json = False,
) -> None:
    """Check the device, driver, git, permissions and disk.

    What does not work comes with how to fix it. --gpu writes gpudebug-gpu.tar.gz, in a campaign
    into runs/, to attach to a report.
    """
    folder = choose(directory, json)
    from gpudebug.engine.tools import doctor as engine
    from gpudebug.terminal.setup import doctor as render

    if agent is not None and (profiling or ask or gpu):
        raise UsageError("--agent checks the set-up of an agent alone", next="leave the other options out")
    if gpu and (profiling or ask):
        raise UsageError("--gpu checks the GPUs alone", next="leave the other options out")
    if cluster and (profiling or ask or gpu or agent is not None):
        raise UsageError("--cluster checks the cluster alone", next="leave the other options out")
    if cluster:
        from gpudebug.engine.tools.doctor import of_cluster

        answer: DoctorAnswer = of_cluster(folder)
    elif gpu:
        answer = _gpu_doctor(folder)
    elif agent is not None:
        answer = engine.of_agent(folder, agent)
    else:
        answer = (engine.profiling if profiling else engine.doctor)(folder, ask=ask)
    print_(answer, render)
    if not answer.ok:
        raise typer.Exit(1)


def _gpu_doctor(folder: Path) -> DoctorAnswer:
    from functools import partial

    from gpudebug.engine.tools.doctor import startable
    from gpudebug.engine.tools.gpu_doctor import GpuPlan, gpu_doctor, trials
    from gpudebug.terminal.live import LiveLine

    with LiveLine() as live:
        return gpu_doctor(folder, live, GpuPlan(trials=partial(trials, startable(folder))))


@app.command(epilog="Example: gpudebug verify --json")
def verify(
    hypothesis: AnyHypothesis = None,
    directory: Directory = None,
    json: Json = False,
) -> None:
    """Derive every figure and verdict again from the runs.

    What differs is listed, and the exit status is 1.
    """
    folder = choose(directory, json)
    from gpudebug.engine.status.summary import check_summary
    from gpudebug.engine.verify import verify as engine
    from gpudebug.terminal.live import LiveLine
    from gpudebug.terminal.verify import verify as render

    with LiveLine() as live:
        answer = engine(folder, hypothesis, live.doing, check_summary)
    print_(answer, render)
    raise typer.Exit(1 if answer.problems else 0)


@app.command(epilog="Example: gpudebug check --json")
def check(overwrite: Overwrite = False, directory: Directory = None, json: Json = False) -> None:
    """Measure again whether what was accepted still gains as much.

    With and without it in turn; a regression beyond the intervals is exit status 1. For a person and CI.
    """
    folder = choose(directory, json)
    permit(overwrite)
    from gpudebug.engine.campaign.session import persons_only
    from gpudebug.engine.cycle.check import check as engine
    from gpudebug.terminal.hypotheses import checked as render
    from gpudebug.terminal.live import LiveLine

    persons_only("measuring again what was accepted", "gpudebug status has what it gained")
    with LiveLine() as live:
        answer = engine(folder, live)
    print_(answer, render)
    if answer.regressed:
        raise typer.Exit(1)


@app.command(epilog="Example: gpudebug clean\n\nExample: gpudebug clean --unused-runs --yes")
def clean(
    unused_runs: Annotated[
        bool, typer.Option("--unused-runs", help="Remove runs that the progress file does not name.")
    ] = False,
    runs: Annotated[
        bool, typer.Option("--runs", help="Remove all runs, the evidence of every verdict too.")
    ] = False,
    looks: Annotated[
        bool, typer.Option("--looks", help="Remove the folders that gpudebug why left.")
    ] = False,
    temporaries: Annotated[
        bool, typer.Option("--temporaries", help="Remove half-written files of killed commands.")
    ] = False,
    worktrees: Annotated[
        bool,
        typer.Option(
            "--worktrees",
            help="Remove this campaign's worktrees and references; untested changes become patches.",
        ),
    ] = False,
    everything: Annotated[
        bool,
        typer.Option("--all", help="Remove all that gpudebug made, here and of yours on this host."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    directory: Directory = None,
    json: Json = False,
) -> None:
    """List what gpudebug left here; remove what you choose.

    In a folder without a campaign that is what gpudebug why left. --all is for an uninstall: it asks once for
    each file that git tracks or init wrote, and once for the rest.
    """
    folder = choose(directory, json)
    from gpudebug.engine.campaign.session import session_of
    from gpudebug.engine.tools import clean as engine
    from gpudebug.engine.tools import everything as rest
    from gpudebug.terminal.setup import clean as render

    loaded, left = engine.survey(folder)
    if everything:
        left = rest.survey(folder, loaded, left)
    kinds = [
        *((engine.EVIDENCE,) if runs else ()),
        *((engine.UNUSED,) if runs or unused_runs else ()),
        *((engine.LOOK,) if looks else ()),
        *((engine.TEMPORARY,) if temporaries else ()),
        *((engine.WORKTREE, engine.REFERENCE) if worktrees else ()),
    ]
    wanted = [one for one in left if everything or one.kind in kinds]
    if wanted and not yes:
        if chosen["json"] or not sys.stdin.isatty():
            raise UsageError("a person must agree", next="look at `gpudebug clean`, then add --yes")
        alone = [one for one in wanted if everything and rest.asked_alone(loaded, one)]
        together = [one for one in wanted if one not in alone]
        for one in together:
            print(f"{one.kind}  {one.path}")
        agreed = together if together and typer.confirm("Remove them?") else []
        agreed += [one for one in alone if typer.confirm(f"Remove {one.path} ({one.kind})?")]
        wanted = [one for one in wanted if one in agreed]
        if not wanted:
            return
    answer = engine.listing(loaded, left)
    if everything or kinds:
        answer = engine.remove(loaded, left, wanted, session_of())
    print_(answer, render)
