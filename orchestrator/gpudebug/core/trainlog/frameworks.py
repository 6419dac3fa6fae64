"""Which framework wrote a log. A label for people: nothing is parsed differently because of it."""

from __future__ import annotations

import re

_MARKS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("sb3", ("Wrapping the env", "stable_baselines0", "|    ep_rew_mean ")),
    ("rsl_rl", ("Mean value_function loss", "Learning iteration 0", "rsl_rl")),
    ("skrl", ("[skrl:",)),
    ("lerobot", ("ot_train.py:0", "lerobot", " smpl:0")),
    ("lightning", ("lightning", "`Trainer.fit`", "v_num")),
    ("mmengine", ("mmengine", "mmcv")),
    ("megatron", ("elapsed time per iteration (ms)", "megatron")),
    ("torchtune", ("torchtune",)),
    ("torchtitan", ("torchtitan", "[titan]")),
    ("hf_trainer", ("'train_runtime'", "'grad_norm': ", "[transformers]", "transformers/trainer.py")),
    ("accelerate", ("Distributed environment: ", "accelerate/")),
    ("nanogpt", ("tokens per iteration will be",)),
    ("timm", ("timm",)),
    ("cleanrl", ("cleanrl",)),
    ("ultralytics", ("Ultralytics", "box_loss   cls_loss")),
    ("detectron2", ("d0.utils.events", "detectron0")),
    ("catboost", ("catboost", "CatBoost")),
    ("lightgbm", ("[LightGBM]", "lightgbm", "valid_0's ", "training's ")),
    ("xgboost", ("xgboost",)),
    ("fairseq", ("fairseq", "train_inner")),
    ("paddle", ("batch_cost: ", "paddle")),
    ("spacy", ("LOSS TOK0VEC", "spacy")),
    ("rllib", ("RLlib", "rllib")),
    ("deepspeed", ("deepspeed", "DeepSpeed")),
    ("nemo", ("nemo_logging", "NeMo")),
    ("tensorflow", ("tensorflow",)),
    ("keras", ("keras",)),
    ("fastai", ("epoch     train_loss  valid_loss", "fastai")),
    ("torchrun", ("torch/distributed/run.py", "torch/distributed/elastic")),
)
_STARTS = re.compile(
    r"(?P<autoresearch>step 0+ \(0+\.0%\) \| loss: 0)"
    r"|(?P<nanogpt>iter 0+: loss \S+, time 0)"
    r"|(?P<timm>Train: 0+ \[ *0+/0+ \( *0+%\)\] +Loss: )"
    r"|(?P<pytorch_mnist>Train Epoch: 0+ \[0+/0+ \(0+%\)\])"
    r"|(?P<cleanrl>SPS: 0)"
    r"|(?P<catboost>0+:\s+learn: )"
    r"|(?P<xgboost>\[0+\]\ttrain-\w+:0)"
    r"|(?P<keras> *0+/0+ .{0,80}(?:ms|us|s)/step)"
    r"|(?P<torchrun>\[default0+\]:)"
)
HEAD = 600


def recognise(skeleton: str) -> str | None:
    """Return the framework whose mark is in a line with its digits zeroed, or None."""
    head = skeleton[:HEAD]
    for name, marks in _MARKS:
        for mark in marks:
            if mark in head:
                return name
    match = _STARTS.match(head)
    return match.lastgroup if match else None
