"""Splitting a command: as bash splits it, with places, refusing what only a shell can carry out."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.support.places import DATA

from gpudebug.core.text import shell_words
from gpudebug.core.text.shell_words import ShellSyntaxError, isolated_argv, module_argv

EACH_WORD = 'f() { for word; do printf "%s\\0" "$word"; done; }; f '


def bash_words(text: str, folder: Path) -> list[str] | None:
    """The words as bash passes them on, None if it refuses the text."""
    done = subprocess.run(
        ["bash", "-c", EACH_WORD + text], capture_output=True, text=True, cwd=folder, check=False
    )
    return done.stdout.split("\0")[:-1] if done.returncode == 0 and not done.stderr else None


def values(text: str) -> list[str]:
    return [word.value for word in shell_words.split(text)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        ("  \n\t ", []),
        ("a b  c", ["a", "b", "c"]),
        ("a \\\n  b", ["a", "b"]),
        ("a \\\r\n  b\r\n", ["a", "b"]),
        ("ab\\\ncd", ["abcd"]),
        ("'a b' \"c d\"", ["a b", "c d"]),
        ("'a\\\nb'", ["a\\\nb"]),
        ('"a\\\nb"', ["ab"]),
        ('"\\$x \\" \\\\ \\n"', ['$x " \\ \\n']),
        ("a\\ b", ["a b"]),
        ("''", [""]),
        ("--x='' y", ["--x=", "y"]),
        ("""--j='{"a": [1, 2], "b": {"c": null}}'""", ['--j={"a": [1, 2], "b": {"c": null}}']),
        ("out/{run} --a=[0] --b=(1,2) *.txt", ["out/{run}", "--a=[0]", "--b=(1,2)", "*.txt"]),
        ("a#b '#c'", ["a#b", "#c"]),
        ("x=a~b '~' 5$ \"it's $5\"", ["x=a~b", "~", "5$", "it's $5"]),
        ("a\u00a0b", ["a\u00a0b"]),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert values(text) == words


def test_every_word_knows_its_place() -> None:
    text = "  lerobot-train  --x='a b' \\\n y"
    words = shell_words.split(text)
    assert [text[word.start : word.end] for word in words] == ["lerobot-train", "--x='a b'", "y"]


@pytest.mark.parametrize(
    ("text", "position", "says"),
    [
        ("a 'b", 2, "never closed"),
        ('a "b c', 2, "never closed"),
        ("a b\\", 3, "backslash"),
        ("a \\ \nb", 2, "white space"),
        ("a | b", 2, "|"),
        ("a && b", 2, "&"),
        ("a; b", 1, ";"),
        ("a > log", 2, ">"),
        ("a 2>&1", 3, ">"),
        ("a $HOME", 2, "$"),
        ("a $(date)", 2, "$"),
        ("a `date`", 2, "`"),
        ("a # b", 2, "comment"),
        ("a ~/x", 2, "home"),
    ],
)
def test_what_cannot_be_passed_on_is_refused_with_its_place(text: str, position: int, says: str) -> None:
    with pytest.raises(ShellSyntaxError) as caught:
        shell_words.split(text)
    assert caught.value.position == position
    assert says in str(caught.value)


def test_lenient_splitting_takes_a_shells_signs_literally() -> None:
    words = shell_words.split("--set a=<x> --env B=$C;d", strict=False)
    assert [word.value for word in words] == ["--set", "a=<x>", "--env", "B=$C;d"]


@pytest.mark.parametrize(
    ("text", "variables", "rest"),
    [
        ("python x.py --a=1", {}, "python x.py --a=1"),
        ("A=1 B='x y' python  x.py", {"A": "1", "B": "x y"}, "python  x.py"),
        ("A=1", {"A": "1"}, ""),
        ("1A=2 b", {}, "1A=2 b"),
    ],
)
def test_variables_before_the_program(text: str, variables: dict[str, str], rest: str) -> None:
    assert shell_words.leading_assignments(text) == (variables, rest)


def test_the_seeds_command_splits_as_bash_splits_it(tmp_path: Path) -> None:
    command = (DATA / "seed004_command.sh").read_text()
    assert values(command) == bash_words(command, tmp_path)
    inner = values(command)[-1]
    assert values(inner) == bash_words(inner, tmp_path)
    assert any(word.startswith('--policy.input_features={"observation.state": ') for word in values(inner))


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))))
def test_quoted_words_survive(words: list[str]) -> None:
    assert values(shlex.join(words)) == words


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    pieces=st.lists(
        st.sampled_from(["a", "=", "[0]", " ", "\t", "'", '"', "\\", "\\\n", "{x}", "#"]), max_size=14
    )
)
def test_any_mix_of_quotes_splits_as_in_bash(pieces: list[str], tmp_path: Path) -> None:
    text = "a" + "".join(pieces)
    # A backslash that is itself escaped leaves a bare newline, which ends bash's command.
    assume(not re.search(r"\\\\\n", text))
    try:
        ours: list[str] | None = values(text)
    except ShellSyntaxError as error:
        if "never closed" not in str(error):
            return
        ours = None
    assert ours == bash_words(text, tmp_path)


@given(st.text())
def test_no_text_raises_anything_else(text: str) -> None:
    try:
        words = shell_words.split(text, strict=False)
    except ShellSyntaxError as error:
        assert 0 <= error.position < len(text)
    else:
        assert all(word.start < word.end <= len(text) for word in words)


def run(folder: Path, argv: tuple[str, ...]) -> str:
    env = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(
        argv, cwd=folder, env=env, capture_output=True, text=True, check=True
    ).stdout.strip()


def test_modules_of_the_working_folder_and_of_pythonpath_stay_out(tmp_path: Path) -> None:
    for name in ("json", "sitecustomize", "usercustomize", "helper"):
        (tmp_path / f"{name}.py").write_text("print('the user was here')")
    ours = tmp_path / "ours"
    ours.mkdir()
    (ours / "helper.py").write_text("print('ours')")
    assert run(tmp_path, isolated_argv(sys.executable, [str(ours)], "import json, helper")) == "ours"


def test_no_folder_can_hide_a_module_of_the_standard_library(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("print('hidden')")
    argv = isolated_argv(sys.executable, [str(tmp_path)], "import json; print(json.dumps(1))")
    assert run(tmp_path, argv) == "1"


def test_folders_with_hostile_names_are_quoted(tmp_path: Path) -> None:
    folder = tmp_path / 'it\'s "a" \\ place; with\nall'
    folder.mkdir()
    (folder / "helper.py").write_text("print('found')")
    assert (
        run(tmp_path, isolated_argv(sys.executable, [str(folder), str(folder)], "import helper")) == "found"
    )


def test_a_module_is_not_looked_for_in_the_working_folder(tmp_path: Path) -> None:
    for name in ("runpy", "json", "argparse"):
        (tmp_path / f"{name}.py").write_text("print('hidden')")
    (tmp_path / "x").write_text("[1]")
    argv = (*module_argv(sys.executable, "json.tool"), "--compact", "x")
    assert subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=True).stdout == "[1]\n"
