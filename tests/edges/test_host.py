"""Facts about the host, asked of the machine itself."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from gpudebug.edges import host


def script(folder: Path, name: str, first: str) -> str:
    path = folder / name
    path.write_text(f"{first}\nprint(1)\n")
    path.chmod(0o755)
    return str(path)


def test_a_python_is_its_own_interpreter() -> None:
    assert host.find_interpreter(sys.executable, "") == sys.executable


@pytest.mark.parametrize("first", [f"#!{sys.executable}", f"#! {sys.executable} -u"])
def test_a_script_names_its_interpreter(tmp_path: Path, first: str) -> None:
    program = script(tmp_path, "train", first)
    assert host.find_interpreter(program, os.environ["PATH"]) == sys.executable


@pytest.mark.parametrize("first", ["#!/usr/bin/env python3", "#!/usr/bin/env -S python3 -u"])
def test_env_finds_it_on_the_path(tmp_path: Path, first: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "python3").symlink_to(sys.executable)
    program = script(tmp_path, "train", first)
    assert host.find_interpreter(program, os.environ["PATH"]) == str(tmp_path / "python3")


@pytest.mark.parametrize("first", ["#!/bin/sh", "", "#!", "\x7fELF"])
def test_what_is_no_python_has_none(tmp_path: Path, first: str) -> None:
    program = script(tmp_path, "train", first)
    assert host.find_interpreter(program, os.environ["PATH"]) is None


def test_a_program_that_cannot_be_read_has_none(tmp_path: Path) -> None:
    assert host.find_interpreter(str(tmp_path / "nothing"), "") is None


def test_another_binary_at_the_same_path_is_another_interpreter(tmp_path: Path) -> None:
    path = tmp_path / "python"
    shutil.copyfile(sys.executable, path)
    before = host.interpreter_identity(str(path))
    with path.open("ab") as f:
        f.write(b"\0")
    assert host.interpreter_identity(str(path)) != before
    assert host.interpreter_identity(None) == "none"
    assert host.interpreter_identity("/no/such/python") == "/no/such/python"


def test_the_quota_is_unknown_or_above_zero() -> None:
    quota = host.cpu_quota()
    assert quota is None or quota > 0


def test_the_host_and_its_disk(tmp_path: Path) -> None:
    assert host.host_name() == os.uname().nodename
    total = shutil.disk_usage(tmp_path).total / 2**20
    assert 0 < host.free_disk_mb(tmp_path) <= total


def test_the_boot_is_the_kernels_and_the_cores_are_those_that_are_allowed() -> None:
    assert host.boot_id() == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert set(host.allowed_cores()) == os.sched_getaffinity(0)
