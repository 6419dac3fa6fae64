"""What a program's source says without being run."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.catalogue.program import look, neighbours, scripts


@pytest.mark.parametrize(
    ("command", "paths"),
    [
        ("python train.py --a", ("train.py",)),
        ("torchrun --nproc_per_node 2 src/train.py", ("src/train.py",)),
        ("uv run python -u train.py", ("train.py",)),
        (
            "python -m pkg.train",
            ("pkg/train.py", "pkg/train/__main__.py", "src/pkg/train.py", "src/pkg/train/__main__.py"),
        ),
        ("lerobot-train --steps=5", ()),
        ("python -c 'import x'", ()),
        ("", ()),
    ],
)
def test_the_script_that_a_command_names(command: str, paths: tuple[str, ...]) -> None:
    assert scripts(shlex.split(command)) == paths


@pytest.mark.parametrize(
    ("source", "uses"),
    [
        ("from transformers import Trainer as T", {"transformers.Trainer"}),
        ("import lightning as L\nL.Trainer()", {"lightning", "lightning.Trainer"}),
        ("import lightning.pytorch\nlightning.pytorch.Trainer()", {"lightning.pytorch.Trainer"}),
        ("from lightning import pytorch as pl\npl.Trainer(max_steps=1)", {"lightning.pytorch.Trainer"}),
        ("def f():\n    from accelerate import Accelerator", {"accelerate.Accelerator"}),
        ("from .mine import Trainer", set()),
        ("x.Trainer()", set()),
    ],
)
def test_what_a_source_uses(source: str, uses: set[str]) -> None:
    assert look("t.py", [source]).uses >= uses
    assert uses or not look("t.py", [source]).uses


def test_settings_are_numbers_or_options() -> None:
    found = look("t.py", ["import a\na.B(steps=200, name='x', every=args.log_every, other=f(), **more)"])
    assert found.calls["a.B"] == {"steps": 200, "name": "x"}
    assert found.options_of["a.B"] == {"every": "log_every"}
    assert found.computed["a.B"] == {"other", "**"}


@pytest.mark.parametrize(
    ("lines", "value"),
    [
        ("N = 5", 5),
        ("N: int = 5", 5),
        ("N = 5\nN = 6", None),
        ("N = 5\nfor N in range(3): pass", None),
        ("N = 5\ndef f(N): pass", None),
        ("if x:\n    N = 5", None),
        ("N = f()", None),
        ("from b import N", None),
    ],
)
def test_a_name_that_is_bound_once_is_its_value(lines: str, value: int | None) -> None:
    found = look("t.py", [f"import a\n{lines}\na.B(every=N)"])
    assert found.calls["a.B"] == ({} if value is None else {"every": value})
    assert found.computed["a.B"] == (frozenset({"every"}) if value is None else frozenset())


def test_the_files_beside_a_script() -> None:
    source = "import os, options\nfrom models.net import Net\nfrom . import helper\nfrom .data import load"
    assert set(neighbours(source, "src/train.py")) == {
        "src/os.py",
        "src/options.py",
        "src/models.py",
        "src/helper.py",
        "src/data.py",
    }


def test_the_scripts_own_options_come_before_its_neighbours() -> None:
    found = look("t.py", ["p.add_argument('--n', default=1)", "p.add_argument('--n', default=2)", "broken("])
    assert found.options["n"].default == 1


@given(st.text(max_size=60))
def test_any_text_can_be_looked_at(source: str) -> None:
    assert look("t.py", [source]).path == "t.py"
    assert all(name.endswith(".py") for name in neighbours(source, "t.py"))
