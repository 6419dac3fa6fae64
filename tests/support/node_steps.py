"""An allocation of two nodes on this host: `srun` on PATH that runs a step's program here as node n1.

Each node has GPUs of its own by the stand-in of the driver. What the real `srun` does with a step's input,
output and end is in the tests that start a Slurm.
"""

from __future__ import annotations

import os
from pathlib import Path

from tests.support import nvml

_SRUN = """#!/bin/bash
printf '%s\\n' "$*" >> {folder}/calls
if [ "$1" = --version ]; then echo "slurm-wlm {version}"; exit; fi
while [ "${{1#-}}" != "$1" ]; do
  case "$1" in --nodelist=*) node="${{1#--nodelist=}}";; esac
  shift
done
{before}
export SLURMD_NODENAME="$node" NVML_STANDIN="{folder}/$node"
exec "$@"
"""
FIRST, OTHER = "GPU-aaaaaaaa-0000-4000-8000-000000000000", "GPU-bbbbbbbb-0000-4000-8000-000000000000"


class TwoNodes:
    """`env` is that of the batch script on n0; n1's GPU has the script `other`. `before` is shell that runs
    on n1 ahead of a step's program."""

    def __init__(self, folder: Path, other: str, *, before: str = "", version: str = "22.05.8") -> None:
        self.folder = folder
        (folder / "bin").mkdir(parents=True)
        (folder / "n0").write_text(f"gpu 0 uuid={FIRST} util=80 power=300\n")
        (folder / "n1").write_text(f"gpu 0 uuid={OTHER} {other}\n")
        srun = folder / "bin" / "srun"
        srun.write_text(_SRUN.format(folder=folder, before=before, version=version))
        srun.chmod(0o755)
        self.env = {
            **nvml.environment(nvml.build(), NVML_STANDIN=str(folder / "n0")),
            "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "SLURM_JOB_ID": "7",
            "SLURMD_NODENAME": "n0",
            "SLURM_JOB_NODELIST": "n[0-1]",
        }

    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()
