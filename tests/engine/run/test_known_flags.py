from __future__ import annotations

from pathlib import Path

from gpudebug.core.config import Workload
from gpudebug.engine.run.known_flags import known_flags, of_catalogue

SOURCE = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("-j", "--workers", type=int)
args = parser.parse_args()
"""


def workload(text: str) -> Workload:
    return Workload.model_validate({"command": text})


def test_command_source_and_what_is_printed(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SOURCE)
    known = known_flags(tmp_path, workload("python train.py --lr=1"), ["amp"])
    assert {"--lr", "--workers", "-j", "amp"} <= set(known.names)
    assert of_catalogue(tmp_path, workload("python train.py --lr=1")) == ()


def test_a_framework_may_know_more_than_a_source(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("from transformers import Trainer\n" + SOURCE)
    known = known_flags(tmp_path, workload("python train.py --output_dir=o --max_steps=1"))
    assert known.has("--max_steps")
    assert "--dataloader_num_workers" in of_catalogue(tmp_path, workload("python train.py --output_dir=o"))


def test_a_command_alone(tmp_path: Path) -> None:
    known = known_flags(tmp_path, workload("my-train --lr=1"))
    assert known.names == ("--lr",)
