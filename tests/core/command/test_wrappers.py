"""The tables of launchers' options: each word is an option as its launcher spells it."""

from __future__ import annotations

import re

import pytest

from gpudebug.core.command import command_line
from gpudebug.core.command.wrappers import WRAPPERS

_OPTION = re.compile(r"--?[A-Za-z0-9](?:[\w.-]*\w)?")


@pytest.mark.parametrize("name", WRAPPERS)
def test_each_word_of_a_table_is_an_option(name: str) -> None:
    wrapper = WRAPPERS[name]
    options = [*wrapper.values, *wrapper.bare, *wrapper.hidden]
    assert [word for word in options if not _OPTION.fullmatch(word)] == []


@pytest.mark.parametrize(
    "words",
    [
        "uv run --extra-index-url https://x.org --config-setting a=b --refresh-package c --no-managed-python",
        "docker run --security-opt seccomp=unconfined --no-healthcheck image",
    ],
)
def test_an_option_with_two_hyphens_hides_no_program(words: str) -> None:
    argv = [*words.split(), "python", "train.py", "--lr=0.1"]
    assert [(o.name, o.value) for o in command_line.program_options(argv)] == [("--lr", "0.1")]
