"""Which option gpudebug may raise to make runs longer, and that a lock holds for it under every name."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudebug.core.change import intervention as interventions
from gpudebug.core.command.command_line import Option
from gpudebug.core.config import load
from gpudebug.engine.trial.lengths import may_be_lengthened

PARSER = "import argparse\np = argparse.ArgumentParser()\np.add_argument({})\np.parse_args()\n"


def asked(
    folder: Path, locked: str, change: str | None = None, flags: str = "'--steps'"
) -> Option | str | None:
    (folder / "train.py").write_text(PARSER.format(flags))
    text = f"campaign: x\nworkload: {{command: python train.py --steps=200}}\nlocked: [{locked}]\n"
    intervention = interventions.parse(change) if change else None
    return may_be_lengthened(folder, load(text, "gpudebug.yaml"), intervention)


@pytest.mark.parametrize("locked", ["", "--batch_size", "--eval.max_steps", "--epochs"])
def test_an_option_that_nothing_locks_may_be_raised(tmp_path: Path, locked: str) -> None:
    option = asked(tmp_path, locked)
    assert isinstance(option, Option)
    assert option.name == "--steps"


@pytest.mark.parametrize(
    ("locked", "as_"), [("--steps", ""), ("steps", ""), ("--max_steps", " as --max_steps")]
)
def test_a_lock_holds_for_the_option_under_its_other_names(tmp_path: Path, locked: str, as_: str) -> None:
    assert asked(tmp_path, locked) == f"--steps is locked{as_}, so gpudebug does not lengthen the runs"


def test_a_lock_holds_for_another_name_that_the_program_itself_gives(tmp_path: Path) -> None:
    assert asked(tmp_path, "--length", flags="'--steps', '--length'") == (
        "--steps is locked as --length, so gpudebug does not lengthen the runs"
    )


def test_of_two_options_that_the_program_has_each_means_itself(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        PARSER.format("'--steps'") + "p.add_argument('--max_steps')\np.parse_args()\n"
    )
    text = "campaign: x\nworkload: {command: python train.py --steps=200}\nlocked: [--max_steps]\n"
    assert isinstance(may_be_lengthened(tmp_path, load(text, "gpudebug.yaml")), Option)


def test_what_the_hypothesis_changes_is_left_alone(tmp_path: Path) -> None:
    assert asked(tmp_path, "", "--set --steps=400") == (
        "the hypothesis changes --steps, so gpudebug does not lengthen the runs"
    )
