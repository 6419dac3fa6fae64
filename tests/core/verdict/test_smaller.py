"""Which flags make the model, or what it sees, smaller by their own names."""

from __future__ import annotations

import pytest

from gpudebug.core.change.intervention import parse
from gpudebug.core.verdict.smaller import smaller

SMALLER = [
    "--seq_len", "--block_size", "--max_length", "--image_size", "--img-size", "--imgsz", "--data.crop_size",
    "--resolution", "--num_frames", "--n_obs_steps", "--hidden_size", "--dim_model", "--n_embd", "--d_model",
    "--model.num_hidden_layers", "--n_layer", "--policy.n_decoder_layers", "--num_layers", "--mlp_dim",
    "--clip_seconds", "--clip-duration", "--data.segment_duration", "--max_duration", "--train.audio_secs",
]  # fmt: skip
OTHERS = [
    "--batch_size", "--num_workers", "--lr", "--steps", "--log_freq", "--eval_interval", "--prefetch",
    "--queue_size", "--buffer_size", "--cache_size", "--n_action_steps", "--chunk", "--num_threads",
    "--window", "--warmup_s", "--log_seconds", "--timeout_s",
]  # fmt: skip


@pytest.mark.parametrize("flag", SMALLER)
def test_smaller_by_a_flag(flag: str) -> None:
    argv = ["python", "train.py", f"{flag}=64"]
    assert smaller(parse(f"--set {flag}=32"), argv, {}) == f"{flag} goes from 64 to 32"
    assert smaller(parse(f"--set {flag}=128"), argv, {}) is None
    assert smaller(parse(f"--set {flag}=other"), argv, {}) is None


@pytest.mark.parametrize("flag", OTHERS)
def test_what_makes_nothing_smaller(flag: str) -> None:
    assert smaller(parse(f"--set {flag}=32"), ["python", "train.py", f"{flag}=64"], {}) is None


def test_the_old_value_may_be_printed_and_is_not_guessed() -> None:
    change, argv = parse("--set --image_size=112"), ["python", "train.py"]
    assert smaller(change, argv, {"data.image_size": "224"}) == "--image_size goes from 224 to 112"
    assert smaller(change, argv, {}) is None


def test_tokens_count_what_a_shorter_sequence_gets_done() -> None:
    argv = ["python", "train.py", "--block_size=64", "--n_layer=4"]
    assert smaller(parse("--set --block_size=32"), argv, {}, by_tokens=True) is None
    assert smaller(parse("--set --n_layer=2"), argv, {}, by_tokens=True) is not None


def test_a_name_of_the_same_option_is_as_good() -> None:
    argv = ["python", "train.py", "-s", "224"]
    found = smaller(parse("--set -s=112"), argv, {}, synonyms=[("--image_size", "-s")])
    assert found == "-s goes from 224 to 112"


def test_code_and_variables_are_shown_by_runs() -> None:
    argv = ["python", "train.py", "--image_size=224"]
    assert smaller(parse("--code"), argv, {}) is None
    assert smaller(parse("--unset --image_size"), argv, {}) is None
