from __future__ import annotations

from pathlib import Path

import pytest

from gpudebug.core.errors import StoreError
from gpudebug.edges import store
from gpudebug.engine.brief.shown import forget, only_new

PAGE = "# Head\n\n## One\n\n- a\n\n## Now\n\n1. Do it."


@pytest.fixture
def workspace(tmp_path: Path) -> store.Workspace:
    (tmp_path / "gpudebug.yaml").write_text("campaign: test\nworkload: {command: python train.py}\n")
    made = store.Workspace(tmp_path)
    made.campaign = "test"
    return made


def test_each_session_is_remembered_apart(workspace: store.Workspace) -> None:
    assert only_new(workspace, "a", PAGE) == PAGE
    assert "## One" not in only_new(workspace, "a", PAGE)
    assert only_new(workspace, "b", PAGE) == PAGE
    assert only_new(workspace, None, PAGE) == PAGE
    forget(workspace.root, "a")
    forget(workspace.root, None)
    assert only_new(workspace, "a", PAGE) == PAGE
    assert "## One" not in only_new(workspace, "b", PAGE)


def test_only_the_last_sessions_are_remembered(workspace: store.Workspace) -> None:
    for number in range(40):
        only_new(workspace, f"s{number}", PAGE)
    assert len(store.get_pages(workspace)) == 32
    assert only_new(workspace, "s0", PAGE) == PAGE
    assert "## One" not in only_new(workspace, "s39", PAGE)


@pytest.mark.parametrize("record", [[], "x", {"a": "x", "b": 1, "c": [1, None]}])
def test_a_record_of_another_kind_is_none(workspace: store.Workspace, record: object) -> None:
    only_new(workspace, "z", PAGE)
    store.put_json(workspace.private / "status" / "test" / "pages.json", record)  # type: ignore[arg-type]
    for session in ("a", "b", "c"):
        assert only_new(workspace, session, PAGE) == PAGE


def test_what_cannot_be_kept_is_shown_whole(
    workspace: store.Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_new(workspace, "a", PAGE)

    def full(*_: object) -> None:
        raise StoreError("disk full")

    monkeypatch.setattr(store, "put_pages", full)
    assert only_new(workspace, "a", PAGE) == PAGE
    forget(workspace.root, "a")
