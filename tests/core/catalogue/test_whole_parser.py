from __future__ import annotations

import pytest

from gpudebug.core.catalogue.program import look
from gpudebug.core.catalogue.whole_parser import read_whole

PLAIN = """
import argparse
import data

def options():
    parser = argparse.ArgumentParser(description="Train")
    group = parser.add_argument_group("loader")
    group.add_argument("-j", "--workers", type=int, default=4)
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--fast", action=argparse.BooleanOptionalAction)
    parser.set_defaults(amp=True)
    return parser.parse_args()
"""


def test_a_plain_parser_is_read_as_a_whole() -> None:
    assert read_whole([PLAIN, "import os\n"])
    assert look("train.py", [PLAIN]).whole
    assert not look("train.py", []).whole


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    return parser.parse_args()", "    return parser.parse_known_args()"),
        ("    return parser.parse_args()", "    data.add_options(parser)\n    return parser.parse_args()"),
        ("    return parser.parse_args()", "    return parser"),
        ("    parser.set_defaults(amp=True)", "    for name in data.NAMES: parser.add_argument(name)"),
        ("    parser.set_defaults(amp=True)", "    parser.add_argument('--x', **data.MORE)"),
        ("    parser.set_defaults(amp=True)", "    parser.add_argument('--x', action=data.Adds)"),
        ("    parser.set_defaults(amp=True)", "    parser.add_subparsers(dest='what')"),
        ('(description="Train")', "(parents=[data.parser])"),
        ('(description="Train")', "(**data.SETTINGS)"),
        ('(description="Train")', "(fromfile_prefix_chars='@')"),
        ("import data", "import sys\nMORE = sys.argv[1:]"),
        ("import argparse", "import jsonargparse as argparse"),
        ("def options():", "other = argparse.ArgumentParser()\n\ndef options():"),
        ("    group.add_argument", "    data.fill(group)\n    group.add_argument"),
        ("def options():", "def options(:"),
        ("parser.parse_args()", "parser.parse_args([])"),
        ("parser.parse_args()", "parser.parse_args(args=data.WORDS)"),
        ("parser.parse_args()", "parser.parse_args(), parser.parse_args([])"),
        ("parser.parse_args()", "data.reader.parse_args()"),
        ("parser.parse_args()", "parser.parse_args([]), OmegaConf.from_cli()"),
        ("parser.parse_args()", "parser.parse_args(), OmegaConf.from_cli()"),
        ("argparse.ArgumentParser(", "data.ArgumentParser("),
        ("argparse.ArgumentParser(", "data.MyArgumentParser("),
        ('argparse.ArgumentParser(description="Train")', "HfArgumentParser(data.Args)"),
        ('(description="Train")', "(data.Args)"),
        ("import argparse", "from data import argparse"),
        ("import argparse", "import argparse, data\nargparse = data"),
        ("import argparse", "import argparse\nclass Own(argparse.ArgumentParser): pass"),
        ("import argparse", "import argparse\nargparse.ArgumentParser = print"),
        ("import data", "from data import *"),
        ("import data", "from sys import argv"),
        ("import data", "import tyro"),
        ("import data", "from absl import flags"),
    ],
)
def test_what_may_know_more_is_not(old: str, new: str) -> None:
    assert old in PLAIN
    assert not read_whole([PLAIN.replace(old, new)])


@pytest.mark.parametrize(
    ("statement", "made"),
    [
        ("import argparse as ap", "ap.ArgumentParser("),
        ("from argparse import ArgumentParser", "ArgumentParser("),
        ("from argparse import ArgumentParser as Options", "Options("),
        ("import argparse", "argparse.ArgumentParser('train', "),
    ],
)
def test_the_plain_parser_under_whatever_name_it_is_imported(statement: str, made: str) -> None:
    source = PLAIN.replace("argparse.BooleanOptionalAction", "'store_true'")
    source = source.replace("argparse.ArgumentParser(", made).replace("import argparse", statement)
    assert read_whole([source])
    # One of the same name from elsewhere is another.
    assert not read_whole([source.replace(statement, statement.replace("argparse", "data"))])


OWN = """
class ArgumentParser(argparse.ArgumentParser):
    def __init__(self):
        super().__init__()
        self.add_argument("--workers")
"""


def test_a_parser_of_its_own_kind_may_know_more() -> None:
    named = PLAIN.replace("argparse.ArgumentParser(description=", "ArgumentParser(description=")
    assert not read_whole([named.replace("import data", OWN)])
    assert not read_whole([named.replace("import data", "from data import ArgumentParser"), OWN])
    assert not read_whole([PLAIN, "import argparse" + OWN])


@pytest.mark.parametrize("beside", ["parser.parse_known_args()", "p = ArgumentParser()", "def broken(:"])
def test_a_file_beside_it_may_know_more(beside: str) -> None:
    assert not read_whole([PLAIN, beside])


def test_a_program_without_a_parser_says_nothing() -> None:
    assert not read_whole([])
    assert not read_whole(["print(1)"])
