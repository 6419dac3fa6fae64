"""The text of gpudebug.yaml: all defaults, and what init writes, read back by load."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.places import DATA

from gpudebug.core import config
from gpudebug.core.config import defaults
from gpudebug.core.errors import ConfigError
from gpudebug.core.text import shell_words


def test_the_printed_defaults_are_the_defaults() -> None:
    printed = config.load(defaults.print_defaults(), "f")
    assert printed == config.load("workload: {command: 'python train.py --output_dir=outputs/{run}'}", "f")


def test_the_printed_defaults_are_explained() -> None:
    assert all("  # " in line for line in defaults.print_defaults().splitlines()[1:])


def test_commented_settings_can_be_taken_in() -> None:
    text = defaults.print_defaults().replace("\n# ", "\n")
    found = config.load(text, "f")
    assert found.target == 80
    assert found.reference is not None


def test_the_file_that_init_writes() -> None:
    assert config.load(config.config_text("c", "t", rate=True), "f").criteria.success == 1.2
    text = config.config_text(
        "my-campaign",
        "A=1 B='x: y' python train.py \\\n  --a=1\n",
        "python ref.py",
        goal='say "go": now',
        locked=["--batch_size"],
    )
    found = config.load(text, "f")
    assert found.campaign == "my-campaign"
    assert found.goal == 'say "go": now'
    assert found.workload.command == "python train.py \\\n  --a=1\n"
    assert found.workload.env == {"A": "1", "B": "x: y"}
    assert found.reference is not None
    assert found.reference.argv() == ("python", "ref.py")
    assert found.locked == ("--batch_size",)
    assert (found.criteria.success, found.criteria.failure) == (20, 10)


def test_a_shell_command_is_written_as_one() -> None:
    found = config.load(config.config_text("c", "A=1 x | y", shell=True), "f")
    assert found.workload.argv() == ("/bin/sh", "-c", "A=1 x | y\n")


@pytest.mark.parametrize("command", ["", "A=1", "a | b", "a 'b", "a \\", "\n"])
def test_a_command_that_cannot_be_split_is_not_written(command: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config.config_text("c", command)
    assert caught.value.next
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("inner", [False, True])
def test_the_seeds_command_goes_through_the_file_byte_for_byte(inner: bool, tmp_path: Path) -> None:
    command = DATA.joinpath("seed004_command.sh").read_text()
    if inner:
        command = shell_words.split(command)[-1].value
    found = config.load(config.config_text("seed", command), "f").workload
    assert isinstance(found.command, str)
    assert found.command.rstrip("\n") == command.rstrip("\n")
    script = "f() { for word; do printf '%s\\0' \"$word\"; done; }; f " + command
    bash = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert list(found.argv()) == bash.stdout.split("\0")[:-1]


@given(
    st.text(st.characters(exclude_categories=["Cs", "Cc"], include_characters="\n\t\\'\"#:{}"), max_size=40)
)
def test_any_command_that_splits_survives(command: str) -> None:
    try:
        text = config.config_text("c", command)
    except ConfigError as error:
        assert error.next
        return
    variables, rest = shell_words.leading_assignments(command)
    words = [word.value for word in shell_words.split(rest)]
    found = config.load(text, "f").workload
    assert list(found.argv()) == words
    assert found.env == variables


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=30))
def test_any_goal_survives(goal: str) -> None:
    assert config.load(config.config_text("c", "t", goal=goal), "f").goal == goal
