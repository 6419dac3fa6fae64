"""Options with several names are one knob."""

from __future__ import annotations

import shlex

import pytest

from gpudebug.core.change import intervention
from gpudebug.core.command import synonyms
from gpudebug.core.command.batch import flags
from gpudebug.core.command.synonyms import by_meaning, kind_of

GROUPS = (("--workers", "-j"), ("--batch-size", "-b", "--bs"))


@pytest.mark.parametrize(
    ("change", "command", "expected"),
    [
        ("--set --workers=4", "python t.py data -j 0", "python t.py data -j 4"),
        ("--set --workers=4", "python t.py -j0 data", "python t.py -j4 data"),
        ("--set -j=4", "python t.py --workers=0", "python t.py --workers=4"),
        ("--set --workers=4", "python t.py -b 32", "python t.py -b 32 --workers 4"),
        ("--set --batch_size=64", "python t.py -b32", "python t.py -b64"),
        ("--unset --workers", "python t.py -j 0 x", "python t.py x"),
        ("--set --save=False", "yolo train data=a.yaml save=True", "yolo train data=a.yaml save=False"),
        ("--set max_steps=9", "python t.py +max_steps=5", "python t.py +max_steps=9"),
    ],
)
def test_a_change_replaces_whatever_name_the_command_has(change: str, command: str, expected: str) -> None:
    argv = shlex.split(command)
    made = intervention.parse(change).spelled(argv, GROUPS).apply(argv, {})
    assert shlex.join(made.argv) == expected


@pytest.mark.parametrize(
    ("change", "locked"),
    [
        ("--set -j=4", ["--workers"]),
        ("--set --workers=4", ["-j"]),
        ("--set -b=4", ["bs"]),
        ("--set -x=4", []),
    ],
)
def test_a_lock_covers_them(change: str, locked: list[str]) -> None:
    asked = intervention.parse(change)
    assert asked.locked_by(locked or ["--workers"], None, GROUPS) == locked


def test_a_batch_is_one_by_its_short_name() -> None:
    assert flags(["python", "t.py", "-b", "32"]) == {}
    assert flags(["python", "t.py", "-b", "32"], GROUPS) == {"batch_size": "32"}


def test_a_name_belongs_to_the_first_group_that_has_it() -> None:
    assert synonyms.merged([["--a"], ["--b", "-x"], ["--c", "-x"]]) == (("--b", "-x"),)
    assert synonyms.used_by(["t", "-j", "0"], GROUPS) == (("--workers", "-j"),)


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (("--batch_size", "--ims-per-batch", "SOLVER.IMS_PER_BATCH", "--samples_per_gpu", "-bs"), "batch"),
        (("per_device_train_batch_size", "train_micro_batch_size_per_gpu", "--bsz"), "batch"),
        (("--lr", "optim.learning_rate", "--base-lr"), "learning rate"),
        (("--epochs", "num_train_epochs", "--n_epochs", "max-epochs"), "epochs"),
        (("--max_steps", "--max_iters", "--total-timesteps", "--num-iterations"), "steps"),
        (("--seed", "rng_seed"), "seed"),
        (("--block_size", "--max_seq_length", "--context-length"), "sequence length"),
        (("imgsz", "--img-size", "--input_size"), "image size"),
    ],
)
def test_names_of_one_kind(names: tuple[str, ...], kind: str) -> None:
    assert {name: kind_of(name) for name in names} == dict.fromkeys(names, kind)


@pytest.mark.parametrize(
    "name",
    ["--num_workers", "--eval_batch_size", "--lr_scheduler", "--save_steps", "--warmup_steps", "-x", ""],
)
def test_names_that_mean_what_they_say_alone(name: str) -> None:
    assert kind_of(name) is None


def test_a_locked_option_under_another_name() -> None:
    assert by_meaning(["--batch_size"], ["--ims-per-batch", "--lr"], []) == [
        ("--batch_size", "--ims-per-batch")
    ]
    assert by_meaning(["--batch_size"], ["--batch-size"], []) == []
    assert by_meaning(["--num_workers"], ["--workers"], []) == []
    # A program with both has a reason for two.
    both = ["global_batch_size", "micro_batch_size"]
    assert by_meaning(["--global-batch-size"], ["--micro-batch-size"], both) == []
    assert by_meaning(["--global-batch-size"], ["--micro-batch-size"], both[:1]) != []


@pytest.mark.parametrize(
    ("locked", "name"),
    [
        ("--batch_size", "--bs"),
        ("--batch_size", "--train-batch-size"),
        ("--batch_size", "SOLVER.IMS_PER_BATCH"),
        ("--lr", "SOLVER.BASE_LR"),
        ("--max_steps", "SOLVER.MAX_ITER"),
        ("--max_steps", "--max-iters"),
        ("--steps", "--num_train_steps"),
        ("--epochs", "num_train_epochs"),
        ("--seed", "--random-seed"),
        ("train.batch_size", "train.ims_per_batch"),
        ("optim.lr", "++optim.learning_rate"),
        ("--batch_size", "--data.batch_size"),
        ("data.batch_size", "--batch_size"),
    ],
)
def test_pairs_that_set_one_thing(locked: str, name: str) -> None:
    assert by_meaning([locked], [name], [], ["data.batch_size"]) == [(locked, name)]


@pytest.mark.parametrize(
    ("locked", "name"),
    [
        ("--steps", "--policy.num_steps"),
        ("--steps", "--policy.steps"),
        ("--batch_size", "--eval.batch_size"),
        ("--seed", "--env.seed"),
        ("--seed", "--data.rng_seed"),
        ("--steps", "--dataset.max_steps"),
        ("--max_steps", "--num_steps"),
        ("--max_steps", "--n-steps"),
        ("--total-timesteps", "--num-steps"),
        ("--max_steps", "--timesteps"),
        ("--max_steps", "--max_episode_steps"),
        ("train.batch_size", "val.batch_size"),
        ("--batch_size", "--eval_batch_size"),
        ("--batch_size", "--rollout_batch_size"),
        ("--batch_size", "--gen-batch-size"),
        ("--batch_size", "--minibatch_size"),
        ("--batch_size", "--val_samples_per_gpu"),
        ("--seq_len", "--max_tokens"),
        ("--seq_len", "--max_new_tokens"),
        ("--img-size", "--crop-size"),
        ("--batch_size", "TEST.IMS_PER_BATCH"),
        ("SOLVER.IMS_PER_BATCH", "TEST.IMS_PER_BATCH"),
        # The adapter's own two: there is a reason for them.
        ("train.global_batch_size", "train.micro_batch_size"),
    ],
)
def test_pairs_that_set_two_things(locked: str, name: str) -> None:
    adapter = ["steps", "batch_size", "train.global_batch_size", "train.micro_batch_size"]
    assert by_meaning([locked], [name], [], adapter) == []
