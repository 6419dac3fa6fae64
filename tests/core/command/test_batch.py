"""How many samples a step takes: what flags set, what programs print, and whether runs differ."""

from __future__ import annotations

import shlex

import pytest
from tests.support.trials import run

from gpudebug.core.command import batch


@pytest.mark.parametrize(
    ("command", "flags", "size"),
    [
        ("python t.py --batch_size=8 --lr=0.1", {"batch_size": "8"}, 8),
        ("python t.py --batch-size 8", {"batch_size": "8"}, 8),
        ("python t.py --data.batch_size=16", {"batch_size": "16"}, 16),
        ("python t.py --bs 4 --bs 6", {"bs": "6"}, 6),
        ("yolo train batch=32 imgsz=640", {"batch": "32"}, 32),
        (
            "python t.py --per_device_train_batch_size=8 --gradient_accumulation_steps=4",
            {"per_device_train_batch_size": "8", "gradient_accumulation_steps": "4"},
            32,
        ),
        ("python t.py --eval_batch_size=64 --lr=1", {}, None),
        ("python t.py --per_device_eval_batch_size=64", {}, None),
        ("python t.py --auto_find_batch_size=true", {}, None),
        ("python t.py --batch_size=auto", {"batch_size": "auto"}, None),
        ("python t.py --batch_size=-1", {"batch_size": "-1"}, None),
        ("python t.py --accumulate_grad_batches=4", {"accumulate_grad_batches": "4"}, None),
        (
            "python t.py --micro_batch_size=2 --global_batch_size=64",
            {"micro_batch_size": "2", "global_batch_size": "64"},
            64.0,
        ),
        ("python t.py --batch_norm=true --batches_per_epoch=3", {}, None),
        ("python t.py", {}, None),
    ],
)
def test_what_a_commands_flags_set(command: str, flags: dict[str, str], size: float | None) -> None:
    found = batch.flags(shlex.split(command))
    assert found == flags
    assert batch.size(found) == size


@pytest.mark.parametrize(
    ("line", "size"),
    [
        ("batch_size=8", 8),
        ("Batch size: 8", 8),
        ("'batch_size': 16, 'lr': 0.1", 16),
        ("  Instantaneous batch size per device = 8", 8),
        ("  Total train batch size (w. parallel, distributed & accumulation) = 16", 16),
        ("Effective batch size: 8 x 2 = 16", 16),
        ("effective batch size 32", 32),
        ("eval_batch_size=64", None),
        ("Validation batch size: 64", None),
        ("test batch size: 64", None),
        ("batch_size=auto", None),
        ("batch_size=0.5", None),
        ("batch size is set by the scheduler", None),
    ],
)
def test_what_a_program_prints(line: str, size: float | None) -> None:
    assert batch.printed([line]) == size


def test_environments_as_a_program_prints_them() -> None:
    """Isaac Lab's banner of a scene."""
    lines = [
        "\tNumber of environments: 4,096",
        "\tEnvironment spacing   : 4.0",
        "Number of environments: 4096",
    ]
    assert batch.printed_environments(lines) == 4096
    assert batch.printed_environments([*lines, "Number of environments: 1"]) is None


def test_the_whole_step_comes_before_its_part() -> None:
    part, whole = "Instantaneous batch size per device = 8", "Total train batch size = 32"
    assert batch.printed([part, whole]) == 32
    assert batch.printed(["batch_size: 8", "eval_batch_size: 16"]) == 8


def test_a_batch_that_changes_is_no_figure() -> None:
    assert batch.printed(["batch size: 8", "batch size: 16"]) is None
    assert batch.printed([]) is None


@pytest.mark.parametrize(
    ("name", "speaks"),
    [
        ("BATCH_SIZE", True),
        ("TRAIN_BS", True),
        ("GRAD_ACCUM", True),
        ("EVAL_BATCH_SIZE", False),
        ("LR", False),
    ],
)
def test_a_variable_that_names_the_batch(name: str, speaks: bool) -> None:
    assert batch.names_batch(name) is speaks


@pytest.mark.parametrize(
    ("a", "b", "differs"),
    [
        ({}, {}, False),
        ({"batch_flags": {"bs": "8"}}, {"batch_flags": {"bs": "8"}}, False),
        ({"batch_flags": {"bs": "8"}}, {"batch_flags": {"bs": "4"}}, True),
        ({"batch_flags": {"bs": "8"}}, {}, True),
        ({"batch_size": 8.0}, {"batch_size": 4.0}, True),
        ({"batch_size": 8.0}, {}, False),
        (
            {"batch_flags": {"bs": "8"}, "batch_size": 8.0},
            {"batch_flags": {"bs": "8"}, "batch_size": 4.0},
            True,
        ),
    ],
)
def test_whether_runs_differ(a: dict[str, object], b: dict[str, object], differs: bool) -> None:
    runs = [run().model_copy(update=facts) for facts in (a, b)]
    assert batch.differs(runs) is differs


@pytest.mark.parametrize(
    ("option", "planned"),
    [
        ("--total-timesteps=1e5", {100_000}),
        ("--n-timesteps=100000", {100_000}),
        ("collector.total_frames=50_000", {50_000}),
        ("--train.num_env_steps=30000", {30_000}),
        # Frames of a clip, a plan of updates, no number.
        ("--num-frames=16", set()),
        ("--total-steps=99999", set()),
        ("--total-timesteps=auto", set()),
    ],
)
def test_the_environment_steps_that_a_command_plans(option: str, planned: set[int]) -> None:
    assert batch.environment_plans(batch.settings(["python", "train.py", option])) == planned


def test_a_short_flag_plans_them_too() -> None:
    argv = ["python", "-m", "rl_zoo3.train", "-n", "20000"]
    assert batch.environment_plans(batch.settings(argv, [("--n-timesteps", "-n")])) == {20_000}
