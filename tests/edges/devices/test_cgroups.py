"""The control groups of a process."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpudebug.edges.devices import cgroups


def test_a_process_of_this_machine_has_folders_below_the_root() -> None:
    found = cgroups.folders("cpu", os.getpid())
    assert found == cgroups.folders("cpu")
    assert all(folder.is_relative_to(cgroups.ROOT) for folder in found)


def test_those_above_come_after_the_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cgroups, "lines", lambda _: ["3:cpu,cpuacct:/docker/7", "2:memory:/", "0::/user/7"])
    root = cgroups.ROOT
    assert cgroups.folders("cpu") == [
        root / "cpu,cpuacct" / "docker" / "7",
        root / "cpu,cpuacct" / "docker",
        root / "cpu,cpuacct",
        root / "user" / "7",
        root / "user",
        root,
    ]
    assert not cgroups.in_root("cpu")


def test_what_is_gone_has_none() -> None:
    assert cgroups.folders("cpu", 4_000_000) == []
    assert not cgroups.in_root("cpu", 4_000_000)
    assert cgroups.lines(Path("/proc/4000000/cgroup")) == []
