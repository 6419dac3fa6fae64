"""The report as one self-contained HTML file: text and tables first, plots by its own script."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from gpudebug.core.campaign import overview
from gpudebug.core.inside.probe import spans
from gpudebug.core.statistics import numbers
from gpudebug.core.words import VERDICTS
from gpudebug.edges import templates
from gpudebug.engine.report import headline, pageparts

Data = Mapping[str, Any]
# What a file of the page may hold besides text and tables: nothing from elsewhere, no script but ours.
_POLICY = (
    "default-src 'none'; script-src {scripts}; style-src {style}; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)
# A campaign with fewer hypotheses needs no search.
_SEARCHED = 12


def page(data: Data, folder: Path) -> str:
    """The whole page of `data`, to be written into `folder`: its links lead from there into the run folders.

    GpudebugError if plotly's script is missing; ValueError if `data` has what JSON cannot hold.
    """
    return _rendered("report.html.j2", data, data["status"]["campaign"], _ui(data, folder))


def run_page(data: Data, folder: Path) -> str:
    """Return the page of the data of one run, as `page` makes that of a campaign."""
    (run,) = data["runs"].values()
    rate = run["progress_per_s"] or run["steps_per_s"]
    ui = SimpleNamespace(
        present=numbers,
        parts=pageparts,
        quantile=spans.quantile,
        link=partial(_link, data, folder),
        run=run,
        rate=numbers.rate(rate, run["step_unit"]),
    )
    return _rendered("look.html.j2", data, data["name"], ui)


def _rendered(template: str, data: Data, title: str, ui: SimpleNamespace) -> str:
    drawing = templates.script()
    style = templates.source("report.css")
    ours = templates.source("report.js") + templates.source("report_plots.js")
    html = templates.render(
        template,
        data=data,
        title=title,
        ui=ui,
        embedded=embedded(data),
        policy=_POLICY.format(scripts=f"{digest(ours)} {digest(drawing.text)}", style=digest(style)),
        style=style,
        script=ours,
        drawing=drawing,
    )
    # A name of a file may hold what no text file can.
    return html.encode("utf-8", "replace").decode("utf-8")


def embedded(data: Data) -> str:
    """JSON that may stand in a `<script>`: ASCII, and none of the characters that HTML reads."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


def digest(text: str) -> str:
    """Return the source expression that allows exactly this text, as a script or a style sheet."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode()}'"


def _ui(data: Data, folder: Path) -> SimpleNamespace:
    """Return what the templates call: words for figures, links, drawings."""
    metric = headline.metric_of(data)
    return SimpleNamespace(
        present=numbers,
        parts=pageparts,
        metric=metric,
        figure=partial(numbers.figure, metric),
        headline=headline.headline(data),
        command=headline.command(data),
        figure_name=headline.figure_name(data),
        stand_in=overview.stand_in(data),
        tested=overview.tested(data["hypotheses"]),
        best=overview.best(data["hypotheses"]),
        counts=_counts(data),
        change=overview.change_text,
        quantile=spans.quantile,
        effects=pageparts.effects(data["hypotheses"]),
        verdicts=VERDICTS,
        searched=len(data["hypotheses"]) >= _SEARCHED,
        link=partial(_link, data, folder),
        runs=partial(_runs, data),
    )


def _counts(data: Data) -> dict[str, int]:
    found: dict[str, int] = {}
    for h in data["hypotheses"]:
        found[h["status"]] = found.get(h["status"], 0) + 1
    return found


def _link(data: Data, folder: Path, run: str, *names: str) -> str | None:
    """Into a run's folder; None for a run that is not here."""
    found = data["runs"].get(run)
    return pageparts.link(folder, found["folder"], *names) if found else None


def _runs(data: Data, names: list[str]) -> list[Data]:
    """Return the runs of these names that are here."""
    return [data["runs"][name] for name in names if name in data["runs"]]
