"""Where a process runs and what it may use."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from tests.support.probed import PROBE

sys.path.append(str(PROBE))

from gpudebug_probe import surroundings


@pytest.mark.parametrize(
    ("text", "cores"),
    [
        ("150000 100000\n", 1.5),
        ("max 100000\n", None),
        ("", None),
        (None, None),
        ("1 0", None),
        ("a b", None),
    ],
)
def test_a_quota_of_the_control_group_is_in_cores(text: str | None, cores: float | None) -> None:
    assert surroundings._quota(text) == cores


def test_the_smaller_of_affinity_and_quota_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    for quota, cores in (("50000 100000", 0.5), ("900000 100000", 4.0), (None, 4.0)):
        monkeypatch.setattr(surroundings, "_read", lambda _, quota=quota: quota)
        assert surroundings.cores() == cores


def test_what_is_not_set_is_unknown_and_slurm_names_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in surroundings.VARIABLES.values():
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SLURMD_NODENAME", "gpu017")
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "8" * 999)
    found = surroundings.surroundings()
    assert (found["node"], found["visible"], found["omp"]) == ("gpu017", None, None)
    assert len(found["slurm_cpus"]) == surroundings.LONGEST
    monkeypatch.delenv("SLURMD_NODENAME")
    assert surroundings.surroundings()["node"] == os.uname().nodename


def test_processes_of_one_number_are_told_apart_by_their_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURMD_NODENAME", raising=False)
    here = surroundings.host()
    assert here == surroundings.host()
    monkeypatch.setenv("SLURMD_NODENAME", "gpu017")
    slurm = surroundings.host()
    # A second host whose name is the same, as a container's may be.
    monkeypatch.setattr(surroundings, "_boot", lambda: "another")
    booted = surroundings.host()
    stat = os.stat

    class Spaced:
        st_ino = 7

    monkeypatch.setattr(os, "stat", lambda path: Spaced() if path == "/proc/self/ns/pid" else stat(path))
    assert len({here, slurm, booted, surroundings.host()}) == 4


def test_the_clock_is_named_by_the_boot() -> None:
    boot = Path("/proc/sys/kernel/random/boot_id")
    expected = boot.read_text().strip() if boot.is_file() else None
    assert surroundings.surroundings()["boot"] == expected


@pytest.mark.parametrize(
    ("cpus", "text"), [({0, 1, 2, 3, 8}, "0-3,8"), ({5}, "5"), ({1, 3, 4, 127}, "1,3-4,127"), (set(), "")]
)
def test_the_cpus_that_a_process_may_run_on(
    cpus: set[int], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: cpus)
    assert surroundings.affinity() == text
    assert surroundings.surroundings()["affinity"] == text
    monkeypatch.delattr(os, "sched_getaffinity")
    assert surroundings.affinity() is None
