"""The sections of a training, as its author writes them; the seeds' examples stand here as they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.interpreters import VERSIONS, interpreter
from tests.support.profiled import by_name, places, report_of, run

# Seed 000, "Profiling Your Own Code": the import line is ours, the bodies are filled in.
DECORATOR = """
from gpudebug import profile_method, enable_profiling, print_profiling_summary

# Enable profiling
enable_profiling()

# Decorate methods you want to profile
@profile_method
def my_slow_function(x):
    result = sum(range(x))
    return result

assert my_slow_function(1000) == 499500

# At end of execution
print_profiling_summary()
"""
CONTEXT_MANAGER = """
from gpudebug import profile_section, enable_profiling

load_data = lambda: 3
model = lambda data: data + 1

enable_profiling()

with profile_section("data_loading"):
    data = load_data()

with profile_section("model_inference"):
    output = model(data)
assert output == 4
"""
POLICY = """
from gpudebug import profile_method, profile_section

class Pi0Policy:
    @profile_method
    def predict_action_chunk(self, obs, inference_delay=0, prev_chunk_left_over=None):
        self._generate_actions_with_rtc(obs)
        return obs

    def _generate_actions_with_rtc(self, obs):
        with profile_section("rtc.guidance_computation"):
            # ... guidance code ...
            pass

        with profile_section("rtc.action_merging"):
            # ... merging code ...
            pass

enable_profiling()
assert Pi0Policy().predict_action_chunk([1]) == [1]
"""
CUSTOM_METRIC = """
import time
enable_profiling()
from gpudebug import record_timing

start = time.perf_counter()
time.sleep(0.002)
duration = time.perf_counter() - start
record_timing("my_custom_metric", duration)
"""
# Seed 001, "Custom Profiling".
CUSTOM_PROFILING = """
from gpudebug import profile, profile_function

# Context manager
with profile("my_operation", track_memory=True):
    # Your code here
    pass

# Function decorator
@profile_function("my_function", track_memory=True)
def my_function():
    # Your code here
    pass
"""
ACCESSING = """
from gpudebug import get_profiler

profiler = get_profiler()
profiler.enable()  # Enable profiling
with profile("kept"): pass
assert profiler.report()["sections"]
profiler.disable()  # Disable profiling
with profile("not_measured"): pass
profiler.reset()  # Reset all statistics
"""


def test_seed_000_decorator(tmp_path: Path) -> None:
    lines = run(DECORATOR, tmp_path).out.splitlines()
    assert lines[1].split() == [
        "Operation", "Calls", "Total(s)", "Avg(s)", "Min(s)", "Max(s)", "Mem", "Peak(MB)", "GPU", "Peak(MB)",
    ]  # fmt: skip
    assert lines[3].split()[:2] == ["my_slow_function", "1"]


def test_seed_000_context_manager(tmp_path: Path) -> None:
    found = by_name(report_of(CONTEXT_MANAGER, tmp_path))
    assert {name: s["calls"] for name, s in found.items()} == {"data_loading": 1, "model_inference": 1}


def test_seed_000_policy_methods(tmp_path: Path) -> None:
    found = places(report_of(POLICY, tmp_path))
    top = "Pi0Policy.predict_action_chunk"
    assert list(found) == [top, f"{top}/rtc.action_merging", f"{top}/rtc.guidance_computation"]


def test_seed_000_custom_metric(tmp_path: Path) -> None:
    metric = by_name(report_of(CUSTOM_METRIC, tmp_path))["my_custom_metric"]
    assert metric["calls"] == 1
    assert 0.002 <= metric["total_s"] < 1
    assert metric["min_s"] == metric["max_s"] == metric["total_s"]


def test_seed_001_custom_profiling(tmp_path: Path) -> None:
    found = by_name(report_of("enable_profiling()\n" + CUSTOM_PROFILING + "\nmy_function()\n", tmp_path))
    assert set(found) == {"my_operation", "my_function"}
    assert all(section["mem_peak_mb"] is not None for section in found.values())
    assert run(CUSTOM_PROFILING + "\nmy_function()\n", tmp_path).out == ""


def test_seed_001_accessing_the_profiler(tmp_path: Path) -> None:
    report = report_of(ACCESSING, tmp_path)
    assert (report["sections"], report["tree"]) == ([], [])


NESTED = """
import time
enable_profiling()
for _ in range(20):
    with profile_section("outer"):
        with profile_section("inner"):
            time.sleep(0.001)
        with profile_section("inner"):
            pass
with profile_section("inner"):
    pass
"""


@pytest.mark.parametrize("version", VERSIONS)
def test_nested_sections_on_every_python(tmp_path: Path, version: str) -> None:
    report = report_of(NESTED, tmp_path, interpreter(version))
    found, tree = by_name(report), places(report)
    assert {name: s["calls"] for name, s in found.items()} == {"outer": 20, "inner": 41}
    assert {path: p["calls"] for path, p in tree.items()} == {"outer": 20, "inner": 1, "outer/inner": 40}
    inner, outer = found["inner"], found["outer"]
    assert inner["total_s"] == pytest.approx(tree["inner"]["total_s"] + tree["outer/inner"]["total_s"])
    assert outer["self_s"] == pytest.approx(outer["total_s"] - tree["outer/inner"]["total_s"], abs=1e-8)
    assert 0.02 <= outer["total_s"] <= report["wall_s"]
    assert inner["min_s"] <= inner["p50_s"] <= inner["p95_s"] <= inner["max_s"]
    assert inner["mean_s"] == pytest.approx(inner["total_s"] / 41)
    assert report["python"].startswith(version + ".")


RECURSION = """
enable_profiling()
def fact(n):
    with profile_section("fact"):
        with profile_section("between"):
            return 1 if n < 2 else n * fact(n - 1)
for _ in range(3):
    fact({depth})
"""


@pytest.mark.parametrize("depth", [1, 2, 10, 400])
def test_recursion_counts_every_entry_and_the_outermost_time_once(tmp_path: Path, depth: int) -> None:
    report = report_of(RECURSION.format(depth=depth), tmp_path)
    found, tree = by_name(report), places(report)
    assert found["fact"]["calls"] == found["between"]["calls"] == 3 * depth
    assert set(tree) == {"fact", "fact/between"}
    assert found["fact"]["total_s"] == tree["fact"]["total_s"] <= report["wall_s"]
    own = found["fact"]["self_s"] + found["between"]["self_s"]
    assert own == pytest.approx(found["fact"]["total_s"], rel=0.01, abs=1e-6)


def test_an_exception_passes_and_is_counted(tmp_path: Path) -> None:
    code = """
    enable_profiling()
    caught = []
    for problem in (None, KeyError, ValueError, None):
        try:
            with profile_section("outer"), profile_section("inner"):
                if problem:
                    raise problem("as it was")
        except (KeyError, ValueError) as e:
            caught.append(e.args)
    assert caught == [("as it was",)] * 2
    with profile_section("after"): pass
    """
    report = report_of(code, tmp_path)
    found = by_name(report)
    assert {name: (s["calls"], s["errors"]) for name, s in found.items()} == {
        "outer": (4, 2),
        "inner": (4, 2),
        "after": (1, 0),
    }
    assert set(places(report)) == {"outer", "outer/inner", "after"}


@pytest.mark.parametrize("seconds", ["-0.1", "float('nan')", "float('inf')", "10**18", "10**400"])
def test_a_duration_that_cannot_be_is_refused(tmp_path: Path, seconds: str) -> None:
    code = f"""
    record_timing("x", {seconds})  # Profiling is off: nothing happens.
    enable_profiling()
    try:
        record_timing("x", {seconds})
    except (ValueError, OverflowError) as e:
        print(e)
    assert get_profiler().report()["sections"] == []
    """
    said = run(code, tmp_path).out
    assert "record_timing('x') takes 0 to 1e9 seconds, not" in said or "too large" in said


def test_what_only_a_launcher_enabled_never_fails_the_training(tmp_path: Path) -> None:
    code = """
    record_timing("x", -1)
    record_timing("x", "soon")
    record_timing("x", 10**400)
    with profile_section(3): pass
    with profile_section(["a", "list"]): pass
    """
    env = {"GPUDEBUG_PROFILE": "sections.json", "GPUDEBUG_RUN_DIR": str(tmp_path)}
    report = report_of(code, tmp_path, env=env)
    assert set(by_name(report)) == {"3", "['a', 'list']"}
    assert sum("refused" in note for note in report["notes"]) == 3


def test_nothing_is_measured_while_profiling_is_off(tmp_path: Path) -> None:
    code = """
    import gc
    s = get_profiler().section("bound")
    def work():
        with profile_section("a"), profile("b", track_memory=True), s: pass
        record_timing("c", 1.0)
    work()
    before = get_profiler().report()
    enable_profiling(); disable(); work()
    after = get_profiler().report()
    assert before["sections"] == before["tree"] == after["sections"] == after["tree"] == []
    print(before["notes"][0]); print(after["notes"][0])
    """
    first, second = run(code, tmp_path).out.splitlines()
    assert "not enabled" in first
    assert "no section was ever executed" in second
