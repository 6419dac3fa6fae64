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


def test_an_interpreter_says_its_version_and_packages() -> None:
    asked = host.ask_interpreter(sys.executable, dict(os.environ))
    assert asked.version == ".".join(map(str, sys.version_info[:3]))
    assert asked.packages["pytest"] == pytest.__version__


@pytest.mark.parametrize("answer", ["exit 1", "echo nonsense", "echo '[1]'", "echo '[\"3\", []]'", "echo 12"])
def test_one_that_does_not_answer_is_unknown(tmp_path: Path, answer: str) -> None:
    program = script(tmp_path, "python3", f"#!/bin/sh\n{answer}\nexit")
    asked = host.ask_interpreter(program, dict(os.environ))
    assert (asked.version, asked.packages) == ("", {})


def test_the_quota_is_unknown_or_above_zero() -> None:
    quota = host.cpu_quota()
    assert quota is None or quota > 0


def test_the_host_and_its_disk(tmp_path: Path) -> None:
    assert host.host_name() == os.uname().nodename
    total = shutil.disk_usage(tmp_path).total / 2**20
    assert 0 < host.free_disk_mb(tmp_path) <= total


def test_packages_are_found_and_not_imported(tmp_path: Path) -> None:
    for folder in ("own/pkg", "other/lib", "other/pkg"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "__init__.py").write_text("raise SystemExit(3)\n")
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "other")}
    names = ("pkg", "lib", "nowhere", "json")
    found = host.import_folders(sys.executable, env, str(tmp_path), str(tmp_path / "own"), names)
    assert found is not None
    assert found["pkg"] == str(tmp_path / "own" / "pkg")
    assert found["lib"] == str(tmp_path / "other" / "lib")
    assert "nowhere" not in found
    safe = host.import_folders(
        sys.executable, {**env, "PYTHONSAFEPATH": "1"}, str(tmp_path), str(tmp_path / "own"), names
    )
    expected = "other" if sys.version_info >= (3, 11) else "own"
    assert safe is not None
    assert safe["pkg"] == str(tmp_path / expected / "pkg")


def test_an_interpreter_that_does_not_answer_finds_nothing(tmp_path: Path) -> None:
    assert host.import_folders("/bin/false", {}, str(tmp_path), "", ("pkg",)) is None
    assert host.import_folders("/no/such/python", {}, str(tmp_path), "", ("pkg",)) is None
