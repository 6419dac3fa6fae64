"""`gpudebug report`: a campaign, or one run, as a self-contained page, or Markdown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gpudebug.core.answers.setup import ReportAnswer
from gpudebug.core.answers.show import UnreadRun
from gpudebug.edges import store
from gpudebug.engine.campaign.files import find
from gpudebug.engine.report import look, outputs
from gpudebug.engine.report.data import gather
from gpudebug.engine.report.headline import command
from gpudebug.engine.report.markdown import summary
from gpudebug.engine.report.page import page as campaign_page
from gpudebug.engine.report.page import run_page


def report(
    directory: Path,
    output: Path | None = None,
    markdown: bool = False,
    doing: Callable[[str], None] = lambda text: None,
    *,
    force: bool = False,
) -> ReportAnswer:
    """Write the page to `output` (a folder, or F.html; by default runs/report).

    If Markdown is asked for, the page is written only with an `output`.

    `force` replaces files that gpudebug did not write. Before anything is gathered: StoreError if a file
    cannot or may not be written.
    """
    workspace = find(directory)
    page = outputs.page_at(_usual(workspace), output) if output or not markdown else None
    if page is not None:
        outputs.check(workspace, page, force=force)
    data = gather(directory, doing)
    doing("drawing")
    size = _written(page, campaign_page, data, force=force)
    return ReportAnswer(
        campaign=data["status"]["campaign"],
        page=str(page) if page is not None else None,
        bytes=size,
        markdown=summary(data) if markdown else None,
        runs=len(data["runs"]),
        hypotheses=len(data["hypotheses"]),
        skipped=tuple(UnreadRun(run=s["run"], why=s["why"]) for s in data["skipped"]),
        notes=tuple(data["notes"]),
        next_command=command(data),
        files=(str(page),) if page is not None else (),
    )


def report_run(
    directory: Path,
    run: str,
    output: Path | None = None,
    markdown: bool = False,
    doing: Callable[[str], None] = lambda text: None,
    *,
    force: bool = False,
) -> ReportAnswer:
    """Write the page of RUN, of a campaign or of none, to `output` (a folder, or F.html; by default RUN.html
    in runs/report of the campaign, else in `directory`).

    Otherwise as `report`. UsageError if RUN is no run folder.
    """
    folder, root = look.run_folder(directory, run), store.find_root(directory)
    # Without a campaign the place where it was called is all that a link must not lead out of.
    workspace = store.Workspace(directory if root is None else root)
    usual = directory if root is None else _usual(workspace)
    page = outputs.page_at(usual, output, f"{folder.name}.html") if output or not markdown else None
    if page is not None:
        outputs.check(workspace, page, force=force)
    data = look.gather_run(directory, folder, doing)
    doing("drawing")
    size = _written(page, run_page, data, force=force)
    return ReportAnswer(
        campaign=data["campaign"],
        page=str(page) if page is not None else None,
        bytes=size,
        markdown=look.summary_of_run(data) if markdown else None,
        runs=1,
        hypotheses=0,
        skipped=(),
        notes=tuple(data["notes"]),
        next_command=data["next_command"],
        files=(str(page),) if page is not None else (),
    )


def _usual(workspace: store.Workspace) -> Path:
    return workspace.runs / "report"


def _written(
    path: Path | None, draw: Callable[[Mapping[str, Any], Path], str], data: Mapping[str, Any], *, force: bool
) -> int | None:
    """Draw a page and write it; return its size. None if none is asked for."""
    if path is None:
        return None
    content = draw(data, path.parent.resolve()).encode("utf-8", "replace")
    outputs.write(path, content, force=force)
    return len(content)
