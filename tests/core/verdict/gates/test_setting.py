"""What a trial may be judged by."""

from __future__ import annotations

import pytest

from gpudebug.core.change import intervention, patches
from gpudebug.core.verdict.gates.setting import TrialSetting, in_code, planned, touched


@pytest.mark.parametrize(
    ("setting", "explained"),
    [
        (TrialSetting(), False),
        (TrialSetting(knob="n_envs"), True),
        (TrialSetting(knob="n_envs", code=True), False),
        (TrialSetting(knob="n_envs", code=True, settings_alone=True), True),
        (TrialSetting(code=True, settings_alone=True), False),
    ],
)
def test_a_named_knob_explains_another_step_and_code_does_not(setting: TrialSetting, explained: bool) -> None:
    assert setting.explained is explained


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
        ("train.py --eval_iters=0 --eval_interval=50 --max_iters=200", {}, {"evaluation": 0}),
        ("train.py --n-eval-episodes 0 --eval-freq 500 --n-timesteps 40000", {}, {"evaluation": 0}),
        ("train.py --max_eval_samples=0 --eval_steps=5 --max_steps=10", {}, {"evaluation": 0}),
        ("train.py --eval_interval=inf --max_iters=200", {}, {"evaluation": 0}),
        ("train.py --save_every=-1 --max_iters=200", {}, {"checkpoint": 0}),
        (
            "lerobot-train --eval_freq=0 --save_checkpoint=false --steps=9",
            {},
            {"evaluation": 0, "checkpoint": 0},
        ),
        ("train.py trainer.limit_val_batches=None trainer.val_check_interval=0.25", {}, {"evaluation": 4}),
        ("train.py --num_sanity_val_steps=0 --val_interval=5 --epochs=10", {}, {"evaluation": 2}),
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
        ("--set --eval_iters=1", {"evaluation"}),
        ("--set --save_total_limit=1", {"checkpoint"}),
        ("--compound --set val=False --unset --log_every", {"evaluation", "log line"}),
    ],
)
def test_what_a_change_is_about(change: str, about: set[str]) -> None:
    assert touched(intervention.parse(change), (("--eval-every", "-e"),)) == about


def test_the_code_around_a_change_says_what_it_is_about() -> None:
    patch = b"""\
--- a/train.py
+++ b/train.py
@@ -1,3 +1,4 @@
 def validate(model):
+    return 0.0
     total = 0.0
     for batch in batches:
"""
    assert in_code(patches.read(patch, "x.patch")) == {"evaluation"}
    assert in_code(None) == frozenset()
