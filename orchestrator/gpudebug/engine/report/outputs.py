"""Where a report may go: looked at before the work that makes it, so that nothing is left half-written."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from gpudebug.core.errors import UsageError
from gpudebug.edges import store
from gpudebug.engine.run.outputs import is_page, refuse

PAGE = "report.html"
_PAGES = (".html", ".htm")


def page_at(usual: Path, output: Path | None, name: str = PAGE) -> Path:
    """Return the file that the page goes to: `output` if that names one, else `name` in that folder; without
    one in the `usual` folder.

    UsageError for `-` and F.png.
    """
    if output is not None and (output.name == "-" or output.suffix.lower() == ".png"):
        raise UsageError(f"-o {output.name}: the page is an HTML file", next="name it F.html")
    if output is not None and output.suffix.lower() in _PAGES and not os.path.isdir(output):
        return output
    return (output or usual) / name


def check(workspace: store.Workspace, path: Path, *, force: bool = False) -> None:
    """StoreError if `path` cannot be written, or may not be: see `refuse`; or a link leads it out of the
    repository, other than runs/ itself."""
    refuse(path, is_page, force=force)
    place = Path(os.path.normpath(path.absolute()))
    inside = workspace.root
    if workspace.runs.is_symlink() and place.is_relative_to(workspace.runs):
        inside = workspace.runs
    if place.is_relative_to(inside):
        store.resolve_inside(place, inside)
    store.check_output(path, make_folder=True)


def write(path: Path, content: bytes, *, force: bool = False) -> None:
    """Write the file at once; make its folder if it is missing."""
    store.make_folder(path.parent)
    store.put_file(path, content, partial(refuse, path, is_page, force=force))
