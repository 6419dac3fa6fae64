"""The PTX of the two kernels, assembled by NVIDIA's own assembler where there is one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from gpudebug.edges.cudaload.driver import ptx


@pytest.mark.parametrize(
    ("capability", "target", "version"),
    [
        ((3, 7), 50, "4.0"),
        ((6, 1), 60, "5.0"),
        ((8, 9), 80, "7.0"),
        ((9, 0), 90, "7.8"),
        ((12, 0), 90, "7.8"),
    ],
)
def test_the_newest_target_that_the_gpu_can_run(
    capability: tuple[int, int], target: int, version: str
) -> None:
    assert ptx(*capability).splitlines()[:2] == [f".version {version}", f".target sm_{target}"]


@pytest.mark.parametrize("capability", [(7, 5), (8, 0), (9, 0), (10, 0), (12, 0)])
def test_an_assembler_takes_it(capability: tuple[int, int], tmp_path: Path) -> None:
    assembler = shutil.which("ptxas")
    if assembler is None:
        pytest.skip("no ptxas here")
    (tmp_path / "kernels.ptx").write_text(ptx(*capability))
    major, minor = capability
    done = subprocess.run(
        [assembler, f"-arch=sm_{major}{minor}", "-o", tmp_path / "out", tmp_path / "kernels.ptx"],
        capture_output=True,
        text=True,
        check=False,
    )
    if "is not defined for option" in done.stderr:
        pytest.skip(f"this ptxas does not know sm_{major}{minor}")
    assert done.returncode == 0, done.stderr
