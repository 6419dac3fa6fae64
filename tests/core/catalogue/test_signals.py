"""The registry of signals: each is said in one sentence, and something tells it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import traces
from tests.support.causes import TEXT, cause, having
from tests.support.diagnoses import facts, stacks
from tests.support.rank_lines import rank
from tests.support.traces import device, host

from gpudebug.core.answers.diagnosis import LayerResult
from gpudebug.core.catalogue.frameworks import StartedProgram
from gpudebug.core.catalogue.model import Condition, Own, Share
from gpudebug.core.catalogue.signals import (
    BELOW_ZERO,
    MOST,
    SIGNALS,
    said,
    said_own,
    said_share,
    search,
    shows,
    stem_of,
)
from gpudebug.core.change import intervention
from gpudebug.core.diagnosis.facts import facts_of
from gpudebug.core.diagnosis.layers import LAYERS
from gpudebug.core.diagnosis.odds import value
from gpudebug.core.diagnosis.tested_causes import StatedHypothesis, causes_of
from gpudebug.core.inside.torch_profile import headline
from gpudebug.core.records import DeviceInfo, Evidence, ProbeEvidence, StacksEvidence
from gpudebug.core.trace.summary import summarise
from gpudebug.engine.run import catalogue


@pytest.mark.parametrize("name", SIGNALS)
def test_a_signal_is_said_in_one_sentence_with_its_value(name: str) -> None:
    signal = SIGNALS[name]
    assert signal.said.count("{}") == 1
    assert signal.unit in ("share", "%", "pp", "s", "MB", "1/s", "count", "yes", "word")
    assert signal.source in (
        *("samples", "probe", "stacks", "log", "trace", "command", "host", "reference", "layer"),
    )
    assert value(0.5, signal.unit)


def test_what_can_be_below_zero_has_its_sentence() -> None:
    assert set(BELOW_ZERO) <= set(SIGNALS)
    assert all(sentence.count("{}") == 1 for sentence in BELOW_ZERO.values())


PROBE: dict[str, Any] = {
    "pid": 1, "steps": 50, "span_steps": 40, "start_s": 1.0, "end_s": 5.0, "alloc_retries": 1,
    "cpu_cores": 1.0, "step_time_p50_s": 0.1, "step_time_p95_s": 0.2, "backwards_per_step": 1.0,
    "blocking_reads_per_step": 1.0, "inputs_per_step": 64.0, "rows_per_backward": 64.0,
    "acts": {"count": 400, "rows": 400.0, "seconds": 0.4},
    "stall_every_steps": 9.0, "slowing_part": "forward", "syncs_per_step": 1.0,
    "loader_starts_per_step": 0.1, "world_size": 2,
    **{name: 0.1 for name in ProbeEvidence.model_fields if name.endswith("_share")},
    **{way: {"count": 40, "mb": 8.0, "seconds": 0.1, "pinned_share": 0.5} for way in ("h2d", "d2h")},
    "ranks": [{"pid": 1, "steps": 50, "data_wait_share": w} for w in (0.1, 0.3)],
    "facts": {
        "device": "cuda:0", "parameter_dtype": "float32", "threads": 8,
        "optimizers": [{"steps": 50, "weights": 9}],
        "loaders": [
            {"workers": 2, "persistent_workers": True, "prefetch_factor": 2, "pin_memory": True, "fetched": 9}
        ],
        "amp": {"enabled": True}, "compile": {"graph_breaks": 2}, "distributed": {"backend": "nccl"},
        "anomaly": False, "deterministic": False, "launch_blocking": False, "cudnn_benchmark": True,
    },
}  # fmt: skip
EVIDENCE: dict[str, Any] = {
    "run": "0001", "role": "baseline-workload", "outcome": "COMPLETED", "utilisation": 40.0, "data_s": 0.1,
    "update_s": 0.2, "latency_p50_s": 0.3, "batch_size": 8, "framework": "lerobot", "loss": {"points": 9},
    "failure": {"kind": "exception", "lines": ["ValueError: x"]}, "peak_device_mb": 2000.0,
    "peak_rss_mb": 900.0,
    "conditions": {
        "foreign_procs": 0, "foreign_cpu": 1.0, "throttle": {"hw_thermal": 0.5}, "read_mb_s": 1.0,
        "write_mb_s": 1.0, "cpu_cores": 2.0, "cores": 4.0, "cpu_stolen": 10.0,
    },
    "working": 0.5, "devices": [{"index": i, "uuid": f"GPU-{i}", "name": "D"} for i in range(2)],
    "awaited": {
        "index": 0, "uuid": "GPU-0", "state": "idle", "share": 0.3, "times": 9, "length_s": 1.0,
        "alike": True,
    },
    "probe": PROBE,
    "ranks": [rank(0), rank(1)],
    "stacks": StacksEvidence(
        training=stacks(("forward", "t.py:f", 1, 1.0, 1.0)).model_copy(update={"starved_s": 0.1}),
        workers=stacks(("data", "d.py:g", 2, 1.0, 1.0), code={"d.py:g:2": ""}).model_copy(
            update={"starved_s": 0.1}
        )
    ),
}  # fmt: skip
TRACE = [
    host("user_annotation", "ProfilerStep#1", 0, 100),
    host("user_annotation", "ProfilerStep#2", 100, 100),
    host("cuda_runtime", "cudaStreamSynchronize", 5, 10),
    host("cuda_runtime", "cudaLaunchKernel", 2, 2, correlation=7),
    device("k", 20, 50, correlation=7),
    device("Memcpy HtoD (Pageable -> Device)", 80, 5, "gpu_memcpy", bytes=100),
    device("ncclDevKernel_AllReduce", 60, 40, stream=traces.NCCL),
]


UNLOADED = StacksEvidence(training=stacks(("other", "t.py:f", 1, 1.0, 1.0)))
ROLLOUTS = StacksEvidence(
    training=stacks(
        ("eval", "t.py:main t.py:act", 1, 1.0, 1.0),
        ("env", "t.py:main e.py:Maze.step", 1, 1.0, 1.0),
        ("other", "t.py:main t.py:reward", 2, 1.0, 1.0),
        ("other", "t.py:main t.py:update t.py:sample", 3, 1.0, 1.0),
        ("backward", "t.py:main t.py:update", 4, 1.0, 1.0),
        ("optimizer", "t.py:main t.py:update", 5, 1.0, 1.0),
        code={"t.py:reward:2": "", "t.py:sample:3": ""},
    )
)
COMPILED = StacksEvidence(training=stacks(("other", "t.py:f _src/api.py:jit", 1, 1.0, 1.0)))


def told(**machine: Any) -> set[str]:
    """The signals of a run that tells all that evidence can hold, on a device of this kind."""
    info = DeviceInfo(index=0, name="D", memory_total_mb=8000.0, **machine).model_dump(mode="json")
    run = Evidence.model_validate(EVIDENCE).model_dump(mode="json")
    layers = {name: LayerResult(name, "0002", ("0002",), 1.2, 1.2, "by the probe", "so") for name in LAYERS}
    found = facts_of(
        [run],
        [{"devices": [info], "cpu_quota": 2.0}],
        StartedProgram(["python", "train.py"]),
        reference=facts_of([run]),
        layers=layers,
        trace={"analysis": headline(summarise([traces.text(TRACE)]).answer)},
        expected=[{"figure": "steps_per_s", "range": [1.0, 2.0], "measured": 0.5}],
    )
    others = [Evidence.model_validate({**EVIDENCE, "stacks": s}) for s in (UNLOADED, COMPILED)]
    on_cpu = {**PROBE, "facts": {**PROBE["facts"], "device": "cpu"}}
    others.append(Evidence.model_validate({**EVIDENCE, "probe": on_cpu}))
    others.append(Evidence.model_validate({**EVIDENCE, "framework": "sb3", "stacks": ROLLOUTS}))
    alone = {**PROBE, "facts": {**PROBE["facts"], "loaders": [{"workers": 0, "fetched": 9}]}}
    others.append(Evidence.model_validate({**EVIDENCE, "probe": alone}))
    crowded = {**EVIDENCE["conditions"], "cpu_wait": 400.0}
    others.append(Evidence.model_validate({**EVIDENCE, "probe": None, "conditions": crowded}))
    return {*found.signals, *(s for e in others for s in facts_of([e.model_dump(mode="json")]).signals)}


def test_every_signal_is_told_by_something_and_nothing_else_is() -> None:
    assert told(uuid="GPU-1", kind="nvml") | told(uuid="CPU", kind="cpu") == set(SIGNALS)


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
        ("model caching", "no-batching"),
        ("cache intermediate computations", "no-batching"),
        ("batch processing of observations", "no-batching"),
        ("lower image resolution", "pp-high-res"),
        ("camera FPS", "pp-high-res"),
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


@pytest.mark.parametrize(
    ("title", "change", "cause"),
    [
        ("Camera at 640 x 480", "", "pp-high-res"),
        ("The camera at 15 frames a second", "--set --camera-fps=15", "pp-high-res"),
        ("Read the cameras in a thread of their own", "", "robot-io"),
        ("The robot's loop", "--set --camera_async=true", "robot-io"),
    ],
)
def test_a_hypothesis_about_a_camera_is_about_what_it_changes(title: str, change: str, cause: str) -> None:
    stated = StatedHypothesis(title, "", intervention.parse(change) if change else None, None)
    found = causes_of(stated, CAUSES, facts(flags={"camera-fps": "30"}))
    assert [id for id, weight in found.items() if weight > 0.5] == [cause], found


@pytest.mark.parametrize(
    "cause", ["no-engine", "wide-weights", "denoise-steps", "no-batching", "pp-high-res"]
)
def test_what_answers_sooner_says_what_must_stay_equal(cause: str) -> None:
    (found,) = [one for one in CAUSES if one.id == cause]
    assert found.hollow_if is not None and "criteria.also: {" in found.hollow_if


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
