"""Where a report may go: looked at before the work that makes it, so that nothing is left half-written."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from gpudebug.core.errors import StoreError, UsageError
from gpudebug.edges import store

PAGE = "report.html"
_PAGES = (".html", ".htm")
# Other programs name theirs alike: those that tell of tests or coverage.
_OURS, _HEAD = re.compile(rb'<meta name="generator" content="gpudebug '), 4096
_RUN = re.compile(r"[0-9]{4,9}-")


def page_at(workspace: store.Workspace, output: Path | None) -> Path:
    """The file that the page goes to: `output` where that names one, else report.html in that folder.

    StoreError where a report.html that nobody named is somebody else's. UsageError for `-` and F.png.
    """
    if output is not None and (output.name == "-" or output.suffix.lower() == ".png"):
        raise UsageError(f"-o {output.name}: the page is an HTML file", next="name it F.html")
    if output is not None and output.suffix.lower() in _PAGES and not os.path.isdir(output):
        return output
    page = (output or workspace.runs / "report") / PAGE
    if os.path.isfile(page) and not _OURS.search(store.read_head(page, _HEAD)):
        raise StoreError(
            "is no page of gpudebug's; it is unchanged", file=str(page), next=f"name the file: -o {page}"
        )
    return page


def check_picture(path: Path, option: str) -> None:
    """UsageError: a name that ends otherwise may be that of a file which is no picture."""
    if path.suffix.lower() != ".png":
        said = f"{option} {path.name}: the picture is a PNG"
        raise UsageError(said, next=f"name it {path.stem or 'F'}.png")


def check(workspace: store.Workspace, path: Path) -> None:
    """StoreError where `path` cannot be written, or may not be: in a run folder or a worktree, through a link
    that leaves the repository."""
    place = Path(os.path.normpath(path.absolute()))
    if place.is_relative_to(workspace.root):
        store.resolve_inside(place, workspace.root)
    try:
        target = path.resolve()
    except (OSError, RuntimeError):  # RuntimeError up to Python 3.12
        raise StoreError("links lead in a circle", file=str(path), next="remove the link") from None
    _refuse_evidence(workspace, path, target)
    store.check_output(path, make_folder=True)


def _refuse_evidence(workspace: store.Workspace, path: Path, target: Path) -> None:
    runs = (p for p in target.parents if _RUN.match(p.name) and os.path.exists(p / "run.json"))
    run = next(runs, None)
    if run is not None:
        raise StoreError(
            f"lies in the run folder {run.name}, whose manifest it would break",
            file=str(path),
            next="name another place",
        )
    if target.is_relative_to(workspace.worktrees.resolve()) or ".git" in target.parts:
        raise StoreError("lies in a worktree or in .git", file=str(path), next="name another place")


def write(files: Sequence[tuple[Path, bytes]]) -> None:
    """Every file at once, its folder made where it is missing."""
    for path, content in files:
        store.make_folder(path.parent)
        store.put_file(path, content)
