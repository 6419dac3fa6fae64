"""What the five seeds name as bottleneck, symptom, fix or threshold stands in the shipped catalogue."""

from __future__ import annotations

import re

import pytest

from gpudebug.edges import catalogue

SEEDS = (
    ("seed 000", "image preprocessing dominates", "pp-resize-cpu", r"image preprocessing dominates"),
    ("seed 000", "preprocessing takes 5 to 20 ms", "pp-resize-cpu", r"5 to 20 ms"),
    ("seed 000", "it grows with the number of cameras", "pp-resize-cpu", r"number of cameras"),
    ("seed 000", "use fewer cameras", "pp-resize-cpu", r"(?i)fix: .*fewer cameras"),
    ("seed 000", "reduce the image resolution", "pp-high-res", r"reducing image resolution"),
    ("seed 000", "post-processing takes 1 to 5 ms", "pp-postprocess", r"1 to 5 ms"),
    ("seed 000", "memory allocation overhead", "realloc", r"memory\s+allocation overhead"),
    ("seed 000", "pre-allocate buffers, reuse tensors", "realloc", r"(?i)fix: preallocate and reuse"),
    ("seed 000", "avoid copies", "realloc", r"avoid copies"),
    ("seed 000", "thermal throttling", "throttle", r"thermal throttling"),
    ("seed 000", "other processes compete for the device", "gpu-contention", r"Other processes"),
    ("seed 000", "other processes compete for the host", "cpu-contention", r"Other programs"),
    ("seed 001", "PIL resizing takes the time", "pp-resize-cpu", r"PIL"),
    ("seed 001", "CRITICAL above 30 %", "pp-resize-cpu", r"30 % of the time \(CRITICAL\)"),
    ("seed 001", "SLOW above 100 ms a call", "pp-resize-cpu", r"100 ms a call \(SLOW\)"),
    ("seed 001", "more than 100 MB at the peak", "realloc", r"100 MB"),
    ("seed 002", "1280 x 720 cameras, 640 x 480 instead", "pp-high-res", r"640 x 480 instead of 1280 x 720"),
    ("seed 002", "the camera's FPS", "pp-high-res", r"FPS"),
    ("seed 002", "the error of a resolution mismatch", "pp-res-mismatch", r"invalid resolution \(640, 480\)"),
    ("seed 002", "resize automatically", "pp-res-mismatch", r"(?i)auto_\?resize"),
    ("seed 002", "out of memory: smaller batch, CPU", "oom-fallback", r"out of memory.*(\n.*){0,3}CPU"),
    ("seed 002", "out of memory: fewer denoising steps", "oom-fallback", r"fewer denoising steps"),
    (
        "seed 003",
        "evaluation every 10 epochs, 50 instead",
        "eval-frequent",
        r"every 50\s+epochs instead of every 10",
    ),
    ("seed 003", "evaluation off while profiling", "eval-frequent", r"evaluate_local"),
    ("seed 003", "pre-allocate NumPy buffers", "realloc", r"NumPy buffers"),
    ("seed 004", "images load as [B, 2, C, H, W]", "dl-redundant-frames", r"\[B, 2, C, H, W\]"),
    ("seed 004", "only [:, -1] is read", "dl-redundant-frames", r"\[:, -1\]"),
    ("seed 004", "double image loading", "dl-redundant-frames", r"double\s+image loading"),
    ("seed 004", "delta_timestamps apply to every key", "dl-redundant-frames", r"delta_timestamps"),
    ("seed 004", "resize and pad", "pp-resize-cpu", r"padded and resized"),
    ("seed 004", "the data is resized to 224 already", "pp-resize-cpu", r"224 x 224"),
    ("seed 004", "relative transformations", "pp-relative-stats", r"relative transformations"),
    ("seed 004", "relative stats normalisation", "pp-relative-stats", r"relative stats normalisation"),
    ("seed 004", "constants rebuilt and copied", "h2d-per-step-create", r"17dc439"),
)
CAUSES = (
    *("dl-no-workers", "dl-few-workers", "dl-oversubscribed", "dl-quota", "dl-storage", "dl-network"),
    *("dl-video-decode", "dl-shallow-prefetch", "dl-worker-respawn", "dl-redundant-frames", "dl-float-ipc"),
    *("host-mem-pressure", "pp-resize-cpu", "pp-high-res", "pp-res-mismatch", "pp-augment"),
    *("pp-relative-stats", "pp-postprocess", "pad-waste", "h2d-pageable", "h2d-per-step-create"),
    *("pcie-degraded", "eval-frequent", "checkpoint", "logging", "alloc-retry", "realloc", "empty-cache"),
    *("oom-fallback", "offload", "throttle", "gpu-contention", "cpu-contention"),
)


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return {file.shown.rsplit("/", 1)[-1].removesuffix(".yaml"): file.text for file in catalogue.shipped()}


@pytest.mark.parametrize(
    ("cause", "pattern"),
    [pytest.param(cause, pattern, id=f"{seed}: {what}") for seed, what, cause, pattern in SEEDS],
)
def test_the_catalogue_names_what_the_seeds_name(texts: dict[str, str], cause: str, pattern: str) -> None:
    assert re.search(pattern, texts[cause]), f"{cause} says nothing of it"


def test_every_cause_is_there(texts: dict[str, str]) -> None:
    assert set(CAUSES) <= set(texts)
