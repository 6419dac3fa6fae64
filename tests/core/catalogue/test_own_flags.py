"""The options that programs define for themselves, by every common way of defining them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.catalogue.own_flags import OwnFlag, own_flags

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
