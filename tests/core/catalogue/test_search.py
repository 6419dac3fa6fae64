"""Causes by the user's own words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.catalogue.search import MOST, search, stem_of
from gpudebug.engine.run import catalogue

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
