"""One run by itself: its tests are changes of its own command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support.trials import run

from gpudebug.core.diagnosis.model import Ranked
from gpudebug.engine.diagnosis.single import single_run
from gpudebug.engine.run import catalogue

SCRIPT = """\
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--num_workers", type=int, default=0)
parser.parse_args()
"""


def change_for(record: dict[str, Any], cause: str) -> str | None:
    found = catalogue.load(None).cause(cause)
    single = single_run(run(20.0).model_dump(mode="json"), record, None)
    return single.test_of(Ranked(cause, found.title, 0.9), found).change


def test_the_change_is_of_the_program_that_the_command_starts(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    record = {"argv": ["python", "train.py"], "cwd": str(tmp_path)}
    assert "--num_workers" in str(change_for(record, "dl-no-workers"))


def test_a_program_outside_the_folder_is_read_too(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "work").mkdir()
    (tmp_path / "code" / "train.py").write_text(SCRIPT)
    record = {"argv": ["python", "../code/train.py"], "cwd": str(tmp_path / "work")}
    assert "--num_workers" in str(change_for(record, "dl-no-workers"))


def test_a_run_without_a_command_gets_the_catalogues_own_words() -> None:
    assert change_for({}, "dl-no-workers") is None


@pytest.mark.parametrize(
    ("variables", "change"),
    [({"nnUNet_n_proc_DA": "0"}, "--env nnUNet_n_proc_DA=4"), ({"nnUNet_n_proc_DA": None}, None), ({}, None)],
)
def test_what_the_program_found_in_its_variables_is_where_a_change_begins(
    variables: dict[str, str | None], change: str | None
) -> None:
    record = {"argv": ["nnUNetv2_train", "1", "2d", "0"], "knobs": {}, "variables": variables}
    assert change_for(record, "dl-no-workers") == change
