"""Options, iterations, warm-up, periodic summaries, reset and fork."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.support.profiled import by_name, places, report_of, run


def test_warm_up_iterations_are_left_out(tmp_path: Path) -> None:
    code = """
    import time
    enable_profiling(warmup=3)
    with profile_section("setup"): pass
    for i in range(20):
        with profile_section("step"):
            with profile_section("inner"):
                time.sleep(0.05 if i < 3 else 0.001)
    """
    report = report_of(code, tmp_path)
    found = by_name(report)
    assert (report["warmup"], report["iterations"]) == (3, 17)
    assert {name: s["calls"] for name, s in found.items()} == {"step": 17, "inner": 17}
    assert found["step"]["max_s"] < 0.05
    assert report["wall_s"] < 1


@pytest.mark.parametrize("warmup", [1, 2, 5])
def test_explicit_steps_count_alone(tmp_path: Path, warmup: int) -> None:
    code = f"""
    enable_profiling(warmup={warmup})
    for i in range(20):
        for _ in range(3):
            with profile_section("env_step"): pass
        with profile_section("update"): pass
        get_profiler().step()
    """
    report = report_of(code, tmp_path)
    assert (report["warmup"], report["iterations"]) == (warmup, 20 - warmup)
    calls = {name: s["calls"] for name, s in by_name(report).items()}
    assert calls == {"env_step": 3 * (20 - warmup), "update": 20 - warmup}


def test_warm_up_inside_an_open_section(tmp_path: Path) -> None:
    code = """
    import time
    enable_profiling(warmup=2)
    with profile_section("training_total"):
        for i in range(12):
            with profile_section("step"):
                time.sleep(0.1 if i < 2 else 0.001)
            get_profiler().step()
    """
    report = report_of(code, tmp_path)
    found = by_name(report)
    assert (report["iterations"], found["step"]["calls"]) == (10, 10)
    assert found["step"]["total_s"] <= found["training_total"]["total_s"] < 0.2


def test_too_few_iterations_for_the_warm_up_explain_the_emptiness(tmp_path: Path) -> None:
    code = """
    enable_profiling(warmup=5)
    for _ in range(2):
        with profile_section("x"): pass
    """
    report = report_of(code, tmp_path)
    assert (report["sections"], report["tree"], report["iterations"], report["warmup"]) == ([], [], 0, 2)
    assert "only 2 of 5 warm-up iterations" in report["notes"][0]


# Seed 003's timing log, in form; what it shows as "BOTTLENECK if high" is marked where it is high.
ROLLOUT = """
import time
enable_profiling(summary_every=10, title="Rollout Timing Profile", step_label="agent_step")
def rollout():
    with profile_section("Rollout Total"):
        record_timing("Student Forward", 0.00345)
        with profile_section("Teacher Total"):
            record_timing("Reshape", 0.00015)
            with profile_section("GPU->CPU"):
                time.sleep(0.005)
            record_timing("Nim Calls", 0.0012)
        time.sleep(0.002)
"""
FORM = r"""
={60}
Rollout Timing Profile \(agent_step=5120\)
={60}
  Rollout Total:        +\d+\.\d\d ms
    - Student Forward:   +3\.45 ms  +\d\d\.\d %
    - Teacher Total:    +\d+\.\d\d ms  +\d\d\.\d %
        • Reshape:       +0\.15 ms  +\d+\.\d %
        • GPU->CPU:      +\d+\.\d\d ms  +\d\d\.\d %  <-- BOTTLENECK
        • Nim Calls:     +1\.20 ms  +\d+\.\d %
={60}
"""


def test_seed_003_timing_log(tmp_path: Path) -> None:
    done = run(ROLLOUT + "for i in range(1, 26): rollout(); get_profiler().step(512 * i)", tmp_path)
    lines = done.out.split("\n")
    assert re.fullmatch(re.sub(" +\\+", " +", FORM.strip()), "\n".join(lines[:10])), done.out
    assert re.findall(r"agent_step=(\d+)", done.out) == ["5120", "10240"]
    assert {line.index(" ms") for line in lines[3:9]} == {lines[3].index(" ms")}


@pytest.mark.parametrize(
    "env",
    [{"GPUDEBUG_PROFILE_SUMMARY": "4"}, {"GPUDEBUG_PROFILE_SUMMARY": "4", "GPUDEBUG_PROFILE": "r.json"}],
)
def test_the_environment_asks_for_summaries(tmp_path: Path, env: dict[str, str]) -> None:
    code = """
    for i in range(9):
        with profile_section("outer"):
            with profile_section("inner"): pass
    """
    out = run(code, tmp_path, env=env).out
    assert re.findall(r"Timing Profile \(step=(\d+)\)", out) == ["4", "8"]
    over = "enable_profiling(summary_every=100)\n" + code.replace("\n    ", "\n")
    assert run(over, tmp_path, env=env).out.count("Timing Profile") == 2
    assert run("disable()\n" + code.replace("\n    ", "\n"), tmp_path, env=env).out == ""


def test_a_summary_shows_what_happened_since_the_last_one(tmp_path: Path) -> None:
    code = """
    enable_profiling(summary_every=2)
    for milliseconds in (10, 10, 30, 30):
        record_timing("x", milliseconds / 1000)
        get_profiler().step()
    """
    assert re.findall(r"x: +(\d+\.\d\d) ms", run(code, tmp_path).out) == ["10.00", "30.00"]


def test_a_summary_that_cannot_be_printed_does_not_end_the_training(tmp_path: Path) -> None:
    code = """
    import os, sys
    enable_profiling(summary_every=1)
    out, sys.stdout = sys.stdout, open(os.devnull)
    with profile_section("x"): pass
    sys.stdout = out
    """
    report = report_of(code, tmp_path)
    assert by_name(report)["x"]["calls"] == 1
    assert any("could not be printed" in note for note in report["notes"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("warmup=-1", "warmup takes a whole number from 0 on, not -1"),
        ("warmup=1.5", "warmup takes a whole number"),
        ("summary_every='ten'", "summary_every takes a whole number"),
        ("trace=-5", "trace takes a whole number"),
        ("categories={1: 'Data'}", "categories takes names by the prefix of a section's name"),
        ("categories='env_'", "categories takes names by the prefix"),
        ("sync='cuda'", "sync takes a function such as torch.cuda.synchronize, not 'cuda'"),
    ],
)
def test_an_impossible_option_is_refused_and_nothing_is_enabled(
    tmp_path: Path, options: str, said: str
) -> None:
    code = f"""
    try:
        enable_profiling({options})
    except (TypeError, ValueError) as e:
        print(e)
    assert not get_profiler().enabled
    """
    assert said in run(code, tmp_path).out


def test_categories_are_the_longest_prefix_or_the_users(tmp_path: Path) -> None:
    code = """
    enable_profiling({options})
    for name in ("env_step", "env_rgb_rendering", "convlstm_layers", "recurrent_policy_forward",
                 "training_total", "simulated_model_update", "other", "get_actions.policy"):
        with profile_section(name): pass
    """
    found = by_name(report_of(code.format(options=""), tmp_path))
    assert {name: s["category"] for name, s in found.items()} == {
        "env_step": "Environment",
        "env_rgb_rendering": "Rendering",
        "convlstm_layers": "Model",
        "recurrent_policy_forward": "Policy",
        "training_total": "Training",
        "simulated_model_update": "Training",
        "other": None,
        "get_actions.policy": None,
    }
    theirs = report_of(code.format(options="categories={'get_actions.': 'Inference'}"), tmp_path)
    assert by_name(theirs)["get_actions.policy"]["category"] == "Inference"
    assert by_name(theirs)["env_step"]["category"] is None
    assert theirs["categories"] == {"get_actions.": "Inference"}


def test_a_reset_forgets_and_what_is_open_counts_from_then(tmp_path: Path) -> None:
    code = """
    import time
    enable_profiling()
    s = get_profiler().section("bound")
    with profile_section("outer"), s, profile("tracked", track_memory=True):
        with profile_section("forgotten"): pass
        time.sleep(0.3)
        reset()
        with profile_section("inner"): time.sleep(0.001)
    """
    report = report_of(code, tmp_path)
    found = by_name(report)
    assert set(places(report)) == {"outer", "outer/bound", "outer/bound/tracked", "outer/bound/tracked/inner"}
    assert all(0.001 <= s["total_s"] < 0.2 for s in found.values())
    assert report["wall_s"] < 0.2


def test_time_while_disabled_is_not_enabled_time(tmp_path: Path) -> None:
    code = """
    import time
    enable_profiling(); time.sleep(0.01)
    disable(); time.sleep(0.1)
    get_profiler().enable()
    """
    report = report_of(code, tmp_path)
    assert 0.01 <= report["enabled_s"] < 0.1 <= report["wall_s"]


def test_a_forked_child_starts_empty_and_the_parent_keeps_what_it_has(tmp_path: Path) -> None:
    code = """
    import json, os, threading
    enable_profiling()
    s = get_profiler().section("bound")
    with s: pass
    def other():
        with profile_section("thread"): pass
    thread = threading.Thread(target=other); thread.start(); thread.join()
    with profile_section("open"):
        with profile_section("before"): pass
        pid = os.fork()
        if not pid:
            with s:
                with profile_section("child"): pass
            thread = threading.Thread(target=other); thread.start(); thread.join()
    if not pid:
        with open("child.json", "w") as f: json.dump(get_profiler().report(), f)
        os._exit(0)
    os.waitpid(pid, 0)
    child = json.load(open("child.json"))
    assert child["pid"] != os.getpid()
    calls = {s["name"]: s["calls"] for s in child["sections"]}
    assert calls == {"open": 1, "bound": 1, "child": 1, "thread": 1}, calls
    """
    assert set(by_name(report_of(code, tmp_path))) == {"bound", "thread", "open", "before"}


def test_an_error_of_ours_switches_us_off_and_is_noted(tmp_path: Path) -> None:
    code = """
    from gpudebug.training.profiling import summary
    summary.tree_lines = None
    enable_profiling(summary_every=1)
    with profile_section("x"): pass
    with profile_section("y"): pass
    assert not get_profiler().enabled
    """
    report = report_of(code, tmp_path)
    assert set(by_name(report)) == {"x"}
    assert any("switched itself off: TypeError" in note for note in report["notes"])
