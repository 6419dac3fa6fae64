"""Ratios of counts, the plan of a command, and the flags that change what a step takes."""

from __future__ import annotations

import pytest
from tests.support.trials import run

from gpudebug.core.inside.probe.counts import beyond_plan, like_batch, planned, ratios
from gpudebug.core.records import Evidence, ProbeEvidence
from gpudebug.core.words import Outcome


@pytest.mark.parametrize(
    ("command", "plan"),
    [
        ("python train.py --steps=75", ("steps", 75)),
        ("python train.py --max-steps 300 --epochs=2", ("steps", 300)),
        ("torchrun --nproc_per_node=2 train.py trainer.max_steps=50", ("steps", 50)),
        ("python train.py --num_train_epochs=3", None),
        ("python train.py --warmup_steps=10 --eval_steps=5", None),
        ("python train.py --steps=-1", None),
        ("python train.py --steps=75 --train_steps=80", None),
        ("python train.py", None),
    ],
)
def test_what_a_command_plans(command: str, plan: tuple[str, int] | None) -> None:
    assert planned(command.split()) == plan


def made(*steps: int, unit: str | None = "step") -> list[Evidence]:
    return [run(steps=count, unit=unit) for count in steps]


@pytest.mark.parametrize(
    ("flag", "before", "after", "found"),
    [
        ("--steps=75", (75, 75), (300,), "printed 300 steps, and its command plans 75 steps"),
        ("--steps=75", (75, 75), (75, 76), None),
        ("--steps=75", (75, 75), (40,), None),
        ("--steps=75", (300, 300), (300,), None),
        ("--steps=75", (1075, 1075), (1075,), None),
        ("--steps=100000", (200, 210), (800,), None),
        ("--epochs=3", (90, 90), (360,), None),
        ("--lr=1", (75, 75), (300,), None),
    ],
)
def test_steps_beyond_the_plan(
    flag: str, before: tuple[int, ...], after: tuple[int, ...], found: str | None
) -> None:
    argv = ["python", "train.py", flag]
    said = beyond_plan([(argv, e) for e in made(*before)], [(argv, e) for e in made(*after)])
    assert (said is None) == (found is None)
    assert found is None or found in str(said)


def test_samples_and_epochs_are_no_steps_of_a_plan() -> None:
    argv = ["python", "train.py", "--steps=75"]
    trial = [(argv, e) for e in made(3000, unit="samples")]
    assert beyond_plan([(argv, e) for e in made(75)], trial) is None


@pytest.mark.parametrize(
    "name",
    [
        *(
            "--batch_size",
            "--gradient-accumulation-steps",
            "--num_envs",
            "env.num_envs",
            "--seq_len",
            "BATCH",
        ),
        *("--max_length", "--n_critic", "--world_size", "--log_every", "--train_freq", "--chunk_size"),
    ],
)
def test_knobs_of_what_a_step_takes(name: str) -> None:
    assert like_batch(name)


@pytest.mark.parametrize(
    "name",
    [
        "--num_workers",
        "--prefetch",
        "--lr",
        "--fp16",
        "--cache",
        "--compile",
        "--save_freq",
        "--training.eval_every",
    ],
)
def test_other_knobs_explain_no_count(name: str) -> None:
    assert not like_batch(name)


def test_what_is_not_known_has_no_ratio() -> None:
    assert ratios(run(5.0)) == {}
    assert ratios(run(5.0, probe=ProbeEvidence(pid=1, steps=9))) == {}
    assert ratios(run(5.0, probe=ProbeEvidence(pid=1, steps=9, steps_per_s=5.0, off="it failed"))) == {}
    inside = ProbeEvidence(pid=1, steps=9, steps_per_s=5.0, facts={"optimizers": "many", "loaders": [1]})
    assert list(ratios(run(28, 5.0, steps_by="arrival", probe=inside))) == ["log"]


def test_of_a_run_without_arrival_times_the_whole_counts_are_held_together() -> None:
    inside = ProbeEvidence(pid=1, steps=75, steps_per_s=5.0)
    told = run(28, 5.0, steps_by="probe", steps=300, probe=inside)
    assert ratios(told)["log"].value == 4
    assert "log" not in ratios(told.model_copy(update={"outcome": Outcome.ENDED_BY_PLAN}))
