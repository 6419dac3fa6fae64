"""What is put into a training's environment so that its Python tells what it imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpudebug.edges import launcher


@pytest.mark.parametrize(
    ("theirs", "behind"),
    [
        (None, []),
        ("", []),
        ("/x", ["/x"]),
        ("/x:/y", ["/x", "/y"]),
        (":/x", ["", "/x"]),
        ("/x:", ["/x", ""]),
    ],
)
def test_the_users_python_path_stays_as_it_is_behind_ours(
    tmp_path: Path, theirs: str | None, behind: list[str]
) -> None:
    env = {"HOME": "/home/u"} if theirs is None else {"HOME": "/home/u", "PYTHONPATH": theirs}
    found = launcher.inject(env, tmp_path, [], [])
    ours, *rest = found["PYTHONPATH"].split(os.pathsep)
    assert rest == behind
    assert [p.name for p in Path(ours).glob("*.py")] == ["sitecustomize.py"]
    assert found.keys() - env.keys() <= {"PYTHONPATH", "GPUDEBUG_TREES", "GPUDEBUG_PROBE", "GPUDEBUG_PROFILE"}
    assert found["HOME"] == "/home/u"


def test_what_the_user_has_set_stands(tmp_path: Path) -> None:
    names = ("GPUDEBUG_PROBE", "GPUDEBUG_PROFILE", "GPUDEBUG_TREES")
    asked = launcher.inject({}, tmp_path)
    assert [asked[name] for name in names] == ["1", "sections.json", str(tmp_path)]
    asked = launcher.inject({"GPUDEBUG_PROBE": "0", "GPUDEBUG_PROFILE": "/x/mine.json"})
    assert [asked.get(name) for name in names] == ["0", "/x/mine.json", None]


@pytest.mark.parametrize("theirs", [None, "", ":/x", "/x:"])
def test_python_searches_where_it_would_without_ours(tmp_path: Path, theirs: str | None) -> None:
    env = {"PATH": os.environ["PATH"]} | ({} if theirs is None else {"PYTHONPATH": theirs})
    code = "import sys; print([entry for entry in sys.path if not entry.endswith('/training/shim')])"
    paths = [
        subprocess.run(
            [sys.executable, "-c", code], env=each, cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout
        for each in (env, launcher.inject(env, tmp_path, [], []))
    ]
    assert paths[0] == paths[1]


def test_folders_are_told_resolved_with_the_tested_one_first(hostile: Path) -> None:
    tree, other, runs = (hostile / name for name in ("100%:tree", "other", "runs"))
    for folder in (tree, other, runs):
        folder.mkdir()
    (hostile / "link").symlink_to(other)
    said = launcher.inject({}, tree, [hostile / "link", other, tree], [runs])["GPUDEBUG_TREES"]
    entries = [entry.replace("%3A", ":").replace("%25", "%") for entry in said.split(":")]
    assert entries == [str(tree), str(other), f"-{runs}"]
