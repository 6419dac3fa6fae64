"""Stand-ins for Slurm's commands: what each prints is a file, what each was asked is another."""

from __future__ import annotations

import os
from pathlib import Path

_COMMAND = """#!/bin/sh
printf '%s\\n' "{name} $*" >> {folder}/calls
{stdin}
[ -e {folder}/{name}.err ] && cat {folder}/{name}.err >&2
[ -e {folder}/{name}.out ] && cat {folder}/{name}.out
exit $(cat {folder}/{name}.status 2>/dev/null || echo 0)
"""
COMMANDS = ("sbatch", "srun", "squeue", "sacct", "scontrol", "scancel", "sinfo")


class FakeSlurm:
    """Commands in a folder of their own, which has to be first in PATH."""

    def __init__(self, folder: Path, *names: str) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        for name in names or COMMANDS:
            stdin = f"cat > {folder}/{name}.stdin; env > {folder}/{name}.env" if name == "sbatch" else ""
            path = folder / name
            path.write_text(_COMMAND.format(name=name, folder=folder, stdin=stdin))
            path.chmod(0o755)

    @property
    def path(self) -> str:
        """PATH with these commands, and of the rest what a shell needs."""
        return f"{self.folder}{os.pathsep}/usr/bin{os.pathsep}/bin"

    def says(self, name: str, out: str = "", *, error: str = "", status: int = 0) -> None:
        for suffix, text in (("out", out), ("err", error), ("status", str(status))):
            (self.folder / f"{name}.{suffix}").write_text(text)

    def calls(self) -> list[str]:
        """Each command that was run, with its arguments."""
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []

    def got(self, name: str, what: str = "stdin") -> str:
        return (self.folder / f"{name}.{what}").read_text()
