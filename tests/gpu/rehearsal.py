"""The first contact without a GPU: `python -m tests.gpu.rehearsal [PART…]`.

Stand-ins for NVIDIA's libraries and for nvidia-smi take the place of the driver. A training on the CPU takes
that of one on the GPU; while it computes, the GPU of the stand-ins is busy. What it records is no evidence.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.gpu.parts import ROOT
from tests.support import cuda

SMI = Path(__file__).with_name("standin_smi.py")


def environment(folder: Path) -> dict[str, str]:
    """The variables of a machine whose GPU is the stand-ins', which write into `folder`."""
    command = folder / "bin" / "nvidia-smi"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} {SMI} "$@"\n')
    command.chmod(0o755)
    path = f"{command.parent}{os.pathsep}{os.environ['PATH']}"
    locks = {"GPUDEBUG_LOCK_DIR": str(folder), "OMP_NUM_THREADS": "1"}
    return cuda.standin(folder) | locks | {"PATH": path, "GPU_ACCOUNT": str(folder / "account")}


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="rehearsal-") as folder:
        argv = [sys.executable, "-m", "tests.gpu", "--rehearse", *sys.argv[1:]]
        return subprocess.run(argv, cwd=ROOT, env=environment(Path(folder)), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
