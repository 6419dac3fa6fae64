"""Build hook: a wheel and an sdist carry the commit that they were made of, for `gpudebug --version`."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CommitHook(BuildHookInterface):  # type: ignore[type-arg]
    """Add the commit of a git checkout, or what an sdist brought along; an editable install has none."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        place = Path(self.root, "orchestrator", "commit.txt")
        if not place.exists() and not (place := self._asked()):
            return
        if self.target_name == "sdist":
            build_data["force_include"][str(place)] = "orchestrator/commit.txt"
        else:
            build_data["extra_metadata"][str(place)] = "commit.txt"

    def _asked(self) -> Path | None:
        """Return a file with what git says; None outside of a checkout, also in one of another project."""
        if not Path(self.root, ".git").exists():
            return None
        words = ["git", "-C", self.root, "rev-parse", "HEAD"]
        try:
            commit = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError):
            return None
        # Until the build's process ends: the archive is written after this.
        self._made = tempfile.NamedTemporaryFile("w", suffix=".txt")  # noqa: SIM115
        self._made.write(commit)
        self._made.flush()
        return Path(self._made.name)
