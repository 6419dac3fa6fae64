"""A scripted GPU for tests: a stand-in for CUDA's driver library beside the one for NVML.

Kernels of the stand-in take the time that they are told and keep an account, from which NVML's stand-in
reports utilisation, power, energy, memory and processes. Keys of its script: count, order (CUDA's own order
of the GPUs, as in `1,0`), init_error, launch_error, fail (a function), bad_ptx=1, corrupt (1: the first byte
of a copy, 2: its last), slow (times a kernel takes longer than it is told), vanish_at and crash_at (s after
the library was loaded).
"""

from __future__ import annotations

import os
from pathlib import Path

from tests.support import nvml

SOURCE = Path(__file__).parent / "cuda_standin" / "cuda_standin.c"
LIBRARY = "libcuda.so.1"


def build(*defines: str) -> Path:
    """The folder that holds the compiled stand-in; skips the test where there is no C compiler."""
    return nvml.compiled(SOURCE, LIBRARY, *defines)


def standin(
    folder: Path, cuda: str = "", driver: str = "", *, count: int = 1, older: bool = False
) -> dict[str, str]:
    """The environment of a machine with `count` GPUs; `cuda` and `driver` are more of the two scripts.

    An `older` driver has no function that came with CUDA 11.
    """
    account, path = folder / "account", folder / "cuda-script"
    path.write_text(f"account={account} count={count} {cuda}\n")
    env = nvml.standin(folder, f"account={account} count={count}\n{driver}\n")
    libraries = os.pathsep.join((str(build(*(["OLD_DRIVER"] if older else []))), env["LD_LIBRARY_PATH"]))
    return {**env, "LD_LIBRARY_PATH": libraries, "CUDA_STANDIN": str(path)}
