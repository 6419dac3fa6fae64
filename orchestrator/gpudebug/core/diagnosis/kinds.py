"""What kind of workload a command is: prior odds of causes differ from one to the other."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from gpudebug.core.inside.stacks import shares
from gpudebug.core.lazy import regex
from gpudebug.core.records import StacksEvidence

_FRAMEWORKS = {
    **dict.fromkeys(("sb3", "cleanrl", "rllib", "tianshou", "skrl"), "rl"),
    **dict.fromkeys(("torchtune", "llamafactory", "nanogpt", "axolotl", "trl"), "llm"),
    **dict.fromkeys(("lerobot", "timm", "ultralytics", "mmdet", "detectron2"), "vision"),
}
_WORD = regex(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
"""Where a word begins in a name such as `PPOTrainer` or `makeVecEnv`."""


def _any_of(begins: str, whole: str) -> re.Pattern[str]:
    """Expressions of words of a name as `_apart` writes it: what one begins with, and what is whole words."""
    return re.compile(rf"(?<![a-z])(?:{begins}|(?:{whole})(?![a-z]))")


_NAMES = {
    "rl": _any_of(
        r"rollout|gymnasium|vec_?env|(total|n|num)_timesteps|replay_?(buffer|store)|episode_len",
        r"(n_?|num_?)?envs?|gym|gae|ppo|dqn|sac",
    ),
    "llm": _any_of(
        r"token|causal_?lm|language_?model|seq(uence)?_?len|block_size|max_seq|gpt|llama|qwen|bert|vocab"
        r"|perplexity|text_(file|column)|corpus|bptt",
        r"lm|clm|packed|q?lo_?ra",
    ),
    "vision": _any_of(
        r"imag(e|ing)|img|rgb|camera|video|resolution|backbone|res_?net|conv_?2d|cv2|jpe?g|augment|crop"
        r"|torchvision|albumentations|kornia|decode_frame",
        r"(?<!data_)frames?|vision|vi_?t|pil|png",
    ),
    "inference": _any_of(
        r"denois|action_(horizon|queue)|execution_horizon|(select|predict)_action",
        r"infer(ence)?|serv(e|er|ing)|(n|num)_?requests",
    ),
}
"""By whole words: `exploration` does not contain `lora`."""
_BY_FRAMEWORK, _BY_FLAG, _BY_CODE, _MOST = 3.0, 1.5, 1.0, 4
_LEAST = 1.5
_BACKWARD = ("torch/_tensor.py:Tensor.backward", "autograd/__init__.py:backward")
_SEEN = 0.005
"""A smaller share of the time does not show what the work is."""
_MOSTLY = 0.5


def kind_of(
    framework: str | None,
    flags: Mapping[str, object],
    printed: Mapping[str, object],
    stacks: StacksEvidence | None,
    evidence: Sequence[Mapping[str, Any]],
    words: Sequence[str] = (),
    framework_kind: str | None = None,
) -> str:
    """One of the catalogue's kinds; `other` if little gives one away. `words` are names that the command
    and its program's source use: script, subcommands, imports, options of its own. `framework_kind` is what
    the framework's file says that it trains."""
    if infers(evidence):
        return "inference"
    points = dict.fromkeys(_NAMES, 0.0)
    of_framework = framework_kind or _FRAMEWORKS.get(framework or "")
    if of_framework is not None:
        points[of_framework] += _BY_FRAMEWORK
    named = [_apart(name) for name in (*flags, *(name for name in printed if name not in flags))]
    frames = _frames(stacks, evidence) | {word.rstrip("/").rsplit("/", 1)[-1] for word in words}
    coded = [_apart(frame) for frame in frames]
    counts = dict.fromkeys(_NAMES, 0)
    for kind, wanted in _NAMES.items():
        flagged, met = (sum(1 for name in names if wanted.search(name)) for names in (named, coded))
        points[kind] += _BY_FLAG * min(_MOST, flagged) + _BY_CODE * min(_MOST, met)
        counts[kind] = flagged + met
    if any(e.get("step_unit") == "timestep" for e in evidence):
        points["rl"] += _BY_FRAMEWORK
    if _optimises(evidence):
        points["inference"] = 0.0
    # A program with options for everything reaches the most of several kinds.
    best = max(points, key=lambda kind: (points[kind], counts[kind]))
    return best if points[best] >= _LEAST else "other"


def _apart(name: str) -> str:
    """Return a name in lower case, its words apart: `ppo_trainer` for `PPOTrainer`."""
    return _WORD.sub("_", name).lower()


def _frames(stacks: StacksEvidence | None, evidence: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the frames that the thread or its workers were in for long enough to say what the work is; what
    is imported before a program trains is not yet used."""
    found: set[str] = set()
    for one in (stacks.training, stacks.workers) if stacks else ():
        if one is None or (shares.importing(one) > _MOSTLY and not _optimises(evidence)):
            continue
        for seen in shares.seen(one):
            if seen.seconds >= _SEEN * one.seconds:
                found.update(seen.frames)
    return found


def _optimises(evidence: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether an optimizer stepped, gradients were computed or a loss was printed."""
    return any(
        (p.get("facts") or {}).get("optimizers") or p.get("optimizer_share")
        for e in evidence
        if (p := e.get("probe"))
    ) or any((e.get("loss") or {}).get("points") or _has_gradients(e) for e in evidence)


def _has_gradients(e: Mapping[str, Any]) -> bool:
    """A program may update its parameters by hand, without an optimizer of PyTorch's. An inference that is
    guided by gradients asks `torch.autograd.grad` for them."""
    watched = (e.get("stacks") or {}).get("training") or {}
    return any(frame.endswith(_BACKWARD) for frame in watched.get("frames") or ())


def infers(evidence: Sequence[Mapping[str, Any]]) -> bool:
    """Whether no optimizer of the runs ever stepped, and they tell latencies or forwards without a step."""
    measured = any(e.get("latency_p50_s") or (e.get("probe") or {}).get("steps") == 0 for e in evidence)
    return measured and not _optimises(evidence)
