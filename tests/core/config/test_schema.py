"""The records themselves: a command's words, and the two places that are filled in."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.config import Workload, expand, expand_text, load
from gpudebug.core.errors import ConfigError


@pytest.mark.parametrize(
    ("command", "shell", "argv"),
    [
        ("a 'b c' \\\n d\n", False, ("a", "b c", "d")),
        (["a", "b c", ""], False, ("a", "b c", "")),
        ("a | b\n", True, ("/bin/sh", "-c", "a | b\n")),
    ],
)
def test_the_words_of_a_command(command: str | list[str], shell: bool, argv: tuple[str, ...]) -> None:
    assert Workload.model_validate({"command": command, "shell": shell}).argv() == argv


def test_a_workload_made_by_hand_names_the_setting() -> None:
    with pytest.raises(ConfigError, match=r"workload\.command: the quote"):
        Workload(command="a 'b").argv()


def test_the_command_on_paper() -> None:
    assert Workload(command="a \\\n  b\n").text == "a \\\n  b"
    assert Workload.model_validate({"command": ["a", "b c"]}).text == "a 'b c'"


@pytest.mark.parametrize(
    ("word", "expanded"),
    [
        ("--out=x/{run}", "--out=x/0001-h1"),
        ("{run_dir}/y{run}", "/r/{run}/y0001-h1"),
        ('{"run": {"a": [1]}}', '{"run": {"a": [1]}}'),
        ("{{run}}", "{0001-h1}"),
        ("{Run} {runs} {} ${run}", "{Run} {runs} {} $0001-h1"),
    ],
)
def test_two_places_are_filled_in_and_no_other_brace(word: str, expanded: str) -> None:
    assert expand([word], run="0001-h1", run_dir="/r/{run}") == (expanded,)


@given(st.text())
def test_text_without_the_places_is_untouched(text: str) -> None:
    if "{run}" not in text and "{run_dir}" not in text:
        assert expand_text(text, run="R", run_dir="D") == text


def test_settings_can_be_written_as_json() -> None:
    text = "workload: {command: [a, b], env: {A: 1}}\nmetric: steps_per_s\nexpected: {a: {b: [1, 2]}}\n"
    found = load(text, "f")
    written = json.loads(found.model_dump_json())
    assert written["workload"]["command"] == ["a", "b"]
    assert written["criteria"]["success"] == 1.2
    assert written["expected"] == {"a": {"b": [1, 2]}}
