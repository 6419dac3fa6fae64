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
    ("seed 000", "no compilation: torch.compile", "launch-bound", r"torch\.compile\(model\)"),
    ("seed 000", "RTC slower by more than 50 %", "rtc-guidance", r"half as slow again"),
    ("seed 000", "guidance weight lower, guidance simpler", "rtc-guidance", r"max_guidance_weight lower"),
    ("seed 000", "guidance compiled", "rtc-guidance", r"torch\.compile"),
    (
        "seed 000",
        "inference_delay is calculated rightly",
        "rtc-guidance",
        r"how `inference_delay` is computed",
    ),
    ("seed 000", "execution horizon at least 10 to 20", "short-horizon", r"at least 10 to 20"),
    ("seed 000", "execution horizon of 30 where RTC is slow", "short-horizon", r"rtc\.execution_horizon: 30"),
    ("seed 000", "queue operations are slow: ring buffer", "action-queue", r"ring buffer"),
    ("seed 000", "a large prev_actions buffer", "action-queue", r"previous actions that grows"),
    (
        "seed 000",
        "robot communication: get_observation, send_action",
        "robot-io",
        r"get_observation`, `send_action",
    ),
    ("seed 000", "increase the baud rate", "robot-io", r"(?i)raise the bus's baud rate"),
    (
        "seed 000",
        "reduce the action frequency, the protocol",
        "robot-io",
        r"(?s)lower the rate.*protocol layer",
    ),
    ("seed 000", "enough iterations after warm-up", "cold-start", r"run of few requests"),
    (
        "seed 000",
        "at least 10 iterations, 100 for stable figures",
        "probe-empty",
        r"At least 10 iterations.*100",
    ),
    (
        "seed 000",
        "profiling is empty: not enabled, short-circuited",
        "probe-empty",
        r"(?s)never enabled.*returned early",
    ),
    ("seed 000", "Pi0 on MPS takes 100 to 200 ms", "cfg-below-norm", r"100 to 200 ms an inference of Pi0"),
    ("seed 001", "drawing RGB observations takes 25.3 %", "env-render", r"25\.3 %"),
    ("seed 001", "grid, walls, robots, target", "env-render", r"grid, walls, robots,\s+target"),
    ("seed 001", "12.5 ms an observation", "env-render", r"12\.5 ms"),
    ("seed 001", "the ConvLSTM's forward and layers", "rnn-steps", r"(?s)ConvLSTM.*12\.5 %"),
    ("seed 001", "figures are all zeros", "probe-empty", r"zeros"),
    ("seed 002", "ZeroMQ client and server", "client-server", r"ZeroMQ"),
    (
        "seed 002",
        "0.5 to 1.0 s against 0.1 to 0.3 s, 2 to 5 times",
        "client-server",
        r"(?s)0\.1 to 0\.3 s.*2 to 5 times",
    ),
    (
        "seed 002",
        "tensors are serialised for each request",
        "serialization",
        r"tensors serialised for each request",
    ),
    ("seed 002", "denoising steps 4, 2, 1", "denoise-steps", r"4 to 2, at least 1"),
    ("seed 002", "cold start: warm up with dummy inference", "cold-start", r"dummy batch"),
    ("seed 002", "action horizon 8, or 4 to 6", "short-horizon", r"(?s)8 is a usual value, 4 to 6"),
    ("seed 002", "TensorRT 2 to 3 times, INT8", "kernel-bound", r"(?s)TensorRT \(2 to 3 times.*INT8"),
    ("seed 002", "custom CUDA kernels", "launch-bound", r"custom CUDA kernels"),
    ("seed 002", "the wrong device", "cfg-cpu", r"device: cuda"),
    ("seed 002", "batch observations, cache, overlap", "no-batching", r"(?s)[Cc]ache by content.*overlap"),
    (
        "seed 003",
        "GPU to CPU takes 5+ ms, about 50 %",
        "teacher-roundtrip",
        r"5 ms\s+and more for the copy, about half",
    ),
    (
        "seed 003",
        "pre-allocate CPU buffers, fewer transfers",
        "teacher-roundtrip",
        r"pinned buffer that is allocated once",
    ),
    ("seed 003", "no teacher in the PPO phase", "teacher-roundtrip", r"phase that trains without it"),
    (
        "seed 003",
        "Nim calls take 3+ ms, about 30 %",
        "env-native",
        r"(?s)3 ms or\s+more a call and about 30 %",
    ),
    ("seed 003", "reduce num_envs", "env-native", r"fewer environments"),
    (
        "seed 003",
        "replay store takes 2+ ms, about 10 %",
        "replay-store",
        r"2 ms\s+and more a store, about a tenth",
    ),
    (
        "seed 003",
        "the student's forward, about 10 %: mixed precision",
        "no-amp",
        r"student's forward that takes about a tenth",
    ),
    ("seed 003", "try a batch of 1024", "batch-small", r"1024"),
    (
        "seed 003",
        "the table of expected steps a second",
        "cfg-below-norm",
        r"(?s)V100 800 to\s+1200.*4000 to 6000.*150 to 250",
    ),
    ("seed 003", "below half of it the configuration is wrong", "cfg-below-norm", r"less than half"),
    ("seed 004", "per-step reads of values", "sync-item", r"\.item\(\)"),
    ("seed 004", "a property that reads the device", "sync-hidden", r"has_relative_stats"),
    ("seed 004", "a table rebuilt in Python in each forward", "py-hot-forward", r"53 x 512"),
    (
        "seed 004",
        "good above 80 %, poor below 30 %",
        "cfg-below-norm",
        r"(?s)above\s+80 % utilisation is good, below 30 % poor",
    ),
)
CAUSES = (
    *("dl-no-workers", "dl-few-workers", "dl-oversubscribed", "dl-quota", "dl-storage", "dl-network"),
    *("dl-video-decode", "dl-shallow-prefetch", "dl-worker-respawn", "dl-redundant-frames", "dl-float-ipc"),
    *("host-mem-pressure", "pp-resize-cpu", "pp-high-res", "pp-res-mismatch", "pp-augment"),
    *("pp-relative-stats", "pp-postprocess", "pad-waste", "h2d-pageable", "h2d-per-step-create"),
    *("pcie-degraded", "eval-frequent", "checkpoint", "logging", "alloc-retry", "realloc", "empty-cache"),
    *("oom-fallback", "offload", "throttle", "gpu-contention", "cpu-contention"),
    *("sync-item", "sync-hidden", "sync-dynamic-shape", "sync-explicit", "sync-observer", "launch-bound"),
    *("batch-small", "optimizer-loop", "no-amp", "recompute", "kernel-bound", "rnn-steps"),
    *("py-hot-forward", "py-gil", "py-gc", "debug-mode", "env-step", "env-render", "env-native"),
    *("teacher-roundtrip", "replay-store", "tiny-policy", "client-server", "serialization", "denoise-steps"),
    *("short-horizon", "rtc-guidance", "action-queue", "robot-io", "no-batching", "comm-exposed"),
    *("straggler", "comm-config", "metric-sync", "cold-start", "recompile", "cudnn-search", "cfg-cpu"),
    *("cfg-below-norm", "probe-empty"),
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
