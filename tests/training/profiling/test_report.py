"""The report: its keys, its explanations, what it says of itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.profiled import places, report_of, run

from gpudebug.training.profiling import memory
from gpudebug.training.profiling import report as reports
from gpudebug.training.profiling.report import surroundings
from gpudebug.training.profiling.state import CATEGORIES


def test_the_keys_of_a_report(tmp_path: Path) -> None:
    code = """
    enable_profiling(warmup=1)
    for _ in range(13):
        with profile_section("training_total"):
            with profile_section("leaf"): pass
    """
    report = report_of(code, tmp_path)
    assert set(report) == {
        "format", "version", "pid", "rank", "python", "surroundings", "wall_s",
        "enabled_s", "warmup", "iterations", "sync",
        "categories", "capped", "open", "notes", "sections", "tree",
    }  # fmt: skip
    assert (report["format"], report["version"], report["rank"]) == ("gpudebug-sections", 1, None)
    assert (report["warmup"], report["iterations"], report["sync"], report["capped"]) == (1, 12, False, 0)
    assert set(report["sections"][0]) == {
        "name", "category", "calls", "errors", "total_s", "self_s", "mean_s", "min_s", "max_s", "p50_s",
        "p95_s", "mem_peak_mb", "gpu_peak_mb",
    }  # fmt: skip
    assert report["sections"][0]["name"] == "training_total"
    assert set(report["tree"][0]) == {"name", "calls", "total_s", "children"}


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("", "profiling is not enabled: call enable_profiling()"),
        ("enable_profiling()", "no section was ever executed"),
        (
            "enable_profiling()\nfor _ in range(9):\n  with profile_section('x'): pass",
            "fewer than 10 iterations",
        ),
    ],
)
def test_emptiness_explains_itself(tmp_path: Path, code: str, said: str) -> None:
    assert said in report_of(code, tmp_path)["notes"][0]


def test_enough_iterations_need_no_explanation(tmp_path: Path) -> None:
    code = "enable_profiling()\nfor _ in range(10):\n  with profile_section('x'): pass"
    (note,) = report_of(code, tmp_path)["notes"]
    assert "ns that a section takes itself for" in note


def test_sections_deeper_than_is_shown_are_counted(tmp_path: Path) -> None:
    code = """
    enable_profiling()
    def go(depth):
        with profile_section(f"depth-{depth}"):
            if depth: go(depth - 1)
    go(150)
    """
    report = report_of(code, tmp_path)
    assert len(report["sections"]) == 151
    assert len(places(report)) == 100
    assert any("more than 100 deep" in note for note in report["notes"])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("env_rgb_rendering", "Rendering"),
        ("env_reset", "Environment"),
        ("env", None),
        ("my_env_reset", None),
        ("simulated_training_step", "Training"),
    ],
)
def test_the_longest_prefix_wins(name: str, expected: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports.state, "categories", CATEGORIES)
    assert reports.category(name) == expected
    monkeypatch.setattr(reports.state, "categories", dict(reversed(CATEGORIES.items())))
    assert reports.category(name) == expected
    monkeypatch.setattr(reports.state, "categories", {})
    assert reports.category(name) is None
    monkeypatch.setattr(reports.state, "categories", {"": "Everything"})
    assert reports.category(name) == "Everything"


def among(
    monkeypatch: pytest.MonkeyPatch, *words: str, torch: Any = None, dynamo: Any = None
) -> dict[str, Any]:
    monkeypatch.setattr(sys, "argv", ["train.py", *words])
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch._dynamo.utils", dynamo)
    return surroundings()


def test_options_that_decide_how_much_a_call_does(monkeypatch: pytest.MonkeyPatch) -> None:
    found = among(
        monkeypatch,
        "--rtc.execution_horizon=20",
        "--batch-size",
        "64",
        "trainer.batch_size=1024",
        "--policy.type=act",
        "--policy.device=cuda",
        "--use_torch_compile",
        "--denoising-steps",
        "4",
        "--api_key=abc",
        "--dtype=/home/you/secret/path",
        "batch_size",
    )
    assert found["settings"] == {
        "rtc.execution_horizon": "20",
        "batch_size": "64",
        "trainer.batch_size": "1024",
        "policy.type": "act",
        "policy.device": "cuda",
        "use_torch_compile": "true",
        "denoising_steps": "4",
    }
    assert found["cpus"] > 0


@pytest.mark.parametrize(("frames", "compiled"), [({"ok": 3}, True), ({}, False)])
def test_whether_something_was_compiled(
    monkeypatch: pytest.MonkeyPatch, frames: dict[str, int], compiled: bool
) -> None:
    cuda = SimpleNamespace(is_initialized=lambda: True, get_device_name=lambda: "NVIDIA A100")
    torch = SimpleNamespace(__version__="2.9.0", cuda=cuda)
    found = among(monkeypatch, torch=torch, dynamo=SimpleNamespace(counters={"frames": frames}))
    assert (found["compiled"], found["device"], found["torch"]) == (compiled, "NVIDIA A100", "2.9.0")


def test_apples_gpu_is_named_without_a_utilisation(monkeypatch: pytest.MonkeyPatch) -> None:
    mps = SimpleNamespace(is_available=lambda: True)
    torch = SimpleNamespace(
        cuda=SimpleNamespace(is_initialized=lambda: False),
        backends=SimpleNamespace(mps=mps),
        mps=SimpleNamespace(current_allocated_memory=lambda: 7),
    )
    assert among(monkeypatch, torch=torch)["device"] == "MPS"
    assert memory.read()[1:] == (7, 7)
    said = reports._notes([{"calls": 20, "mem_peak_mb": None}], False)
    assert any("MPS: its utilisation cannot be read" in note for note in said)


def test_without_pytorch_it_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    found = among(monkeypatch)
    assert (found["compiled"], found["device"], found["torch"]) == (None, None, None)
    broken = among(monkeypatch, torch=SimpleNamespace())
    assert (broken["compiled"], broken["device"], broken["torch"]) == (None, None, None)


def test_a_report_holds_it(tmp_path: Path) -> None:
    code = "import gpudebug as g; g.enable_profiling(report='r.json')\nwith g.profile_section('a'): pass"
    subprocess.run([sys.executable, "-c", code, "--batch_size=8"], cwd=tmp_path, check=True)
    assert json.loads((tmp_path / "r.json").read_text())["surroundings"]["settings"] == {"batch_size": "8"}


def test_a_trace_of_nested_calls(tmp_path: Path) -> None:
    code = """
    import threading, time
    enable_profiling(trace=True)
    def work():
        with profile_section("outer"):
            with profile_section("env_rgb_inner"): time.sleep(0.002)
            record_timing("told", 0.001)
    work()
    thread = threading.Thread(target=work, name="loader"); thread.start(); thread.join()
    export_trace("trace.json")
    get_profiler().export_trace("again.json")
    """
    run(code, tmp_path)
    document = json.loads((tmp_path / "trace.json").read_text())
    assert document == json.loads((tmp_path / "again.json").read_text())
    calls = [e for e in document["traceEvents"] if e["ph"] == "X"]
    named = {e["tid"]: e["args"]["name"] for e in document["traceEvents"] if e["ph"] == "M"}
    assert sorted(e["name"] for e in calls) == sorted(["outer", "env_rgb_inner", "told"] * 2)
    assert "MainThread" in named.values() and set(named) == {e["tid"] for e in calls}
    inner, told, outer = calls[:3]
    assert outer["ts"] <= inner["ts"] and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"]
    assert inner["dur"] >= 2000 and told["dur"] == 1000
    assert (inner["cat"], outer["cat"]) == ("Rendering", "section")


def test_only_the_last_calls_are_kept(tmp_path: Path) -> None:
    code = """
    enable_profiling(trace=5)
    for i in range(100):
        with profile_section(f"n{i}\\udcff"): pass
    export_trace("trace.json")
    reset()
    export_trace("empty.json")
    """
    run(code, tmp_path)
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert [e["name"] for e in events if e["ph"] == "X"] == ["n95?", "n96?", "n97?", "n98?", "n99?"]
    assert json.loads((tmp_path / "empty.json").read_text())["traceEvents"] == []


def test_without_having_been_asked_for_there_is_no_trace(tmp_path: Path) -> None:
    code = """
    enable_profiling()
    try:
        export_trace("trace.json")
    except RuntimeError as e:
        print(e)
    """
    said = run(code, tmp_path).out
    assert said == "no calls were kept for a trace: call enable_profiling(trace=True) first\n"
    assert not (tmp_path / "trace.json").exists()
