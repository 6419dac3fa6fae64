"""Pictures of a report's data for a README or an issue, and the one that `show H --plot` writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpudebug import __version__
from gpudebug.core.errors import UsageError
from gpudebug.core.redact import scrubbed
from gpudebug.edges import charts
from gpudebug.engine.campaign import load
from gpudebug.engine.loaded import Loaded
from gpudebug.engine.premises import entry_of
from gpudebug.engine.report import hypotheses, outputs
from gpudebug.engine.report.runs import Runs, brief, detail
from gpudebug.engine.status import show, status_of


def campaign_png(data: dict[str, Any]) -> bytes:
    """The whole campaign at one glance. GpudebugError where matplotlib lacks."""
    charts.check()
    return charts.campaign_picture(data)


def hypothesis_png(data: dict[str, Any], number: int) -> bytes:
    """One hypothesis of it, before and after its change. GpudebugError where matplotlib lacks."""
    charts.check()
    return charts.hypothesis_picture(data, number)


def show_with_picture(directory: Path, number: int, path: Path) -> dict[str, Any]:
    """`show H --plot F.png`: the picture is written to `path`, which `show`'s JSON names as `plot`.

    What cannot be drawn or written is refused before anything is read.
    """
    if path.suffix.lower() != ".png":
        raise UsageError(f"--plot {path.name}: the picture is a PNG", next="name it F.png")
    loaded = load(directory)
    outputs.check(loaded.workspace, path)
    charts.check()
    answer = show(directory, number)
    outputs.write([(path, hypothesis_png(_data(loaded, number), number))])
    return {**answer, "plot": str(path), "files": [*answer["files"], str(path)]}


def _data(loaded: Loaded, number: int) -> dict[str, Any]:
    """Of a report's data what one hypothesis needs: itself and its runs."""
    entry, said = entry_of(loaded, number), status_of(loaded)
    runs = Runs(loaded.workspace, frozenset(loaded.workspace.run_names()))
    known = next(h for h in said["hypotheses"] if h["number"] == number)
    told = hypotheses.told(loaded, runs, entry, known, hypotheses.Room())
    read = runs.read([*told["baseline_runs"], *told["trial_runs"]])
    data = {
        "gpudebug": __version__,
        "status": said,
        "machine": None,
        "hypotheses": [told],
        "runs": {run.folder.name: {**brief(run), **detail(run, [])} for run in read},
    }
    return dict(scrubbed(data, loaded.workspace.scrub))
