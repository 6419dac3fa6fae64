"""How many evaluations, checkpoints and log lines a run has by its settings."""

from __future__ import annotations

import pytest

from gpudebug.core.change import intervention
from gpudebug.core.verdict.planned_work import planned, touched


@pytest.mark.parametrize(
    ("command", "printed", "counts"),
    [
        ("train.py --eval_interval=10000 --max_iters=200", {}, {"evaluation": 0}),
        ("train.py --eval_interval=20 --max_iters=200", {"eval_interval": "100"}, {"evaluation": 2}),
        ("train.py --eval-freq 500 --n-timesteps 40000", {}, {"evaluation": 80}),
        ("train.py --save_strategy=no --save_steps 2 --max_steps=10", {}, {"checkpoint": 0}),
        ("train.py --save_steps 2 --max_steps=10 --logging_steps=1", {}, {"checkpoint": 5, "log line": 10}),
        ("train.py --no-eval --eval_every=1 --epochs=5", {}, {"evaluation": 0}),
        ("train.py --epochs=5 --check_val_every_n_epoch=2", {}, {"evaluation": 2}),
        ("yolo train val=False save=True epochs=3", {}, {"evaluation": 0}),
        ("train.py trainer.val_check_interval=0.25", {}, {"evaluation": 4}),
        ("train.py --eval_every=5", {}, {}),
        ("train.py trainer.limit_val_batches=0.0 trainer.val_check_interval=0.25", {}, {"evaluation": 0}),
        ("train.py --eval_every=null --max_steps=200", {}, {}),
        ("train.py --eval_iters=5 --batch_size=8", {}, {}),
    ],
)
def test_what_the_settings_plan(command: str, printed: dict[str, str], counts: dict[str, int]) -> None:
    assert planned(["python", *command.split()], printed) == counts


@pytest.mark.parametrize(
    ("change", "about"),
    [
        ("--set --eval_interval=5", {"evaluation"}),
        ("--set -e=5", {"evaluation"}),
        ("--env NO_CHECKPOINTS=1", {"checkpoint"}),
        ("--set --num_workers=4", set()),
        ("--compound --set val=False --unset --log_every", {"evaluation", "log line"}),
    ],
)
def test_what_a_change_is_about(change: str, about: set[str]) -> None:
    assert touched(intervention.parse(change), None, (("--eval-every", "-e"),)) == about
