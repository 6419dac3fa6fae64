"""Files of frameworks: as strict as those of causes, and those that are shipped are good."""

from __future__ import annotations

import pytest

from gpudebug.core.catalogue import Framework, read_framework
from gpudebug.core.catalogue.versions import numbers
from gpudebug.core.errors import CatalogueError
from gpudebug.engine.run import adapters

TEXT = """\
name: mine
title: Mine
programs: [mine-train]
marks: {flags: [a, b]}
log: {flag: log_every, default: 50}
flags:
  fast: {since: '2.0'}
"""


def test_a_file_says_a_framework() -> None:
    found = read_framework(TEXT, "mine.yaml")
    assert (found.programs, found.marks.needs, found.flags["fast"].since) == (("mine-train",), 2, "2.0")


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("programs", "progams", 3, "unknown key progams"),
        ("since", "sinse", 7, "unknown key flags.fast.sinse"),
        ("default: 50", "default: often", 5, "log.default: expected a whole number"),
        ("name: mine", "name: other", 1, "but the file is named 'mine'"),
        ("title: Mine\n", "", 1, "title is missing"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(old: str, new: str, line: int, said: str) -> None:
    with pytest.raises(CatalogueError, match=said) as e:
        read_framework(TEXT.replace(old, new), "mine.yaml")
    assert e.value.line == line


@pytest.mark.parametrize("framework", adapters.known(), ids=lambda framework: framework.name)
def test_a_shipped_framework_is_whole(framework: Framework) -> None:
    assert framework.programs or framework.marks.flags or framework.imports
    assert set(framework.parses) <= set(framework.imports) or framework.imports
    assert all(flag.since or flag.until for flag in framework.flags.values())
    bounds = [b for flag in framework.flags.values() for b in (flag.since, flag.until) if b]
    assert all(numbers(bound) for bound in bounds)
    assert framework.sources
