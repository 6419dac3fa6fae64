"""Conditions of the catalogue in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.causes import TEXT, cause, having

from gpudebug.core.catalogue.model import Condition, Own, Share
from gpudebug.core.catalogue.prose import MOST, said, said_own, said_share, search, shows, stem_of
from gpudebug.engine.run import catalogue


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (
            {"signal": "data_wait_share", "above": 0.2},
            "training waits more than 20 % of its time for batches",
        ),
        ({"signal": "gpu_util", "above": 30, "below": 70}, "the device is busy between 30 % and 70 %"),
        ({"signal": "reference_gap_pp", "above": 20}, "the reference is busier by more than 20pp"),
        ({"signal": "loader_workers", "equals": 0}, "loader workers: 0"),
        ({"signal": "loader_used", "equals": True}, "a DataLoader feeds the training: yes"),
        ({"signal": "framework", "equals": "sb3"}, "the framework is sb3"),
        ({"signal": "trains_on", "matches": "^cuda"}, "the parameters live on something like /^cuda/"),
        (
            {"stack": "PIL/", "phase": "forward", "above": 0.1},
            "stacks through /PIL// in the forward phase take more than 10 % of the watched time",
        ),
        (
            {"stack": "a", "code": "b", "of": "workers", "state": "running", "below": 0.5},
            "running loader workers' stacks through /a/ or at lines with /b/ take less than 50 % of the "
            "watched time",
        ),
        (
            {"section": "resize", "above": 0.3},
            "sections named /resize/ take more than 30 % of the profiled time",
        ),
        ({"flag": "workers", "equals": 0}, "the command's /workers/ is 0"),
        ({"printed": "device", "equals": "cpu"}, "the program prints /device/ as cpu"),
    ],
)
def test_a_condition_is_a_sentence(condition: dict[str, object], text: str) -> None:
    assert said(Condition.model_validate(condition)) == text


def test_a_long_expression_is_cut() -> None:
    assert len(said(Condition(stack="x" * 300, above=0.1))) < 150


def test_the_heaviest_sign_shows_a_cause() -> None:
    assert shows(cause()) == "training waits more than 20 % of its time for batches"
    gate = cause(TEXT).model_copy(update={"signature": ()})
    assert shows(gate) == "loader workers: less than 1"
    lighter = cause(having("above: 0.2, weight: 8", "above: 0.2, weight: 1.4"))
    assert shows(lighter).startswith("stacks through thing in the data phase")


def test_shares_and_own_signals() -> None:
    assert said_share(Share(signal="data_wait_share", times=0.5)) == (
        "training waits … of its time for batches, times 0.5"
    )
    assert said_share(Share(stack="a")) == "stacks through /a/ take … of the watched time"
    assert said_own(Own(signal="gpu_util", direction="rises")) == "gpu_util rises (the device is busy …)"


CAUSES = catalogue.load(None).causes


def ids(text: str) -> list[str]:
    return [cause.id for cause in search(CAUSES, text)]


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        ("rendering", "env-render"),
        ("render window", "env-view"),
        ("headless", "env-view"),
        ("too few environments", "env-few"),
        ("num_envs", "env-few"),
        ("simulator on the CPU", "env-sim-cpu"),
        ("mujoco", "env-sim-cpu"),
        ("small policy", "tiny-policy"),
        ("TensorRT", "no-engine"),
        ("quantise", "wide-weights"),
        ("quantization", "wide-weights"),
        ("INT8", "wide-weights"),
        ("fewer denoising steps", "denoise-steps"),
        ("cold start", "cold-start"),
        ("resolution mismatch", "pp-res-mismatch"),
        ("invalid resolution", "pp-res-mismatch"),
        ("tokenizing on the fly", "pp-tokenise"),
        ("tokeniser", "pp-tokenise"),
        ("padding", "pad-waste"),
        ("packing", "pad-waste"),
        ("decode", "dl-video-decode"),
        ("decode backend", "dl-decode-backend"),
        ("torchcodec", "dl-decode-backend"),
        ("keyframe distance", "dl-key-frames"),
        ("GOP", "dl-key-frames"),
        ("double frames", "dl-redundant-frames"),
        ("small files", "dl-small-files"),
        ("webdataset", "dl-small-files"),
        ("cold cache", "dl-cold-cache"),
        ("NFS", "dl-network-disk"),
        ("why is my training slow on lustre", "dl-network-disk"),
        ("profiler", "profiler-on"),
        ("cProfile", "profiler-on"),
        ("debugger", "debugger-on"),
        ("pdb", "debugger-on"),
    ],
)
def test_the_users_words_find_a_cause(words: str, cause: str) -> None:
    assert cause in ids(words)[:3], ids(words)


@pytest.mark.parametrize("words", ["", "?", "xylophone", "the of my"])
def test_words_of_nothing_find_nothing(words: str) -> None:
    assert "xylophone" not in words or ids(words) == []
    assert len(ids(words)) <= MOST


@pytest.mark.parametrize(
    "forms",
    [
        ("render", "renders", "rendered", "rendering", "renderer"),
        ("quantise", "quantize", "quantised", "quantizing", "quantisation", "quantization"),
        ("decode", "decoding", "decoder", "decodes"),
        ("profile", "profiler", "profiling", "profilers"),
        ("tokenise", "tokenizer", "tokenizing"),
    ],
)
def test_the_forms_of_a_word_are_one(forms: tuple[str, ...]) -> None:
    assert len(set(map(stem_of, forms))) == 1


@given(st.text(max_size=300))
def test_any_text_can_be_searched(text: str) -> None:
    assert len(search(CAUSES[:9], text)) <= MOST
