"""What all commands share: each stands in one group of the help, and numbers of hypotheses are read alike."""

from __future__ import annotations

import pytest
import typer

from gpudebug.cli import app
from gpudebug.cli.options import GROUPS, hypothesis_number


def test_each_command_stands_in_one_group() -> None:
    listed = [name for names in GROUPS.values() for name in names]
    commands = {c.name or c.callback.__name__ for c in app.registered_commands if c.callback and not c.hidden}
    assert len(listed) == len(set(listed))
    assert set(listed) == commands


@pytest.mark.parametrize(("text", "number"), [("1", 1), ("h12", 12), (" H3 ", 3)])
def test_a_hypothesis_is_named_by_its_number(text: str, number: int) -> None:
    assert hypothesis_number(text) == number


@pytest.mark.parametrize("text", ["", "h", "1a", "-1", "²", "hh1"])
def test_another_word_is_none(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="is not the number of a hypothesis"):
        hypothesis_number(text)
