from __future__ import annotations

from typing import Any

import pytest
from tests.support.diagnoses import stacks

from gpudebug.core.catalogue.frameworks import StartedProgram
from gpudebug.core.diagnosis.facts import facts_of
from gpudebug.core.records import StacksEvidence

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
        ("python train.py --exploration_fraction=0.1 --explorations=3", TRAINS, "other"),
        ("python train.py --model_revision=main --support=1 --division=2", TRAINS, "other"),
        ("python observer.py --observer=1 --preserve=1", {"loss": None}, "other"),
        ("python train.py --loraR=8", TRAINS, "llm"),
        ("python train.py --lr=1", {**TRAINS, **seen("agents/a.py:PPOTrainer", "t.py:makeVecEnv")}, "rl"),
        ("python train.py --lr=1", TRAINS, "other"),
        ("python train.py", {}, "other"),
    ],
)
def test_the_kind_of_a_workload(command: str, evidence: dict[str, Any], kind: str) -> None:
    assert facts_of([evidence], program=StartedProgram(command.split())).kind == kind


def test_what_is_imported_before_a_training_is_not_what_it_does() -> None:
    told = stacks(("other", "imports matplotlib/image.py:a PIL/b.py:c", 1, 9.0, 9.0))
    frames = ("<frozen importlib._bootstrap>:_load", *told.frames[1:])
    imports = {
        "stacks": StacksEvidence(training=told.model_copy(update={"frames": frames})).model_dump(mode="json")
    }
    found = [
        facts_of([e], program=StartedProgram(["python", "t.py"])).kind
        for e in (imports, {**TRAINS, **imports})
    ]
    assert found == ["other", "vision"]


def test_what_the_source_uses_and_takes_as_options_tells_too() -> None:
    def kind(*names: str) -> str:
        return facts_of([TRAINS], program=StartedProgram(["python", "train.py"], names=names)).kind

    assert kind("torchvision.transforms", "PIL.Image") == "vision"
    assert kind("gymnasium.make", "num_envs", "pandas.DataFrame") == "rl"
    assert kind("os.environ", "observer", "pandas.DataFrame") == "other"
    assert kind("data.Corpus", "bptt", "model.RNNModel") == "llm"
    # Options for everything: what most of its names say counts.
    all_of_it = (
        "seq_len",
        "bert",
        "gpt",
        "token",
        "image",
        "img_size",
        "camera",
        "video",
        "crop_mode",
        "vit",
    )
    assert kind(*all_of_it) == "vision"


def test_a_training_that_updates_its_parameters_by_hand_is_no_inference() -> None:
    def kind(frame: str) -> str:
        stacks = {
            "seconds": 9.0, "cpu_s": 9.0, "samples": 90, "frames": ["t.py:f", frame], "code": {},
            "stacks": [["backward", [0, 1], 0, 9.0, 9.0]],
        }  # fmt: skip
        probe = {"pid": 1, "steps": 0, "facts": {}}
        return facts_of([{"probe": probe, "stacks": {"training": stacks}}]).kind

    assert kind("torch/_tensor.py:Tensor.backward") == "other"
    assert kind("autograd/__init__.py:grad") == "inference"
