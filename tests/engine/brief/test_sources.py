"""The files that a training command names: what lies in the repository, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpudebug.engine.brief.sources import by_folder, named_files, placed


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    for name in ("train.py", "pkg/cli.py", "pkg/__main__.py", "sub/run.sh", "conf/a.yaml", "python"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")
    (tmp_path / "outside.py").write_text("x")
    os.symlink(tmp_path / "outside.py", root / "link.py")
    return root


@pytest.mark.parametrize(
    ("command", "cwd", "found"),
    [
        ("python train.py --lr=1", ".", ["train.py"]),
        ("./python -m pkg.cli", ".", ["pkg/cli.py"]),
        ("python -m pkg", ".", ["pkg/__main__.py"]),
        (
            "torchrun --nproc=2 train.py --config=conf/a.yaml --config conf/a.yaml",
            ".",
            ["train.py", "conf/a.yaml"],
        ),
        ("bash run.sh ../train.py", "sub", ["sub/run.sh", "train.py"]),
        ("python ../outside.py link.py missing.py /etc/passwd", ".", []),
        ("lerobot-train --steps=2", ".", []),
        ("python conf", ".", []),
        (f"python {'x' * 5000}.py {'../' * 400}a.py", ".", []),
    ],
)
def test_which_files_a_command_names(root: Path, command: str, cwd: str, found: list[str]) -> None:
    assert named_files(root, cwd, command.split()) == found


def test_a_shell_command_is_one_word(root: Path) -> None:
    assert named_files(root, ".", ["/bin/sh", "-c", "cd . && python train.py"]) == ["train.py"]


def test_only_so_many_are_named(root: Path) -> None:
    for n in range(9):
        (root / f"f{n}.py").write_text("x")
    assert named_files(root, ".", [f"f{n}.py" for n in range(9)]) == [f"f{n}.py" for n in range(5)]


def test_the_file_where_the_cause_was_seen_is_first_with_its_line(root: Path) -> None:
    (root / "sub/deep").mkdir()
    (root / "sub/deep/loader.py").write_text("x")
    known = ["train.py", "lib/deep/loader.py", "lib/deep/model.py"]
    seen = [("deep/loader.py", 31), ("train.py", None), ("sub/deep/loader.py", 7), ("torch/x.py", 1)]
    lines = placed(root, seen, known)
    assert lines == {"lib/deep/loader.py": 31, "train.py": None, "sub/deep/loader.py": 7}
    assert by_folder([*lines, "lib/deep/model.py"], lines) == [
        ("lib/deep/{loader.py,model.py}", ["loader.py:31"]),
        ("train.py", ["train.py"]),
        ("sub/deep/loader.py", ["loader.py:7"]),
    ]
