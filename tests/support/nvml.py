"""A scripted NVIDIA driver for tests: compiles the stand-in and makes the environment that loads it.

A script is text: `count=2 period=0.1` about the driver, `gpu 1 util=15 power=250` about one GPU; a
value with `@T` holds from T seconds after the driver was loaded by the process. Keys of a GPU: util,
mem_util (percent), mem_used, mem_total (MiB), power (W), sm_clock, mem_clock (MHz), temperature,
throttle (mask), mig (number of parts), linear=1 (interpolate), before (utilisation before the driver
was loaded), lost_at, handle_error, name (`_` for a space), uuid, power_limit (W), app_sm, app_mem (MHz),
link_gen, link_width, link_max (PCIe), nvlinks, nvlinks_up, nvlinks_asleep (how many links it has, are not
down, sleep),
procs (a file of PIDs, read at each call), procs_error. With `account=FILE` of the driver, what a script
does not say of utilisation, power, energy, memory and processes is what the stand-in of CUDA did (cuda.py).
Keys of the driver: count, driver, period, init_error, no_samples=1, dry=1 (no samples while a GPU is at
0 %), doubles=1, unsupported (memory, utilization, samples, power, clocks, temperature, throttle, energy,
mig_mode, processes, power_limit, app_clocks, link, nvlink), denied (the same names), lost_at, hang_at,
crash_at (-1: while loading) with hang_times and crash_times, error with error_at and error_until, slow
(seconds a call takes).
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent / "nvml_standin" / "nvml_standin.c"
ACCOUNT = SOURCE.with_name("account.h")
LIBRARY = "libnvidia-ml.so.1"


def uuid(index: int) -> str:
    """The stand-in's UUID of a GPU whose script names none."""
    return f"GPU-{0x5CA1AB1E + index:08x}-0000-4000-8000-00000000000{index}"


@functools.cache
def build(*defines: str) -> Path:
    """The folder that holds the compiled stand-in; skips the test where there is no C compiler."""
    return compiled(SOURCE, LIBRARY, *defines)


def compiled(source: Path, name: str, *defines: str) -> Path:
    """The folder that holds the library `name` made of `source`; skips the test without a C compiler."""
    compiler = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler: the driver stand-in cannot be built")
    digest = hashlib.sha256(source.read_bytes() + ACCOUNT.read_bytes() + repr(defines).encode()).hexdigest()[
        :16
    ]
    folder = Path(tempfile.gettempdir()) / f"gpudebug-driver-standin-{os.getuid()}-{digest}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        pytest.skip(f"{folder} belongs to another user")
    library = folder / name
    if not library.exists():
        beside = folder / f"{name}.{os.getpid()}"
        flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", *(f"-D{name}" for name in defines)]
        subprocess.run([compiler, *flags, "-o", beside, source], check=True)
        beside.replace(library)
    return folder


def standin(folder: Path, script: str, *defines: str) -> dict[str, str]:
    """The environment in which NVML answers by `script`, which is written into `folder`."""
    path = folder / "nvml-script"
    path.write_text(script)
    return environment(build(*defines), NVML_STANDIN=str(path))


def no_driver(folder: Path) -> dict[str, str]:
    """An environment without a driver, even on a machine that has one: its library cannot be loaded."""
    empty = folder / "no-driver"
    empty.mkdir(exist_ok=True)
    (empty / LIBRARY).touch()
    return environment(empty)


def environment(libraries: Path, **more: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("CUDA_")}
    path = [str(libraries), *filter(None, [kept.get("LD_LIBRARY_PATH")])]
    return {**kept, "LD_LIBRARY_PATH": os.pathsep.join(path), **more}
