"""The folders of agents' sessions, `runs/sessions/NAME`, closed to other users: brief, transcript, record.

These are for people. What the next loop believes of the last session is a second record, beside what else no
clone reaches.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from gpudebug.core.errors import StoreError
from gpudebug.edges import opener, removal
from gpudebug.edges.opener import os_error, saying
from gpudebug.edges.store.files import get_json, make_folder, opened_folder, put_json, write_beside
from gpudebug.edges.store.workspace import Workspace

FORMAT = 1


@dataclass(frozen=True)
class SessionFolder:
    """One session's folder. What is written into it is redacted before.

    `kept` is the record that the next loop reads, `made` what the folder was when this process made it.
    """

    path: Path
    kept: Path
    made: removal.Identity | None = None

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def brief(self) -> Path:
        return self.path / "brief.md"

    @property
    def transcript(self) -> Path:
        return self.path / "transcript.log"

    @property
    def record(self) -> Path:
        return self.path / "session.json"

    def write(self, record: Mapping[str, Any]) -> None:
        """session.json, at once."""
        found = {"format": FORMAT, **record}
        put_json(self.kept, found)
        self._put(self.record, json.dumps(found, indent=1, ensure_ascii=False) + "\n")

    def write_brief(self, text: str) -> None:
        self._put(self.brief, text)

    def _put(self, path: Path, text: str) -> None:
        with saying(path, "cannot write"):
            write_beside(path, text.encode("utf-8", "surrogateescape"), 0o600)

    def open_transcript(self) -> BinaryIO:
        """For appending, mode 0600."""
        how = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        with saying(self.transcript, "cannot write"), opened_folder(self.path) as folder:
            return os.fdopen(opener.descriptor(self.transcript.name, how, at=folder), "ab", buffering=0)

    def discard(self) -> None:
        """Remove the folder of a session that never began."""
        if self.made is None:
            return
        put_json(self.kept, {})
        with suppress(OSError, StoreError), opened_folder(self.path.parent) as folder:
            removal.remove_folder(folder, self.name, self.made)


class Sessions:
    """All of them; `lock` is held by the one loop that may run here."""

    def __init__(self, workspace: Workspace) -> None:
        self.folder = workspace.runs / "sessions"
        self.lock = workspace.private / "loop"
        self._kept = workspace.private / "session.json"

    def names(self) -> list[str]:
        try:
            return sorted(e.name for e in os.scandir(self.folder) if e.is_dir(follow_symlinks=False))
        except FileNotFoundError:
            return []
        except OSError as e:
            raise os_error(e, self.folder, "cannot list") from None

    def last(self) -> tuple[SessionFolder, dict[str, Any]] | None:
        """Return the session that a loop began last, and its record; None if none has a folder here."""
        record = get_json(self._kept)
        name = record.get("session") if isinstance(record, dict) else None
        if name not in self.names() or record.get("format") != FORMAT:
            return None
        return SessionFolder(self.folder / name, self._kept), record

    def new(self, name: str) -> SessionFolder:
        """Return a new folder. StoreError if the name is taken."""
        path = self.folder / name
        make_folder(self.folder)
        make_folder(self._kept.parent)
        with saying(path, "cannot make the folder"), opened_folder(self.folder) as folder:
            os.mkdir(name, 0o700, dir_fd=folder)
            return SessionFolder(path, self._kept, removal.identity_at(folder, name))
