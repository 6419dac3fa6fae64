"""Options with several names are one knob."""

from __future__ import annotations

import shlex

import pytest

from gpudebug.core.change import intervention
from gpudebug.core.command import synonyms
from gpudebug.core.command.batch import flags

GROUPS = (("--workers", "-j"), ("--batch-size", "-b", "--bs"))


@pytest.mark.parametrize(
    ("change", "command", "expected"),
    [
        ("--set --workers=4", "python t.py data -j 0", "python t.py data -j 4"),
        ("--set --workers=4", "python t.py -j0 data", "python t.py -j4 data"),
        ("--set -j=4", "python t.py --workers=0", "python t.py --workers=4"),
        ("--set --workers=4", "python t.py -b 32", "python t.py -b 32 --workers 4"),
        ("--set --batch_size=64", "python t.py -b32", "python t.py -b64"),
        ("--unset --workers", "python t.py -j 0 x", "python t.py x"),
        ("--set --save=False", "yolo train data=a.yaml save=True", "yolo train data=a.yaml save=False"),
        ("--set max_steps=9", "python t.py +max_steps=5", "python t.py +max_steps=9"),
    ],
)
def test_a_change_replaces_whatever_name_the_command_has(change: str, command: str, expected: str) -> None:
    argv = shlex.split(command)
    made = intervention.parse(change).spelled(argv, GROUPS).apply(argv, {})
    assert shlex.join(made.argv) == expected


@pytest.mark.parametrize(
    ("change", "locked"),
    [
        ("--set -j=4", ["--workers"]),
        ("--set --workers=4", ["-j"]),
        ("--set -b=4", ["bs"]),
        ("--set -x=4", []),
    ],
)
def test_a_lock_covers_them(change: str, locked: list[str]) -> None:
    asked = intervention.parse(change)
    assert asked.locked_by(locked or ["--workers"], None, GROUPS) == locked


def test_a_batch_is_one_by_its_short_name() -> None:
    assert flags(["python", "t.py", "-b", "32"]) == {}
    assert flags(["python", "t.py", "-b", "32"], GROUPS) == {"batch_size": "32"}


def test_a_name_belongs_to_the_first_group_that_has_it() -> None:
    assert synonyms.merged([["--a"], ["--b", "-x"], ["--c", "-x"]]) == (("--b", "-x"),)
    assert synonyms.used_by(["t", "-j", "0"], GROUPS) == (("--workers", "-j"),)
