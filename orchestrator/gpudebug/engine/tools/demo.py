"""`gpudebug demo`: the whole story in a repository of its own, by the same path as any campaign."""

from __future__ import annotations

import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from gpudebug import demo as program
from gpudebug.core.answers.next import NextAnswer
from gpudebug.core.answers.setup import DemoAnswer
from gpudebug.core.campaign.decide import ActionKind
from gpudebug.core.change import intervention as interventions
from gpudebug.edges import git, store
from gpudebug.edges.store import leftovers
from gpudebug.engine.campaign.files import progress_head, read_config
from gpudebug.engine.cycle.begin import next_here
from gpudebug.engine.hypotheses.propose import propose
from gpudebug.engine.run.live_line import Report
from gpudebug.engine.status.status import status

Tell = Callable[[str], None]


def demo(report: Report, tell: Tell, text_of: Callable[[NextAnswer], str]) -> DemoAnswer:
    """Run the demo campaign until it stops. `tell` gets each chapter, `text_of` turns an answer into text."""
    folder = Path(tempfile.mkdtemp(prefix=leftovers.DEMO))
    prepare(folder)
    tell(f"A training program that leaves its device idle, in {folder}")
    for h in program.HYPOTHESES:
        propose(
            folder,
            title=h.title,
            description=h.description,
            method=h.method,
            cause=h.cause,
            change=interventions.parse(h.intervention),
        )
    answers = []
    while True:
        answer = next_here(folder, report)
        answers.append(answer)
        tell(text_of(answer))
        if answer.action in (ActionKind.STOP.value, ActionKind.PROPOSE.value, ActionKind.IMPLEMENT.value):
            break
        if answer.verdict == "VALIDATED":
            break
    return DemoAnswer(
        folder=str(folder),
        cycles=tuple(answers),
        status=status(folder),
        files=(str(folder / "gpudebug.yaml"), answers[-1].files[-1], str(folder / "runs")),
        next_command=f"{_program()} -C {shlex.quote(str(folder))} status",
    )


def prepare(folder: Path) -> None:
    """Write the demo's files into an empty folder and commit them."""
    program.write_campaign(folder)
    workspace = store.Workspace(folder)
    config = read_config(workspace)
    store.replace_file(folder / config.progress, progress_head(config).encode(), root=folder, expected=None)
    git.create(folder, "Start the demo campaign")


def _program() -> str:
    """Return how a shell finds gpudebug: by its name, or beside the Python that runs it."""
    if shutil.which("gpudebug"):
        return "gpudebug"
    return shlex.quote(str(Path(sys.executable).with_name("gpudebug")))
