"""What gpudebug knows of training frameworks' command lines, as data; and what it offers because of it.

Flags are without leading dashes. Sources: each framework's own documentation of its command line
(lerobot-train, transformers.TrainingArguments, lightning.Trainer, torchtune recipes, rl_zoo3, timm
train.py, ultralytics, nanoGPT); defaults as of 2025.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from . import commandline, shellwords
from .commandline import Option


class Framework(NamedTuple):
    """One framework. `programs` match a word of the command by its last path part, `marks` are flags that
    give it away where `needs` of them stand there; `output` must be new for each run; `log` is the flag
    that sets how many steps lie between two log lines and `log_default` its default; `steps` sets the
    length of the run; `locked` change what is learnt, so that no hypothesis should touch them."""

    name: str
    programs: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    needs: int = 2
    output: tuple[str, ...] = ()
    log: str | None = None
    log_default: int | None = None
    steps: tuple[str, ...] = ()
    locked: tuple[str, ...] = ()


FRAMEWORKS: tuple[Framework, ...] = (
    Framework(
        "lerobot",
        programs=(
            "lerobot-train",
            "lerobot_train.py",
            "lerobot.scripts.train",
            "lerobot.scripts.lerobot_train",
        ),
        marks=("policy.type", "dataset.repo_id", "policy.path"),
        output=("output_dir",),
        log="log_freq",
        log_default=200,
        steps=("steps",),
        locked=("batch_size", "policy.chunk_size"),
    ),
    Framework(
        "llamafactory",
        programs=("llamafactory-cli", "llamafactory-train"),
        output=("output_dir",),
        log="logging_steps",
        log_default=500,
        steps=("max_steps",),
        locked=("per_device_train_batch_size", "gradient_accumulation_steps"),
    ),
    Framework(
        "torchtune",
        programs=("tune",),
        marks=("checkpointer.output_dir", "dataset.packed"),
        output=("output_dir",),
        log="log_every_n_steps",
        log_default=1,
        steps=("max_steps_per_epoch",),
        locked=("batch_size", "gradient_accumulation_steps"),
    ),
    Framework(
        "sb3",
        programs=("rl_zoo3.train", "rl_zoo3"),
        marks=("n-timesteps", "algo", "env"),
        output=("log-folder",),
        log="log-interval",
        log_default=1,
        steps=("n-timesteps",),
        locked=("env", "algo"),
    ),
    Framework(
        "ultralytics",
        programs=("yolo",),
        steps=("epochs",),
        locked=("batch", "imgsz"),
    ),
    Framework(
        "hf_trainer",
        marks=(
            *(
                "per_device_train_batch_size",
                "do_train",
                "logging_steps",
                "save_steps",
                "dataloader_num_workers",
            ),
            *("bf16", "fp16", "eval_strategy", "save_strategy", "overwrite_output_dir", "warmup_ratio"),
        ),
        output=("output_dir",),
        log="logging_steps",
        log_default=500,
        steps=("max_steps",),
        locked=("per_device_train_batch_size", "gradient_accumulation_steps"),
    ),
    Framework(
        "lightning",
        marks=("trainer.max_steps", "trainer.max_epochs", "trainer.devices", "trainer.accelerator"),
        output=("trainer.default_root_dir",),
        log="trainer.log_every_n_steps",
        log_default=50,
        steps=("trainer.max_steps",),
        locked=("data.batch_size", "trainer.accumulate_grad_batches"),
    ),
    Framework(
        "timm",
        marks=("data-dir", "opt", "sched", "model", "amp", "pretrained", "img-size", "experiment"),
        needs=3,
        output=("output",),
        log="log-interval",
        log_default=50,
        locked=("batch-size", "grad-accum-steps"),
    ),
    Framework(
        "nanogpt",
        marks=("block_size", "n_layer", "max_iters", "eval_iters", "lr_decay_iters"),
        output=("out_dir",),
        log="log_interval",
        log_default=1,
        steps=("max_iters",),
        locked=("batch_size", "block_size", "gradient_accumulation_steps"),
    ),
)

# Names that programs give to a folder they write into, where no framework is known.
_OUTPUT_NAMES = (
    *("output_dir", "out_dir", "output_path", "outdir", "output", "run_dir", "save_dir", "save_path"),
    *("logdir", "log_dir", "logging_dir", "work_dir", "workdir", "exp_dir", "experiment_dir", "results_dir"),
    *("checkpoint_dir", "ckpt_dir", "default_root_dir", "log_folder", "hydra.run.dir"),
)
_UNIQUE = re.compile(r"\{run(_dir)?\}|\$|%\(")
_FILE = re.compile(r"\.[A-Za-z]{1,7}$")
_LINES_WANTED = 10


def recognise(argv: Sequence[str]) -> Framework | None:
    """The framework that the command's program or enough of its flags give away."""
    words = {word.rstrip("/").rsplit("/", 1)[-1] for word in argv if not word.startswith("-")}
    for framework in FRAMEWORKS:
        if words & set(framework.programs):
            return framework
    names = {_folded(option.name) for option in commandline.program_options(argv)}
    counted = [(len(names & {_folded(mark) for mark in known.marks}), known) for known in FRAMEWORKS]
    enough = [(count, known) for count, known in counted if count >= known.needs]
    return max(enough, key=lambda entry: entry[0])[1] if enough else None


def output_flag(argv: Sequence[str]) -> Option | None:
    """The option that names the run's output folder with a fixed value; None if there is none, or if
    the value holds `{run}` already or is made unique by the program itself."""
    framework = recognise(argv)
    names = [*(framework.output if framework else ()), *_OUTPUT_NAMES]
    options = commandline.program_options(argv)
    for name in names:
        found = [option for option in options if _named(option, name) and option.value]
        if found:
            value = found[-1].value or ""
            return None if _UNIQUE.search(value) or _FILE.search(value) else found[-1]
    return None


def _named(option: Option, name: str) -> bool:
    """`--output_dir`, `--output-dir` and `trainer.output_dir` are all output_dir."""
    bare = _folded(option.name)
    return bare == _folded(name) or bare.endswith("." + _folded(name))


def _folded(name: str) -> str:
    return commandline.bare_name(name).replace("-", "_").lower()


def offer_run(text: str) -> str | None:
    """The command's text with `{run}` at the end of its fixed output folder, every other byte as it was.

    None where no such folder is seen or the text cannot be split.
    """
    try:
        words = shellwords.split(text)
    except shellwords.ShellSyntaxError:
        return None
    option = output_flag([word.value for word in words])
    if option is None or not option.value:
        return None
    word = words[option.stop - 1]
    end = word.end
    while end > word.start and text[end - 1] in "'\"":
        end -= 1
    added = "{run}" if option.value.endswith("/") else "/{run}"
    offered = f"{text[:end]}{added}{text[end:]}"
    wanted = [entry.value + added if entry is word else entry.value for entry in words]
    return offered if _splits_into(offered, wanted) else None


def _splits_into(text: str, words: Sequence[str]) -> bool:
    try:
        return [word.value for word in shellwords.split(text)] == list(words)
    except shellwords.ShellSyntaxError:
        return False


def steps_option(argv: Sequence[str]) -> Option | None:
    """The option that says how many optimiser steps to train, with its value in decimal digits."""
    framework = recognise(argv)
    for name in framework.steps if framework else ("steps", "max_steps", "num_steps", "max_iters"):
        found = commandline.find(argv, name)
        value = found[-1].value if found else None
        if value and value.isascii() and value.isdigit() and int(value) > 0:
            return found[-1]
    return None


def steps_of(argv: Sequence[str]) -> int | None:
    """The number of optimiser steps that the command asks for, where a flag says so."""
    option = steps_option(argv)
    return int(option.value) if option and option.value else None


def log_interval_advice(argv: Sequence[str], steps: int | None = None) -> tuple[str, str] | None:
    """The flag and value with which at least 10 loss lines appear, as ('--log_freq', '20') for 200 steps.

    `steps` is the length of the run, by default as the command says. None where the framework is not
    known, the length is not, or the command logs often enough already.
    """
    framework = recognise(argv)
    length = steps if steps is not None else steps_of(argv)
    if framework is None or framework.log is None or length is None:
        return None
    found = commandline.find(argv, framework.log)
    written = found[-1].value if found else None
    present = int(written) if written and written.isascii() and written.isdigit() else framework.log_default
    wanted = max(1, length // _LINES_WANTED)
    if present is not None and present <= wanted:
        return None
    return (found[-1].name if found else _spelled(argv, framework.log)), str(wanted)


def suggested_locks(argv: Sequence[str]) -> tuple[str, ...]:
    """The knobs worth locking that stand in the command, as they are written there."""
    framework = recognise(argv)
    names = framework.locked if framework else ("batch_size", "batch-size", "bs")
    options = commandline.program_options(argv)
    found = [option.name for name in names for option in options if _folded(option.name) == _folded(name)]
    return tuple(dict.fromkeys(found))


def _spelled(argv: Sequence[str], name: str) -> str:
    """A flag that is not there yet, in the style of those that are."""
    return name if commandline.prevailing_style(argv) == "override" else f"--{name}"
