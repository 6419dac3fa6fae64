"""Frameworks recognised by what a program imports, and what `init` and `doctor` make of it."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from tests.support.campaigns import gpudebug, make_repository

from gpudebug.core.catalogue import frameworks
from gpudebug.core.catalogue.program import look
from gpudebug.core.change.intervention import parse
from gpudebug.core.config import Workload
from gpudebug.engine.run import adapters

TRAINER = """
from transformers import AutoModel, Trainer, TrainingArguments
arguments = TrainingArguments(output_dir="out", max_steps=200)
Trainer(AutoModel(), arguments).train()
"""


def workload(command: str, cwd: str = ".") -> Workload:
    return Workload(command=command, cwd=cwd)


@pytest.mark.parametrize(
    ("source", "name", "flags"),
    [
        (TRAINER, "hf_trainer", False),
        ("from transformers import HfArgumentParser, TrainingArguments", "hf_trainer", True),
        ("import transformers\ntransformers.Trainer()", "hf_trainer", False),
        ("from transformers import Trainer\nfrom accelerate import Accelerator", "hf_trainer", False),
        ("from accelerate import Accelerator\nfrom transformers import AutoModel", "accelerate", False),
        ("from transformers import AutoModel, AutoTokenizer", None, None),
        ("from trl import SFTTrainer", "trl", False),
        ("from trl import SFTTrainer, TrlParser", "trl", True),
        ("import lightning as L\nL.Trainer(max_steps=5)", "lightning", False),
        ("import pytorch_lightning as pl\nclass M(pl.LightningModule): ...", "lightning", False),
        ("from lightning.pytorch.cli import LightningCLI", "lightning", True),
        ("from lightning.fabric import Fabric", None, None),
        ("from stable_baselines3 import PPO", "sb3", False),
        ("from ultralytics import YOLO", "ultralytics", False),
        ("from torchtune import config\n@config.parse\ndef main(cfg): ...", "torchtune", True),
        ("from lerobot.configs import parser", "lerobot", True),
        ("import lerobot.datasets", None, None),
        ("import torch", None, None),
        ("def broken(", None, None),
    ],
)
def test_a_program_imports_its_framework(source: str, name: str | None, flags: bool | None) -> None:
    found = frameworks.find(["python", "train.py"], adapters.known(), look("train.py", [source]))
    assert (found and found.framework.name, found and found.takes_flags) == (name, flags)


def test_flags_of_its_own_give_no_framework_away() -> None:
    argv = shlex.split("python train.py --bf16 --warmup_ratio 0.1 --logging_steps 5")
    own = "".join(f"p.add_argument('--{flag}')\n" for flag in ("bf16", "warmup_ratio", "logging_steps"))
    assert frameworks.recognise(argv, adapters.known()) is not None
    assert frameworks.recognise(argv, adapters.known(), look("train.py", [own])) is None
    with_trainer = look("train.py", [own + "from transformers import Trainer"])
    assert frameworks.recognise(argv, adapters.known(), with_trainer) is not None


@pytest.mark.parametrize(
    ("source", "command", "text"),
    [
        (TRAINER, "python train.py", "set logging_steps=20 in train.py, before the baseline"),
        (TRAINER.replace("200", "200, logging_steps=20"), "python train.py", None),
        (
            TRAINER.replace("200", "args.steps"),
            "python train.py --steps=100",
            "set logging_steps=10 in train.py",
        ),
        (
            TRAINER.replace("200", "200, logging_steps=args.every")
            + "p.add_argument('--every', default=500)",
            "python train.py",
            "add --every=20 to the command",
        ),
        (TRAINER.replace("200", "200, logging_steps=args.every"), "python train.py --every=20", None),
        ("import lightning as L\nL.Trainer(max_steps=100)", "python train.py", "set log_every_n_steps=10 in"),
        ("import lightning as L\nL.Trainer(max_steps=100, log_every_n_steps=n())", "python train.py", None),
        ("import lightning as L\nL.Trainer(max_steps=100, **more)", "python train.py", None),
        (
            "from transformers import HfArgumentParser",
            "python t.py --max_steps 200",
            "add --logging_steps=20 to",
        ),
        ("from stable_baselines3 import PPO", "python train.py", None),
        ("import torch", "python train.py --steps=200", None),
    ],
)
def test_how_often_to_log_is_advised_where_it_can_be_set(source: str, command: str, text: str | None) -> None:
    program = look("train.py", [source])
    advice = frameworks.log_advice(shlex.split(command), adapters.known(), program=program)
    assert (advice is None) == (text is None)
    assert advice is None or advice.text.startswith(text or "")


def test_the_script_and_what_lies_beside_it_are_read(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/train.py").write_text("from options import parse\nimport accelerate\n")
    (tmp_path / "src/options.py").write_text("p.add_argument('--workers', type=int, default=0)\n")
    for command, cwd in (
        ("python src/train.py", "."),
        ("python train.py", "src"),
        ("python -m train", "src"),
    ):
        found = adapters.program_of(tmp_path, workload(command, cwd))
        assert found is not None and set(found.options) == {"workers"}


def test_a_long_list_of_imports_hides_no_file(tmp_path: Path) -> None:
    installed = "\n".join(f"import aa{n}" for n in range(30))
    (tmp_path / "train.py").write_text(f"{installed}\nfrom utils import parse\n")
    (tmp_path / "utils.py").write_text("p.add_argument('--workers', type=int, default=0)\n")
    found = adapters.program_of(tmp_path, workload("python train.py"))
    assert found is not None and set(found.options) == {"workers"}


@pytest.mark.parametrize(
    "command", ["python gone.py", "lerobot-train", "python ../train.py", "python fifo.py"]
)
def test_only_files_of_the_repository_are_read(tmp_path: Path, command: str) -> None:
    import os

    root = tmp_path / "repo"
    root.mkdir()
    (tmp_path / "train.py").write_text("import accelerate")
    (root / "link.py").symlink_to(tmp_path / "train.py")
    os.mkfifo(root / "fifo.py")
    assert adapters.program_of(root, workload(command)) is None
    assert adapters.program_of(root, workload("python link.py")) is None
    assert adapters.of(root, workload("python link.py")).framework is None


def test_the_version_is_that_of_the_package() -> None:
    known = {framework.name: framework for framework in adapters.known()}
    packages = {"transformers": "4.40.1", "pytorch-lightning": "2.4", "stable_baselines3": "2.3"}
    found = {name: adapters.version_of(framework, packages) for name, framework in known.items()}
    assert (found["hf_trainer"], found["lightning"], found["sb3"]) == ("4.40.1", "2.4", "2.3")
    assert found["lerobot"] is None


@pytest.mark.slow
def test_init_and_doctor_offer_to_log_more_often(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "repo", {"train.py": TRAINER})
    answer = gpudebug(folder, "init", "--command", "python train.py", "--json").expect(0).json
    assert answer["framework"] == "hf_trainer"
    said = "logs too rarely to judge the loss; set logging_steps=20 in train.py, before the baseline"
    assert f"workload: {said}" in answer["notes"]
    checks = {check["name"]: check for check in gpudebug(folder, "doctor", "--json").json["checks"]}
    assert checks["workload"]["result"] == "warning"
    assert checks["workload"]["next"] == "set logging_steps=20 in train.py, before the baseline"


@pytest.mark.parametrize(
    ("name", "refused"),
    [
        ("--policy.num_steps", False),
        ("--eval.batch_size", False),
        ("--env.seed", False),
        ("--dataset.max_steps", False),
        ("--batch-size", True),
    ],
)
def test_a_lock_of_lerobot_holds_for_its_own_options(tmp_path: Path, name: str, refused: bool) -> None:
    locked = ("--steps", "--batch_size", "--seed")
    command = workload("lerobot-train --steps=200 --batch_size=8 --seed=1")
    change = parse(f"--set {name}=4")
    synonyms = adapters.locks_of(tmp_path, command, locked, change.names)
    assert bool(change.locked_by(locked, (), synonyms)) is refused


def test_what_an_adapter_calls_the_batch_is_the_batch(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("from lightning.pytorch.cli import LightningCLI\nLightningCLI()\n")
    change = parse("--set --data.batch_size=64")
    synonyms = adapters.locks_of(tmp_path, workload("python train.py fit"), ["--batch_size"], change.names)
    assert change.locked_by(["--batch_size"], (), synonyms) == ["--batch_size"]
