"""Who had filled the memory when the kernel killed: the job itself, or others."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpudebug.edges.launcher.warden.memory import MIB, OwnLimit, folders

LIMIT = 1000 * MIB


def second(group: Path, kills: int, full: int, limit: str = str(LIMIT)) -> None:
    group.mkdir(parents=True, exist_ok=True)
    (group / "memory.events").write_text(f"low 0\nmax {full}\noom {full}\noom_kill {kills}\n")
    (group / "memory.max").write_text(f"{limit}\n")


def first(group: Path, kills: int, full: int, limit: int = LIMIT) -> None:
    group.mkdir(parents=True, exist_ok=True)
    (group / "memory.oom_control").write_text(f"oom_kill_disable 0\nunder_oom 0\noom_kill {kills}\n")
    (group / "memory.failcnt").write_text(f"{full}\n")
    (group / "memory.limit_in_bytes").write_text(f"{limit}\n")


@pytest.mark.parametrize("version", [first, second])
@pytest.mark.parametrize(
    ("kills", "full", "peak", "expected"),
    [
        pytest.param(1, 3, 900, 1000.0, id="the job filled it"),
        pytest.param(0, 3, 900, None, id="full, and none was killed"),
        pytest.param(1, 0, 900, None, id="the host had no memory left"),
        pytest.param(1, 3, 300, None, id="others filled it"),
    ],
)
def test_whose_memory_it_was(
    tmp_path: Path, version: object, kills: int, full: int, peak: int, expected: float | None
) -> None:
    assert callable(version)
    version(tmp_path, 2, 5)
    seen = OwnLimit([str(tmp_path)])
    version(tmp_path, 2 + kills, 5 + full)
    assert seen.reached_mb(peak * MIB) == expected


def test_a_limit_of_a_group_above_counts_and_none_is_no_limit(tmp_path: Path) -> None:
    above, own = tmp_path / "a", tmp_path / "a" / "b"
    second(above, 0, 0)
    second(own, 0, 0, limit="max")
    seen = OwnLimit([str(own), str(above)])
    second(above, 1, 1)
    second(own, 1, 0, limit="max")
    assert seen.reached_mb(900 * MIB) == 1000.0
    second(above, 1, 1, limit="max")
    assert seen.reached_mb(900 * MIB) is None


def test_a_machine_without_groups_tells_nothing(tmp_path: Path) -> None:
    assert OwnLimit([str(tmp_path / "none")]).reached_mb(900 * MIB) is None
    assert all(name.startswith("/sys/fs/cgroup") for name in folders())


@pytest.fixture
def limited() -> Iterator[Path]:
    """A memory group of ours, with 64 MB."""
    own = next((Path(name) for name in folders() if (Path(name) / "memory.oom_control").exists()), None)
    if own is None or not os.access(own, os.W_OK):
        pytest.skip("no memory control group of version 1 may be made here")
    group = own / f"gpudebug-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError:
        pytest.skip("no memory control group may be made here")
    try:
        (group / "memory.limit_in_bytes").write_text(str(64 * MIB))
        yield group
    finally:
        group.rmdir()


def test_a_process_that_really_fills_its_limit(limited: Path) -> None:
    seen = OwnLimit([str(limited)])
    program = f"open('{limited}/cgroup.procs', 'w').write('0'); bytearray(200 << 20)[::4096] = b'1' * 51200"
    done = subprocess.run([sys.executable, "-c", program], check=False)
    assert done.returncode == -9
    assert seen.reached_mb() == 64.0
