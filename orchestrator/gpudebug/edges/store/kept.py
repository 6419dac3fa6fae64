"""What is kept of each campaign in its private folder: for `status` the order of what waits and the summary
of verdicts, for each session what it was shown.

All of it can be made again from the evidence; none of it is evidence.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpudebug.edges.store.files import get_json, make_folder, put_json
from gpudebug.edges.store.summary import STATUS
from gpudebug.edges.store.workspace import Workspace

_ORDER = "order.json"
_PAGES = "pages.json"


def put_order(workspace: Workspace, order: dict[str, object]) -> None:
    """Record the order of what waits. StoreError if it cannot be written."""
    make_folder(_folder(workspace))
    put_json(order_file(workspace), order)


def get_order(workspace: Workspace) -> Any:
    """Return the record of the order; {} if there is none."""
    return get_json(order_file(workspace))


def put_pages(workspace: Workspace, pages: dict[str, list[str]]) -> None:
    """Record which parts of a page each session was shown. StoreError if it cannot be written."""
    make_folder(_folder(workspace))
    put_json(_folder(workspace) / _PAGES, pages)


def get_pages(workspace: Workspace) -> Any:
    """Return the record of what sessions were shown; {} if there is none."""
    return get_json(_folder(workspace) / _PAGES)


def order_file(workspace: Workspace) -> Path:
    """Return the record of the order."""
    return _folder(workspace) / _ORDER


def _folder(workspace: Workspace) -> Path:
    """Return a folder for each campaign: several may share a runs/."""
    return workspace.private / STATUS / workspace.campaign
