from __future__ import annotations

from typing import Any

import pytest
from tests.support import traces
from tests.support.diagnoses import facts
from tests.support.traces import device, host

from gpudebug.core.answers.diagnosis import LayerResult
from gpudebug.core.catalogue.frameworks import StartedProgram
from gpudebug.core.catalogue.signals import SIGNALS
from gpudebug.core.diagnosis.facts import facts_of, flags_of, of_others, of_trace, words_of
from gpudebug.core.diagnosis.rank import diagnose
from gpudebug.core.inside.torch_profile import headline
from gpudebug.core.trace.summary import summarise
from gpudebug.engine.run import catalogue

LOADER = {
    "workers": 2,
    "batch_size": 8,
    "pin_memory": True,
    "persistent_workers": False,
    "prefetch_factor": 4,
}
PROBE: dict[str, Any] = {
    "pid": 1,
    "steps": 100,
    "span_steps": 50,
    "start_s": 1.0,
    "end_s": 6.0,
    "steps_per_s": 10.0,
    "step_time_p50_s": 0.1,
    "step_time_p95_s": 0.3,
    "data_wait_share": 0.5,
    "forward_share": 0.2,
    "backward_share": 0.1,
    "optimizer_share": 0.05,
    "h2d": {"count": 100, "mb": 25.0, "seconds": 0.5, "pinned_share": 0.25},
    "facts": {
        "device": "cuda:0",
        "loaders": [
            {**LOADER, "workers": 7, "fetched": 1000, "training": False},
            {**LOADER, "fetched": 100, "training": True},
            {**LOADER, "workers": 1, "fetched": 3, "training": True},
        ],
        "optimizers": [{"index": 0, "steps": 100}, {"index": 1, "steps": 50}],
        "amp": {"enabled": False},
        "compile": None,
        "threads": 8,
        "anomaly": False,
        "deterministic": False,
        "cudnn_deterministic": True,
        "parameter_dtype": "float32",
        "distributed": {"backend": "nccl", "world_size": 2},
    },
    "ranks": [{"data_wait_share": 0.5}, {"data_wait_share": 0.1}],
}
GPU: dict[str, Any] = {
    "run": "0001-baseline-workload",
    "duration_s": 10.0,
    "utilisation": 30.0,
    "steps_per_s": 9.0,
    "devices": [{"uuid": "GPU-1"}],
    "peak_device_mb": 4000.0,
    "data_s": 0.03,
    "update_s": 0.01,
    "loss": {"points": 20},
    "framework": "lerobot",
    "conditions": {
        "foreign_procs": 1,
        "throttle": {"sw_power_cap": 0.9, "hw_thermal": 0.4},
        "cpu_cores": 3.0,
        "cores": 4.0,
        "read_mb_s": 12.0,
    },
    "probe": PROBE,
}
RECORD = {"devices": [{"uuid": "GPU-1", "memory_total_mb": 8000.0}], "cpu_quota": 8.0}


def test_every_figure_of_a_run_has_its_signal() -> None:
    found = facts_of([GPU], [RECORD], StartedProgram(["python", "train.py"])).signals
    expected: dict[str, object] = {
        "gpu_util": 30.0,
        "device_stand_in": False,
        "device_idle_share": 0.7,
        "mem_used_share": 0.5,
        "throttled_share": 0.4,
        "foreign_procs": 1,
        "cpu_cores": 3.0,
        "cores_busy_share": 0.75,
        "cpu_quota_throttled": False,
        "trains_on": "cuda",
        "data_wait_share": 0.5,
        "unattributed_share": pytest.approx(0.15),
        "step_time_spread": pytest.approx(3.0),
        "loader_used": True,
        "loader_workers": 2.0,
        "loader_workers_over_cores": 0.5,
        "loader_persistent": False,
        "loader_pinned": True,
        "h2d_copies_per_step": 2.0,
        "h2d_mb_per_step": 0.5,
        "h2d_share": pytest.approx(0.1),
        "h2d_pinned_share": 0.25,
        "threads_over_cores": 4.0,
        "optimizers": 2.0,
        "optimizer_steps_per_iteration": 1.5,
        "amp": False,
        "compiled": False,
        "deterministic": True,
        "world_size": 2.0,
        "backend": "nccl",
        "rank_skew": pytest.approx(0.4),
        "log_data_share": pytest.approx(0.75),
        "loss_points": 20.0,
        "framework": "lerobot",
        "workload_kind": "vision",
    }
    assert {name: found.get(name) for name in expected} == expected
    assert set(found) <= set(SIGNALS)


@pytest.mark.parametrize(
    ("inside", "wait", "ready"),
    [(None, 200.0, 1.25), (None, 100.0, None), (None, None, None), (PROBE, 200.0, None)],
)
def test_without_a_probe_the_kernel_says_how_many_threads_want_a_core(
    inside: object, wait: float | None, ready: float | None
) -> None:
    seen = {**GPU, "probe": inside, "conditions": {**GPU["conditions"], "cpu_wait": wait}}
    assert facts_of([seen], [RECORD]).signals.get("ready_over_cores") == ready


def test_what_nothing_tells_is_absent_and_said() -> None:
    bare = {
        "run": "r",
        "outcome": "COMPLETED",
        "window_reason": "the window is too short",
        "probe_reason": "`probe: false`",
    }
    found = facts_of([bare])
    assert found.signals == {"workload_kind": "other"}
    assert found.absent == {
        "probe": "`probe: false`",
        "stacks": "`probe: false`",
        "log": "the log prints no steps, no loss and no data times",
        "device": "the window is too short",
    }
    assert facts_of([]).runs == ()


def test_why_the_stacks_are_not_there_is_said_as_they_say_it() -> None:
    found = facts_of([{"run": "r", "probe_reason": "no PyTorch", "stacks": {"notes": ["another thread"]}}])
    assert found.absent["stacks"] == "another thread"
    assert found.absent["probe"] == "no PyTorch"


def test_several_runs_give_means_of_what_is_known_and_the_last_ones_facts() -> None:
    other = {**GPU, "run": "0002", "utilisation": 50.0, "duration_s": 20.0, "probe": None, "conditions": {}}
    found = facts_of([GPU, other], [RECORD, RECORD])
    assert found.runs == ("0001-baseline-workload", "0002")
    assert (found.run_s, found.steps_per_s) == (15.0, 9.0)
    assert found.signals["gpu_util"] == 40.0
    assert found.signals["data_wait_share"] == 0.5
    assert "probe" not in found.absent


def test_the_cpu_stands_in() -> None:
    stand_in = {**GPU, "devices": [{"uuid": "CPU"}], "peak_rss_mb": 2000.0}
    found = facts_of([stand_in], [{"devices": [{"uuid": "CPU", "memory_total_mb": 8000.0}]}]).signals
    assert found["device_stand_in"] is True
    assert found["peak_rss_share"] == 0.25
    assert "mem_used_share" not in found


@pytest.mark.parametrize(
    ("argv", "flags", "words"),
    [
        (
            ["python", "train.py", "--num-workers=4", "--amp"],
            {"num_workers": "4", "amp": True},
            ["python", "train.py"],
        ),
        (["/bin/sh", "-c", "python t.py --a 1 | tee x"], {"a": "1"}, ["python", "t.py", "|", "tee", "x"]),
        (["tune", "run", "lora", "dataset.packed=True"], {"dataset.packed": "True"}, ["tune", "run", "lora"]),
        ([], {}, []),
    ],
    ids=str,
)
def test_flags_and_words_of_a_command(argv: list[str], flags: dict[str, object], words: list[str]) -> None:
    assert flags_of(argv) == flags
    assert words_of(argv) == words


def layer(ratio: float | None, *notes: str) -> LayerResult:
    return LayerResult("quiet", "0009", ("0009",), ratio, ratio, "by the probe", "it means this", notes)


def test_layers_expectations_and_the_reference_are_signals_too() -> None:
    good = facts_of([{**GPU, "utilisation": 85.0}])
    row = {"figure": "steps_per_s", "range": [20.0, 40.0], "measured": 5.0}
    layers = {
        "quiet": layer(1.4),
        "cached_batch": layer(None, "no batch was replayed"),
        "double_batch": layer(None),
    }
    found = facts_of([GPU], reference=good, layers=layers, expected=[row])
    assert found.reference is good
    assert found.signals["reference_gap_pp"] == 55.0
    assert found.signals["layer_quiet_ratio"] == 1.4
    assert found.signals["expected_share"] == 0.25
    assert "layer_cached_batch_ratio" not in found.signals
    untold = {name: why for name, why in found.absent.items() if name.startswith("layer_")}
    assert untold == {"layer_cached_batch": "no batch was replayed", "layer_double_batch": "it means this"}


def test_the_line_that_says_why_a_run_ended_is_evidence() -> None:
    said = "ValueError: Video has invalid resolution (640, 480), expected (1280, 720)"
    failed = {"failure": {"kind": "exception", "lines": ["  File x.py", said]}}
    assert facts_of([failed]).signals["failure_text"] == said
    assert "failure_text" not in facts_of([{"failure": {"kind": "exception", "lines": []}}]).signals
    assert len(str(facts_of([{"failure": {"lines": ["x" * 900]}}]).signals["failure_text"])) < 200


def test_a_resolution_that_the_model_does_not_take_is_named_by_its_own_error() -> None:
    said = "ValueError: Video has invalid resolution (640, 480), expected (1280, 720)"
    known = catalogue.load(None)
    failed = facts_of([{"failure": {"kind": "exception", "lines": [said]}}])
    other = facts_of([{"failure": {"kind": "exception", "lines": ["ValueError: lr"]}}])
    named, unnamed = (diagnose(known.causes, each).causes for each in (failed, other))
    assert named[0].id == "pp-res-mismatch"
    assert unnamed[0].id != "pp-res-mismatch"


ARGV = ["./tools/run.py", "train"]


def test_the_kind_of_workload_that_a_framework_trains_counts() -> None:
    assert facts_of([{}], program=StartedProgram(ARGV, "metta", "rl")).kind == "rl"
    assert facts_of([{}], program=StartedProgram(ARGV)).kind == "other"


def test_a_stand_in_that_others_compute_on_does_not_idle() -> None:
    watched = {
        "training": {
            "seconds": 10.0, "cpu_s": 5.0, "samples": 300, "frames": ["t.py:main"], "code": {},
            "stacks": [["forward", [0], 0, 10.0, 5.0]], "starved_s": 4.0,
        }
    }  # fmt: skip
    here = {"utilisation": 50.0, "stacks": watched}
    crowded = facts_of([{**here, "devices": [{"uuid": "CPU"}]}]).signals
    assert crowded["device_idle_share"] == pytest.approx(0.1)
    assert facts_of([{**here, "devices": [{"uuid": "GPU-1"}]}]).signals["device_idle_share"] == 0.5


ANALYSIS = {
    "busy_share": 0.4,
    "span_s": 2.0,
    "mean_kernel_us": 6.0,
    "kernels_per_step": None,
    "steps": {"kernels_per_step": 900.0},
    "memcpy": [
        {"kind": "HtoD", "host_memory": "Pageable", "count": 3},
        {"kind": "HtoD", "host_memory": "Pinned", "count": 1},
        {"kind": "DtoH", "host_memory": "Pageable", "count": 50},
    ],
    "syncs": [
        {"kind": "runtime", "seconds": 0.3},
        {"kind": "runtime", "seconds": 0.1},
        {"kind": "operator", "seconds": 0.35},
    ],
}


def test_a_trace() -> None:
    assert of_trace({"file": "trace.json.gz", "analysis": ANALYSIS}) == {
        "trace_busy_share": 0.4,
        "kernels_per_step": 900.0,
        "mean_kernel_us": 6.0,
        "memcpy_pageable_share": 0.75,
        "sync_share": pytest.approx(0.2),
        "nccl_share": None,
        "nccl_exposed_share": None,
        "nccl_overlap_share": None,
    }


@pytest.mark.parametrize(
    ("rows", "share"),
    [
        ([], 0.0),
        ([("runtime", 0.3), ("operator", 0.31), ("operator", 0.305)], 0.15),
        ([("operator", 0.31), ("operator", 0.305)], 0.155),
        ([("runtime", 3.0)], 1.0),
        ([(None, 0.3)], None),
        (None, None),
    ],
    ids=str,
)
def test_a_wait_is_counted_once(rows: list[tuple[str | None, float]] | None, share: float | None) -> None:
    syncs = None if rows is None else [{"kind": kind, "seconds": seconds} for kind, seconds in rows]
    found = of_trace({"analysis": {**ANALYSIS, "syncs": syncs}})["sync_share"]
    assert found == (None if share is None else pytest.approx(share))


def test_shares_of_a_real_trace_are_of_the_traced_time() -> None:
    recorded = [
        host("cpu_op", "aten::item", 0, 50, **{"External id": 5}),
        host("cpu_op", "aten::_local_scalar_dense", 1, 48, **{"External id": 6}),
        host("cuda_runtime", "cudaStreamSynchronize", 5, 40, **{"External id": 6}),
        device("k", 0, 50),
        device("ncclDevKernel_AllReduce", 40, 40, stream=traces.NCCL),
        host("cpu_op", "aten::mm", 190, 10),
    ]
    found = of_trace({"analysis": headline(summarise([traces.text(recorded)]).answer)})
    expected = {
        "sync_share": pytest.approx(0.2),
        "nccl_share": pytest.approx(0.2),
        "nccl_exposed_share": pytest.approx(0.15),
        "nccl_overlap_share": pytest.approx(0.25),
    }
    assert {name: found[name] for name in expected} == expected


def test_communication_is_the_mean_of_several_devices() -> None:
    told = {**ANALYSIS, "devices": [{}, {}], "nccl": {"seconds": 1.0, "exposed_s": 0.5}}
    found = of_trace({"analysis": told})
    assert (found["nccl_share"], found["nccl_exposed_share"]) == (0.25, 0.125)


@pytest.mark.parametrize("trace", [None, {}, {"why": "not there"}, {"file": "t", "analysis": None}], ids=str)
def test_no_trace_tells_nothing(trace: dict[str, Any] | None) -> None:
    assert of_trace(trace) == {}


@pytest.mark.parametrize(
    ("figure", "measured", "share"),
    [
        ("steps_per_s", 5.0, 0.5),
        ("step_time_p50", 40.0, 0.5),
        ("steps_per_s", None, None),
        ("latency_p50", 10.0, 2.0),
    ],
)
def test_what_is_expected(figure: str, measured: float | None, share: float | None) -> None:
    row = {"figure": figure, "range": [10.0, 20.0], "measured": measured}
    assert of_others(None, None, [row])["expected_share"] == share


def test_the_gap_to_the_reference() -> None:
    assert of_others(30.0, facts(gpu_util=85.0), [])["reference_gap_pp"] == 55.0
    assert of_others(30.0, facts(), [])["reference_gap_pp"] is None
    assert of_others(None, facts(gpu_util=85.0), [])["reference_gap_pp"] is None
