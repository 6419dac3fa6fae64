"""What kind of workload a command is: prior odds of causes differ from one to the other."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from gpudebug.core.diagnosis import stackshares
from gpudebug.core.models import StacksEvidence

_FRAMEWORKS = {
    **dict.fromkeys(("sb3", "cleanrl", "rllib", "tianshou", "skrl"), "rl"),
    **dict.fromkeys(("torchtune", "llamafactory", "nanogpt", "axolotl", "trl"), "llm"),
    **dict.fromkeys(("lerobot", "timm", "ultralytics", "mmdet", "detectron2"), "vision"),
}
_NAMES = {
    "rl": re.compile(
        r"(^|[._/])(n_?|num_?)?envs?($|[._/:\d])|env_(id|name|step|reset|count)|rollouts?|gae|ppo|dqn|sac\b"
        r"|total_timesteps|n_timesteps|replay_?(buffer|store)|vec_?env|gymnasium|(^|/)gym/|teacher_env|episode_len",
        re.IGNORECASE,
    ),
    "llm": re.compile(
        r"token|(^|[._/])lm($|[._/:])|causal_lm|(^|[._/])(run_)?clm|language_model|seq(uence)?_?len|block_size|max_seq|packed|lora"
        r"|(^|[._/])(gpt|llama|qwen|bert)|vocab|perplexity|text_(file|column)",
        re.IGNORECASE,
    ),
    "vision": re.compile(
        r"imag(e|es|ing)|(^|[._/])(img|rgb)|camera|frames?($|[._/:])|video|resolution|backbone|vision|resnet|vit\b"
        r"|conv2d|(^|/)(PIL|torchvision|cv2|albumentations|kornia)[/.]|jpe?g|png|decode_frame|augment|crop",
        re.IGNORECASE,
    ),
    "inference": re.compile(
        r"infer(ence)?($|[._/:-])|serv(e|er|ing)($|[._/:])|n_?requests|num_requests|denois|action_horizon"
        r"|execution_horizon|select_action|predict_action|action_queue",
        re.IGNORECASE,
    ),
}
_BY_FRAMEWORK, _BY_FLAG, _BY_CODE, _MOST = 3.0, 1.5, 1.0, 4
_LEAST = 1.5
_SEEN = 0.005
"""Less of the time than this says nothing of what the work is."""


def kind_of(
    framework: str | None,
    flags: Mapping[str, object],
    printed: Mapping[str, object],
    stacks: StacksEvidence | None,
    evidence: Sequence[Mapping[str, Any]],
    words: Sequence[str] = (),
) -> str:
    """One of the catalogue's kinds; `other` where little gives one away. `words` are names that the command
    and its program's source use: script, subcommands, imports, options of its own."""
    if infers(evidence):
        return "inference"
    points = dict.fromkeys(_NAMES, 0.0)
    if framework in _FRAMEWORKS:
        points[_FRAMEWORKS[framework]] += _BY_FRAMEWORK
    named = [*flags, *(name for name in printed if name not in flags)]
    frames = _frames(stacks) | {word.rstrip("/").rsplit("/", 1)[-1] for word in words}
    for kind, wanted in _NAMES.items():
        points[kind] += _BY_FLAG * min(_MOST, sum(1 for name in named if wanted.search(name)))
        points[kind] += _BY_CODE * min(_MOST, sum(1 for frame in frames if wanted.search(frame)))
    if any(e.get("step_unit") == "timestep" for e in evidence):
        points["rl"] += _BY_FRAMEWORK
    if _optimises(evidence):
        points["inference"] = 0.0
    best = max(points, key=lambda kind: points[kind])
    return best if points[best] >= _LEAST else "other"


def _frames(stacks: StacksEvidence | None) -> set[str]:
    """The frames that the thread or its workers were in for long enough to say what the work is."""
    found: set[str] = set()
    for one in (stacks.training, stacks.workers) if stacks else ():
        for seen in stackshares.seen(one) if one else ():
            if one is not None and seen.seconds >= _SEEN * one.seconds:
                found.update(seen.frames)
    return found


def _optimises(evidence: Sequence[Mapping[str, Any]]) -> bool:
    """Whether an optimizer stepped or a loss was printed."""
    return any(
        (p.get("facts") or {}).get("optimizers") or p.get("optimizer_share")
        for e in evidence
        if (p := e.get("probe"))
    ) or any((e.get("loss") or {}).get("points") for e in evidence)


def infers(evidence: Sequence[Mapping[str, Any]]) -> bool:
    """Whether no optimizer of the runs ever stepped, and they tell latencies or forwards without a step."""
    told = any(e.get("latency_p50_s") or (e.get("probe") or {}).get("steps") == 0 for e in evidence)
    return told and not _optimises(evidence)
