"""Folders of sessions: closed to others, written at once, no name twice."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from gpudebug.core.errors import StoreError
from gpudebug.edges import store


def test_what_a_session_leaves_is_its_owners_alone(tmp_path: Path) -> None:
    sessions = store.Sessions(store.Workspace(tmp_path))
    assert sessions.names() == []
    folder = sessions.new("loop-20261121-1")
    folder.write({"session": folder.name, "start": "now"})
    folder.write_brief("Größe \udcff\n")
    with folder.open_transcript() as f:
        f.write(b"said\n")
    with folder.open_transcript() as f:
        f.write(b"more\n")
    assert sessions.names() == ["loop-20261121-1"]
    assert folder.transcript.read_bytes() == b"said\nmore\n"
    assert folder.brief.read_bytes() == "Größe ".encode() + b"\xff\n"
    assert json.loads(folder.record.read_text()) == {"format": 1, "session": folder.name, "start": "now"}
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    assert {stat.S_IMODE(p.stat().st_mode) for p in folder.path.iterdir()} == {0o600}
    with pytest.raises(StoreError, match="File exists"):
        sessions.new(folder.name)
    folder.discard()
    assert sessions.names() == []


@pytest.mark.parametrize("text", [None, "", "{", "[]", '{"format": 2}', "\ufeff{}", "[" * 100_000])
def test_what_the_last_session_was_is_not_read_from_its_folder(tmp_path: Path, text: str | None) -> None:
    sessions = store.Sessions(store.Workspace(tmp_path))
    folder = sessions.new("x")
    folder.record.write_text('{"format": 1, "session": "x"}')
    assert sessions.last() is None
    folder.write({"session": "x", "start": "now"})
    folder.record.write_text("{}")
    assert sessions.last() == (replace(folder, made=None), {"format": 1, "session": "x", "start": "now"})
    if text is not None:
        folder.kept.write_text(text)
    else:
        folder.discard()
    assert sessions.last() is None


def test_a_transcript_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    folder = store.Sessions(store.Workspace(tmp_path)).new("x")
    folder.transcript.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="is a link"):
        folder.open_transcript()
    assert not (tmp_path / "elsewhere").exists()
