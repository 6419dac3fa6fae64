"""`gpudebug report`: the whole campaign as a self-contained page, a picture, or Markdown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpudebug.core.answers.report import ReportAnswer, SkippedRun
from gpudebug.edges import charts
from gpudebug.engine.campaign.files import find
from gpudebug.engine.report import outputs
from gpudebug.engine.report.data import gather
from gpudebug.engine.report.headline import command


def report(
    directory: Path,
    output: Path | None = None,
    png: Path | None = None,
    markdown: bool = False,
    doing: Callable[[str], None] = lambda text: None,
    *,
    force: bool = False,
) -> ReportAnswer:
    """Write the page to `output` (a folder, or F.html; by default runs/report) and the picture to `png`.

    If a picture or Markdown is asked for, the page is written only with an `output`.

    `force` replaces files that gpudebug did not write. Before anything is gathered: StoreError if a file
    cannot or may not be written, GpudebugError if matplotlib lacks for the picture.
    """
    workspace = find(directory)
    page = outputs.page_at(workspace, output) if output or not (png or markdown) else None
    if png is not None:
        outputs.check_picture(png, "--png")
        charts.check()
    for path in (page, png):
        if path is not None:
            outputs.check(workspace, path, force=force)
    data = gather(directory, doing)
    doing("drawing")
    files = []
    if page is not None:
        files.append((page, _page(data, page.parent)))
    if png is not None:
        files.append((png, charts.campaign_picture(data)))
    text = _markdown(data) if markdown else None
    outputs.write(files, force=force)
    return ReportAnswer(
        campaign=data["status"]["campaign"],
        page=str(page) if page is not None else None,
        bytes=len(files[0][1]) if page is not None else None,
        png=str(png) if png is not None else None,
        markdown=text,
        runs=len(data["runs"]),
        hypotheses=len(data["hypotheses"]),
        skipped=tuple(SkippedRun(run=s["run"], why=s["why"]) for s in data["skipped"]),
        notes=tuple(data["notes"]),
        next_command=command(data),
        files=tuple(str(path) for path, _ in files),
    )


def _page(data: dict[str, Any], folder: Path) -> bytes:
    from gpudebug.engine.report.page import page

    return page(data, folder.resolve()).encode("utf-8", "replace")


def _markdown(data: dict[str, Any]) -> str:
    from gpudebug.engine.report.markdown import summary

    return summary(data)
