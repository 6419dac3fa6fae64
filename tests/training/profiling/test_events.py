"""Calls kept for a trace that Perfetto reads."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.profiled import run


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
