"""What a program's source says without being run."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.catalogue.program import OwnFlag, look, neighbours, own_flags, scripts


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


ARGPARSE = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("data")
parser.add_argument("-j", "--num-workers", type=int, default=0)
parser.add_argument("--lr", default=1e-3, type=float)
parser.add_argument("--shift", default=-2)
parser.add_argument("--device")
parser.add_argument("--amp", action="store_true")
parser.add_argument("--no-cache", action="store_false")
parser.add_argument("--pin", action=argparse.BooleanOptionalAction, default=True)
parser.add_argument("--verbose", action="count")
parser.add_argument("--fast", type=str2bool, default=False)
parser.add_argument("-b", type=int, default=BATCH)
"""
CLICK = """
import click
@click.command()
@click.option("--workers", default=2, help="…")
@click.option("--shout/--no-shout", default=False)
@click.option("--fast", is_flag=True)
def main(workers, shout, fast): ...
"""
TYPER = """
import typer
from typing import Annotated
def main(
    batch_size: Annotated[int, typer.Option(help="…")] = 8,
    fast: bool = typer.Option(False),
    name: str = "x",
    rate: Annotated[float, typer.Option("--learning-rate")] = 0.1,
): ...
typer.run(main)
"""
DATACLASS = """
import tyro
from dataclasses import dataclass, field
@dataclass(frozen=True)
class Config:
    workers: int = 0
    name: str | None = None
    fast: bool = False
    lr: float = field(default=0.1)
    size: Optional[int] = 3
    many: list[int] = field(default_factory=list)
class Other:
    hidden: int = 3
cfg = tyro.cli(Config)
"""
ABSL = """
from absl import flags
flags.DEFINE_integer("workers", 0, "…")
flags.DEFINE_bool("fast", False, "…")
flags.DEFINE_list("names", [], "…")
"""
CONSTANTS = """
batch_size = 12
dataset = "owt"
inner = make()
exec(open("configurator.py").read())
"""
VARIABLES = """
import os
workers = int(os.environ.get("LOADER_WORKERS", "0"))
level = os.getenv("LEVEL")
path = os.environ["DATA"]
os.environ["OMP_NUM_THREADS"] = "1"
"""


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            ARGPARSE,
            [
                OwnFlag("--num-workers", 0, "int", others=("-j",)),
                OwnFlag("--lr", 1e-3, "float"),
                OwnFlag("--shift", -2, "int"),
                OwnFlag("--device", None, "str"),
                OwnFlag("--amp", False, "switch"),
                OwnFlag("--no-cache", True, "unset_switch"),
                OwnFlag("--pin", True, "pair"),
                OwnFlag("--fast", False, "bool"),
                OwnFlag("-b", None, "int"),
            ],
        ),
        (
            CLICK,
            [
                OwnFlag("--workers", 2, "int"),
                OwnFlag("--shout", False, "pair"),
                OwnFlag("--fast", False, "switch"),
            ],
        ),
        (
            TYPER,
            [
                OwnFlag("--batch-size", 8, "int"),
                OwnFlag("--fast", False, "pair"),
                OwnFlag("--learning-rate", 0.1, "float"),
            ],
        ),
        (
            DATACLASS,
            [
                OwnFlag("--workers", 0, "int"),
                OwnFlag("--name", None, "str"),
                OwnFlag("--fast", False, "bool"),
                OwnFlag("--lr", 0.1, "float"),
                OwnFlag("--size", 3, "int"),
                OwnFlag("--many", None, "str"),
            ],
        ),
        (ABSL, [OwnFlag("--workers", 0, "int"), OwnFlag("--fast", False, "bool")]),
        (CONSTANTS, [OwnFlag("--batch_size", 12, "int"), OwnFlag("--dataset", "owt", "str")]),
        (
            VARIABLES,
            [
                OwnFlag("LOADER_WORKERS", "0", "str", variable=True),
                OwnFlag("LEVEL", None, "str", variable=True),
                OwnFlag("DATA", None, "str", variable=True),
            ],
        ),
        ("add = p.add_argument\nadd('--workers', type=int, default=1)", [OwnFlag("--workers", 1, "int")]),
        ("run('--workers', check=True)", []),
        (
            "p.add_argument('--on', choices=['a', 1])\np.add_argument('--of', choices=[x])",
            [OwnFlag("--on", None, "str", choices=("a", "1")), OwnFlag("--of", None, "str")],
        ),
        ("def broken(", []),
        ("x = 1\0", []),
        ("parser.add_argument(name, default=1)", []),
    ],
    ids=[
        "argparse",
        "click",
        "typer",
        "dataclass",
        "absl",
        "constants",
        "variables",
        "alias",
        "call",
        "choices",
        "broken",
        "nul",
        "computed",
    ],
)
def test_options_are_found_in_the_source(source: str, expected: list[OwnFlag]) -> None:
    assert sorted(own_flags(source).values(), key=str) == sorted(expected, key=str)


def test_they_are_known_by_one_spelling() -> None:
    assert set(own_flags(ARGPARSE)) >= {"num_workers", "no_cache"}


@given(st.text(max_size=80))
def test_text_that_defines_no_option_has_none(source: str) -> None:
    assert own_flags(source) == {}


def test_nothing_is_warned_of(recwarn: pytest.WarningsRecorder) -> None:
    own_flags("p.add_argument('--x', default='\\d')\nassert (1, 'x')")
    assert not recwarn.list
