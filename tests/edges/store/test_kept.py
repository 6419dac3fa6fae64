"""What is kept for `status`: written at once, read back, and nothing where it is damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudebug.core.errors import StoreError
from gpudebug.edges.store import STATUS, Workspace, get_order, put_order


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    found = Workspace(tmp_path)
    found.campaign = "test"
    found.runs.mkdir()
    return found


def test_an_order_is_read_as_it_was_written(workspace: Workspace) -> None:
    assert get_order(workspace) == {}
    put_order(workspace, {"when": "now"})
    put_order(workspace, {"when": "then"})
    assert get_order(workspace) == {"when": "then"}
    assert [path.name for path in (workspace.private / STATUS / "test").iterdir()] == ["order.json"]
    (workspace.private / STATUS / "test" / "order.json").write_text("{")
    assert get_order(workspace) == {}


def test_a_folder_that_cannot_be_made_is_an_expected_error(workspace: Workspace) -> None:
    workspace.private.mkdir()
    (workspace.private / STATUS).write_text("")
    with pytest.raises(StoreError):
        put_order(workspace, {})
