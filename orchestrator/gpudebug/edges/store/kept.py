"""What is kept for `status` in runs/.status/CAMPAIGN: the order of what waits, and the summary of verdicts.

All of it can be made again from the evidence; none of it is evidence.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpudebug.edges.store.files import get_json, make_folder, put_json
from gpudebug.edges.store.folders import Workspace
from gpudebug.edges.store.root import RUNS
from gpudebug.edges.store.summary import STATUS

_ORDER = "order.json"


def put_order(workspace: Workspace, order: dict[str, Any]) -> None:
    """Record the order of what waits. StoreError if it cannot be written."""
    put_json(_made(workspace) / _ORDER, order)


def get_order(workspace: Workspace) -> Any:
    """The record of the order; {} if there is none."""
    return get_json(_folder(workspace) / _ORDER)


def order_file(campaign: str) -> str:
    """The record of the order, below the campaign's folder."""
    return f"{RUNS}/{STATUS}/{campaign}/{_ORDER}"


def _made(workspace: Workspace) -> Path:
    make_folder(_folder(workspace))
    return _folder(workspace)


def _folder(workspace: Workspace) -> Path:
    """A folder for each campaign: several may share a runs/."""
    return workspace.runs / STATUS / workspace.campaign
