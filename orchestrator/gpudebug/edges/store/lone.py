"""Run folders of a command that needs no campaign: `NAME-N` in the folder where it was called."""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path

from gpudebug.edges import temporary
from gpudebug.edges.opener import saying
from gpudebug.edges.store.files import opened_folder
from gpudebug.edges.store.folders import RunFolder, Scrub
from gpudebug.edges.store.workspace import Workspace

IGNORED, IGNORES = ".gitignore", b"*\n"
"""What keeps a folder of evidence in a repository of the user's out of git's sight."""


class LoneFolders(Workspace):
    """Run folders that lie in `folder` itself, named `prefix` and the first free number."""

    def __init__(self, folder: Path, prefix: str, scrub: Scrub = lambda text: text) -> None:
        super().__init__(folder, scrub)
        self.runs = folder
        self.prefix = prefix

    def new_run(self, label: str) -> RunFolder:
        """Return a new folder `prefix-N`, whatever the run's label is. StoreError if it cannot be made."""
        with saying(self.runs, "cannot make a run folder"), opened_folder(self.runs) as folder:
            for number in count(1):
                name = f"{self.prefix}-{number}"
                if os.path.lexists(self.runs / name):
                    continue
                try:
                    os.mkdir(name, 0o700, dir_fd=folder)
                except FileExistsError:
                    continue
                temporary.confirm(folder)
                made = self._made(folder, name)
                made.keep(IGNORED, IGNORES)
                return made
        raise AssertionError("unreachable")
