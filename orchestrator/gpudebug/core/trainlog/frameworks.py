"""Which framework wrote a log. A label for people: nothing is parsed differently because of it."""

from __future__ import annotations

import re

_SIGNS = (
    ("sb3", r"Wrapping the env in a |stable_baselines0|total_timesteps +\| "),
    ("rsl_rl", r"Mean value_function loss|Learning iteration 0+/0+"),
    ("lerobot", r"ot_train\.py:0|lerobot|smpl:0"),
    ("lightning", r"lightning|`Trainer\.fit`|v_num[=:]"),
    ("mmengine", r"mmengine|mmcv"),
    ("megatron", r"elapsed time per iteration \(ms\)"),
    ("torchtune", r"torchtune"),
    ("torchtitan", r"torchtitan|\[titan\]"),
    ("hf_trainer", r"'train_runtime'|'grad_norm': |\[transformers\]|transformers/trainer\.py"),
    ("accelerate", r"Distributed environment: |accelerate/"),
    ("autoresearch", r"^step 0+ \(0+\.0%\) \| loss: .* \| lrm: "),
    ("nanogpt", r"^iter 0+: loss 0+\.0+, time 0+\.0+ms|tokens per iteration will be"),
    ("timm", r"^Train: 0+ \[ *0+/0+ \( *0+%\)\] +Loss: |timm"),
    ("pytorch_mnist", r"^Train Epoch: 0+ \[0+/0+ \(0+%\)\]"),
    ("cleanrl", r"^SPS: 0|cleanrl"),
    ("ultralytics", r"Ultralytics|box_loss +cls_loss"),
    ("detectron0", r"d0\.utils\.events|detectron0"),
    ("catboost", r"^0+:\s+learn: |catboost"),
    ("lightgbm", r"\[LightGBM\]|lightgbm|valid_0's "),
    ("xgboost", r"xgboost|^\[0+\]\ttrain-\w+:0"),
    ("fairseq", r"fairseq|train_inner"),
    ("paddle", r"batch_cost: |paddle"),
    ("spacy", r"LOSS TOK0VEC"),
    ("rllib", r"RLlib|ray/rllib|rllib"),
    ("deepspeed", r"deepspeed|DeepSpeed"),
    ("nemo", r"nemo_logging|NeMo"),
    ("tensorflow", r"tensorflow"),
    ("keras", r"^ *0+/0+ .*(?:ms|us|s)/step|keras"),
    ("fastai", r"^epoch +train_loss +valid_loss|fastai"),
    ("torchrun", r"torch/distributed/(?:run|elastic)|^\[default0\]:"),
)
_NAMES = [name.replace("0", "2") for name, _ in _SIGNS]
_ANY = re.compile("|".join(f"({sign})" for _, sign in _SIGNS))


def recognise(skeleton: str) -> str | None:
    """The framework whose mark stands in a line with its digits zeroed, or None."""
    match = _ANY.search(skeleton)
    return _NAMES[match.lastindex - 1] if match and match.lastindex else None
