from __future__ import annotations

from typing import Any

import pytest
from tests.support.diagnoses import stacks

from gpudebug.core.diagnosis.facts import facts_of
from gpudebug.core.models import StacksEvidence

TRAINS = {"probe": {"pid": 1, "steps": 9, "facts": {"optimizers": [{"steps": 9}]}}}


def seen(*frames: str) -> dict[str, Any]:
    told = stacks(*(("other", frame, 1, 1.0, 1.0) for frame in frames))
    return {"stacks": StacksEvidence(training=told).model_dump(mode="json")}


@pytest.mark.parametrize(
    ("command", "evidence", "kind"),
    [
        ("lerobot-train --policy.type=act --dataset.repo_id=x", {"framework": "lerobot"}, "vision"),
        ("python train.py --image-size=224 --arch=resnet18", {}, "vision"),
        ("python train.py --lr=1", {**TRAINS, **seen("PIL/Image.py:resize")}, "other"),
        (
            "python train.py --lr=1",
            {**TRAINS, **seen("PIL/Image.py:resize", "data/images.py:load")},
            "vision",
        ),
        ("tune run lora_finetune --config llama.yaml", {"framework": "torchtune"}, "llm"),
        ("python run_clm.py --block_size=512", {}, "llm"),
        ("python train.py --seq-len=256 --tokenizer=bpe", TRAINS, "llm"),
        ("python -m rl_zoo3.train --algo ppo --env Pong", {"framework": "sb3"}, "rl"),
        ("python ppo.py --num-envs=8 --total-timesteps=1000", TRAINS, "rl"),
        ("python ppo.py", {**TRAINS, "step_unit": "timestep"}, "rl"),
        ("python serve.py --requests=100", {"latency_p50_s": 0.01}, "inference"),
        ("python run.py", {"probe": {"pid": 1, "steps": 0, "facts": {}}}, "inference"),
        ("python train.py --inference_steps=3", {**TRAINS, "latency_p50_s": 0.01}, "other"),
        ("python train.py --lr=1", TRAINS, "other"),
        ("python train.py", {}, "other"),
    ],
)
def test_the_kind_of_a_workload(command: str, evidence: dict[str, Any], kind: str) -> None:
    assert facts_of([evidence], argv=command.split()).kind == kind
