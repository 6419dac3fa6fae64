"""The picture of one hypothesis that `show H --plot` writes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from gpudebug import __version__
from gpudebug.core.answers.show import ShowAnswer
from gpudebug.core.redaction.records import scrubbed_record
from gpudebug.edges import charts
from gpudebug.engine.campaign.campaign import Loaded
from gpudebug.engine.campaign.load import load
from gpudebug.engine.campaign.premises import entry_of
from gpudebug.engine.report import hypotheses, outputs
from gpudebug.engine.report.runs import ReportedRuns, brief, detail
from gpudebug.engine.status.answer import show, status_of


def show_with_picture(directory: Path, number: int, path: Path, *, force: bool = False) -> ShowAnswer:
    """`show H --plot F.png`: the picture is written to `path`, which the answer names as `plot`.

    What cannot be drawn or written is refused before anything is read.
    """
    outputs.check_picture(path, "--plot")
    loaded = load(directory)
    outputs.check(loaded.workspace, path, force=force)
    charts.check()
    answer = show(directory, number)
    outputs.write([(path, charts.hypothesis_picture(_data(loaded, number), number))], force=force)
    return replace(answer, plot=str(path), files=[*answer.files, str(path)])


def _data(loaded: Loaded, number: int) -> dict[str, Any]:
    """Of a report's data what one hypothesis needs: itself and its runs."""
    entry, status = entry_of(loaded, number), status_of(loaded)
    runs = ReportedRuns(loaded.workspace, frozenset(loaded.workspace.run_names()))
    known = next(h for h in status.hypotheses if h.number == number)
    shown = hypotheses.shown(loaded, runs, entry, known, hypotheses.Room())
    read = runs.read([*shown["baseline_runs"], *shown["trial_runs"]])
    data = {
        "gpudebug": __version__,
        "status": status.as_json(),
        "machine": None,
        "hypotheses": [shown],
        "runs": {run.folder.name: {**brief(run), **detail(run, [])} for run in read},
    }
    return dict(scrubbed_record(data, loaded.workspace.scrub))
