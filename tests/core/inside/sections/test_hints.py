"""Advice by the name of a section."""

from __future__ import annotations

import pytest

from gpudebug.core.inside.sections.hints import hint

NAMED = {
    "GPU->CPU": "pinned buffers",
    "gpu_to_cpu": "pinned buffers",
    "h2d_copy": "non_blocking=True",
    "to_device": "non_blocking=True",
    "get_actions.preprocessing": "smaller or fewer images",
    "env_rgb_rendering": "smaller or fewer images",
    "get_actions.action_queue_merge": "ring buffer",
    "rtc.action_merging": "ring buffer",
    "get_actions.postprocessing": "whole batches",
    "simulated_data_collection": "fewer environments",
    "Replay Store": "allocated once",
    "serialise_obs": "serialise less often",
    "checkpoint": "save less often",
    "data_loading": "more workers",
    "robot.get_observation": "lower the resolution",
    "rtc.guidance_computation": "lower its weight",
    "Teacher Total": "leave the teacher out",
    "Student Forward": "mixed precision",
    "get_actions.policy_inference": "mixed precision",
    "convlstm_forward_pass": "mixed precision",
    "optimizer_step": "fused optimizer",
    "Stack+Back": "reuse tensors",
    "env_step": "fewer environments",
    "evaluate": "evaluate less often",
    "logging": "log less often",
}


@pytest.mark.parametrize(("name", "words"), NAMED.items(), ids=NAMED)
def test_a_name_brings_its_advice(name: str, words: str) -> None:
    assert words in (hint(name) or "")


@pytest.mark.parametrize("name", ["", "x", "training_total", "step", "logits", "catalog", "🙂", "retrieval"])
def test_a_name_that_says_nothing_brings_none(name: str) -> None:
    assert hint(name) is None


def test_a_name_of_any_length_is_quick() -> None:
    assert hint("z" * 10_000_000 + "data") is None
