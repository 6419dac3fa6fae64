"""A helper process runs our code and none of the user's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from gpudebug.core.text.isolation import isolated_argv


def run(folder: Path, argv: tuple[str, ...]) -> str:
    env = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(
        argv, cwd=folder, env=env, capture_output=True, text=True, check=True
    ).stdout.strip()


def test_modules_of_the_working_folder_and_of_pythonpath_stay_out(tmp_path: Path) -> None:
    for name in ("json", "sitecustomize", "usercustomize", "helper"):
        (tmp_path / f"{name}.py").write_text("print('the user was here')")
    ours = tmp_path / "ours"
    ours.mkdir()
    (ours / "helper.py").write_text("print('ours')")
    assert run(tmp_path, isolated_argv(sys.executable, [str(ours)], "import json, helper")) == "ours"


def test_no_folder_can_hide_a_module_of_the_standard_library(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("print('hidden')")
    argv = isolated_argv(sys.executable, [str(tmp_path)], "import json; print(json.dumps(1))")
    assert run(tmp_path, argv) == "1"


def test_folders_with_hostile_names_are_quoted(tmp_path: Path) -> None:
    folder = tmp_path / 'it\'s "a" \\ place; with\nall'
    folder.mkdir()
    (folder / "helper.py").write_text("print('found')")
    assert (
        run(tmp_path, isolated_argv(sys.executable, [str(folder), str(folder)], "import helper")) == "found"
    )
