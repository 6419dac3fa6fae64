"""Packages of a checkout, and where Python starts to look for them."""

from __future__ import annotations

import pytest

from gpudebug.core.command.packages import first_folder, top_packages


@pytest.mark.parametrize(
    ("paths", "found"),
    [
        ([], {}),
        (["train.py", "pkg/model.py"], {}),
        (["pkg/__init__.py", "pkg/model.py", "pkg/sub/__init__.py"], {"pkg": ("pkg",)}),
        (["src/pkg/__init__.py", "tests/__init__.py"], {"pkg": ("src/pkg",), "tests": ("tests",)}),
        (["a/src/pkg/__init__.py", "b/pkg/__init__.py"], {"pkg": ("a/src/pkg", "b/pkg")}),
        (["third/party/lib/deep/__init__.py", "no-name/__init__.py"], {}),
        (["__init__.py"], {}),
    ],
)
def test_packages_that_are_in_no_other(paths: list[str], found: dict[str, tuple[str, ...]]) -> None:
    assert top_packages(paths) == found


@pytest.mark.parametrize(
    ("command", "folder"),
    [
        ("python train.py --lr 1", "/repo"),
        ("python -u scripts/train.py", "/repo/scripts"),
        ("python /opt/train.py", "/opt"),
        ("python -m pkg.train --lr 1", "/repo"),
        ("torchrun --nproc 2 scripts/train.py", "/repo/scripts"),
        ("torchrun --nproc 2 -m pkg.train", "/repo"),
        ("lerobot-train --steps 3", "/venv/bin"),
    ],
)
def test_where_python_searches_first(command: str, folder: str) -> None:
    assert first_folder(command.split(), "/repo", "/venv/bin/lerobot-train") == folder
