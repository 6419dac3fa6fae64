"""The probe's figures as lines for people."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.stack_lines import evidence, told

from gpudebug.core.answers.next import RecordedProfile
from gpudebug.core.answers.show import ProbeSide
from gpudebug.core.inside.probe.figures import together
from gpudebug.core.records import ProbeEvidence
from gpudebug.core.records.inside import ProbedCopies, ReadSite
from gpudebug.terminal.probe import HEADING, places, profile, sides, trace

LOADERS = [
    {"workers": 4, "method": "fork", "batch_size": 8, "pin_memory": True, "training": True, "fetched": 90},
    {"workers": 0, "method": None, "batch_size": 64, "pin_memory": False, "training": False, "fetched": 900},
]
FACTS = {
    "device": "cuda:0",
    "loaders": LOADERS,
    "amp": {"enabled": True, "dtype": "bfloat16"},
    "compile": {"frames": 3, "graphs": 3, "graph_breaks": 1},
    "threads": 2,
    "phases": "launch",
}
FULL: dict[str, Any] = {
    "rank": 0,
    "world_size": 2,
    "steps_per_s": 24.41,
    "samples_per_s": 195.3,
    "span_steps": 100,
    "step_time_p50_s": 0.041,
    "step_time_p95_s": 0.0442,
    "data_wait_share": 0.5961,
    "eval_data_share": 0.08,
    "background_data_share": 0.03,
    "loader_start_share": 0.02,
    "forward_share": 0.1,
    "backward_share": 0.2,
    "optimizer_share": 0.05,
    "blocking_reads_per_step": 2.0,
    "blocking_read_share": 0.031,
    "syncs_per_step": 1.0,
    "device_time_share": 0.35,
    "gc_share": 0.004,
    "cpu_cores": 1.02,
    "h2d": ProbedCopies(count=200, mb=310.0, seconds=0.1, pinned_share=0.5),
    "d2h": ProbedCopies(count=100, mb=0.4, seconds=0.1),
    "alloc_retries": 3,
    "peak_host_mb": 812.4,
    "peak_device_mb": 3211.0,
    "facts": FACTS,
    "sites": (
        ReadSite(site="/code/models/net.py:41", kind="item", device="cuda:0", count=200, seconds=0.24),
        ReadSite(site="/code/train.py:22", kind="tolist", device="cuda:0", count=50, seconds=0.0005),
    ),
}
EXPECTED = f"""\
{HEADING}
  rank                          0 of 2
  throughput                    24.4 steps/s, 195 samples/s
  step time                     p50 41 ms, p95 44.2 ms
  waiting for data              59.6%
  waiting in evaluation         8.0%
  fetching in other threads     3.0%
  starting loaders              2.0%
  forward, backward, optimizer  10%, 20%, 5% (queueing)
  blocking reads                2 a step, 3.1%
    models/net.py:41 item       1 a step, 1.2 ms
    code/train.py:22 tolist     0.25 a step, 10 us
  synchronising                 1 a step
  device time in steps          35.0%
  copies to the device          2 a step, 3.1 MB, 50% pinned
  copies to the host            1 a step, 0.004 MB
  loader                        4 workers (fork), batch 8, pinned
  device                        cuda:0, AMP bfloat16, compiled, 1 graph break, 2 threads
  CPU                           1.02 cores
  garbage collection            0.4%
  peak memory                   host 812 MB, device 3211 MB
  allocator retries             3"""


def side(part: str = "baseline", reason: str | None = None, **figures: Any) -> ProbeSide:
    told = [ProbeEvidence(pid=1, steps=200, **figures).model_dump(mode="json")] if figures else []
    return ProbeSide(part=part, runs=("0001-x",), figures=together(told), reason=reason)


def test_one_side_in_full() -> None:
    assert sides([side(**FULL)]) == EXPECTED.splitlines()


def test_two_sides_stand_beside_each_other() -> None:
    after = {**FULL, "data_wait_share": 0.02, "sites": FULL["sites"][1:], "blocking_reads_per_step": 0.25}
    lines = sides([side("baseline", **FULL), side("trial", **after)])
    assert lines[1].split() == ["baseline", "trial"]
    found = {line[:30].strip(): line[32:] for line in lines[2:]}
    assert found["waiting for data"].split() == ["59.6%", "2.0%"]
    assert found["models/net.py:41 item"].endswith("none")
    column = lines[1].index("trial")
    assert all(line[column - 2 : column] == "  " for line in lines[2:])


def test_settings_that_are_the_same_on_both_sides_are_left_out() -> None:
    more = {**FULL, "facts": {**FACTS, "threads": 8}}
    labels = [
        [line[:30].strip() for line in sides([side("a", **FULL), side("b", **b)])] for b in (FULL, more)
    ]
    assert not {"rank", "loader", "device"} & {*labels[0]}
    assert {"rank", "loader", "device"} & {*labels[1]} == {"device"}
    assert "waiting for data" in labels[0]


def test_places_of_reads_that_take_next_to_no_time_are_left_out() -> None:
    lines = sides([side(**{**FULL, "blocking_read_share": 0.002})])
    assert any("blocking reads" in line for line in lines)
    assert not any("item" in line for line in lines)
    assert any("item" in line for line in sides([side(**{**FULL, "blocking_read_share": None})]))


def test_what_no_side_knows_is_left_out_and_what_one_knows_is_unknown_of_the_other() -> None:
    lines = sides([side("a", steps_per_s=3.0), side("b", data_wait_share=0.5)])
    assert [" ".join(line.split()) for line in lines] == [
        HEADING,
        "a b",
        "throughput 3 steps/s unknown",
        "waiting for data unknown 50.0%",
    ]


LITTLE = {
    "eval_data_share": 0.0001,
    "loader_start_share": 0.0,
    "gc_share": 0.0004,
    "syncs_per_step": 0.0,
    "alloc_retries": 0,
    "h2d": ProbedCopies(count=0, mb=0.0, seconds=0.0),
}


def test_what_is_next_to_nothing_is_left_out_unless_the_other_side_has_more_of_it() -> None:
    both = {"steps_per_s": 3.0, "span_steps": 100}
    assert len(sides([side("a", **both, **LITTLE), side("b", **both)])) == 3
    lines = sides([side("a", **both, **{name: FULL[name] for name in LITTLE}), side("b", **both, **LITTLE)])
    assert [line.split()[-1] for line in lines[3:]] == ["0.0%", "0.0%", "step", "none", "0.0%", "0"]
    assert "unknown" not in " ".join(lines)


def test_a_silent_side_says_why_and_two_that_say_nothing_say_nothing() -> None:
    lines = sides([side("baseline", "`probe: false` in gpudebug.yaml"), side("trial", steps_per_s=3.0)])
    assert lines[-1] == "  baseline: no data (`probe: false` in gpudebug.yaml)"
    assert sides([side(), side()]) == []
    assert sides([side("a", "it is so"), side("b", "it is so")]) == [
        "Inside the training: no data (it is so)"
    ]


def test_notes_are_shown_with_their_side() -> None:
    lines = sides([side("baseline", steps_per_s=3.0), side("trial", steps_per_s=3.0, notes=("it is odd",))])
    assert lines[-1] == "  note, trial: it is odd"
    assert sides([side(notes=("it is odd",))])[-1] == "  note: it is odd"


@pytest.mark.parametrize(
    "facts", [{"loaders": 7}, {"loaders": [3, {}]}, {"amp": 1, "compile": True}, {"device": 4}]
)
def test_facts_of_another_shape_do_no_harm(facts: dict[str, Any]) -> None:
    assert sides([side(steps_per_s=3.0, facts=facts)])[0] == HEADING


def test_the_hottest_lines_of_each_kind_of_thread() -> None:
    worker = told(2, of="workers", s=0.75, cpu=0.0)
    found = evidence(told() + worker + worker.replace('"frames"', '"why": "an error", "x"'))
    assert places(found.model_dump(mode="json")) == [
        "Where the training thread is (40 samples, running in 50% of the time):",
        "   50%  runs   data       train.py:7 main  image.resize(size)",
        "   25%  waits  other      train.py:9 main  time.sleep(1)",
        "Where loader workers are (40 samples, running in 0% of the time):",
        "   67%  runs   data       train.py:7 main  image.resize(size)",
        "   33%  waits  other      train.py:9 main  time.sleep(1)",
        "  note: stacks end early: an error",
    ]


def test_long_names_and_lines_are_cut_and_little_is_left_out() -> None:
    frames = ["job/train.py:" + "f" * 90, "job/train.py:g"]
    stacks = [["other", [0], 7, 0.995, 0, 1], ["other", [1], 9, 0.005, 0, 1]]
    found = evidence(told(frames=frames, stacks=stacks, code={"0:7": "x" * 100, "1:9": "y"}))
    heading, only = places(found.model_dump(mode="json"))
    assert "50%" in heading
    assert only == f"  100%  waits  other      train.py:7 {'f' * 28}…  {'x' * 59}…"


def test_nothing_is_said_of_nothing() -> None:
    assert places(None) == []
    assert places({"training": None, "workers": None, "notes": []}) == []


def test_evaluation_is_shown_as_a_whole() -> None:
    frames = ["job/train.py:main", "job/train.py:estimate_loss", "job/model.py:Net.forward"]
    rows = [["forward", [0, 2], 7, 0.6, 0.6, 20], ["eval", [0, 1, 2], 7, 0.4, 0.4, 10]]
    found = evidence(told(frames=frames, stacks=rows, code={"2:7": "x = self.one(x)"}))
    lines = places(found.model_dump(mode="json"))
    assert lines[1] == "   40%  of it in evaluation, called by train.py estimate_loss"
    assert "model.py:7" in lines[2]


TRACE: dict[str, Any] = {
    "file": "trace.json.gz",
    "files": ["trace.json.gz"],
    "path": "/r/runs/0007-profile-workload/trace.json.gz",
    "steps": 4,
    "active_step_s": 0.012345,
    "overhead": 0.234,
}


def test_the_answer_names_trace_cost_and_what_to_do_next() -> None:
    answer = RecordedProfile(
        campaign="rtc",
        role="profile-workload",
        run="0007-profile-workload",
        trace=TRACE,
        notes=("the profiler made them longer",),
        why="asked for",
        next_command="gpudebug analyze F",
    )
    assert profile(answer).splitlines() == [
        "Profile of the workload: run 0007-profile-workload, no part of its baseline",
        "trace   /r/runs/0007-profile-workload/trace.json.gz",
        "        4 iterations, 12.3 ms each, 23% longer by the profiler",
        "note: the profiler made them longer",
        "Next: gpudebug analyze F",
    ]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"overhead": None}, "4 iterations, 12.3 ms each, overhead unknown"),
        ({"overhead": -0.02}, "4 iterations, 12.3 ms each, 0% longer by the profiler"),
        ({"steps": 1, "active_step_s": None}, "1 iteration, 23% longer by the profiler"),
    ],
    ids=["unknown", "in the noise", "one"],
)
def test_what_is_not_known_is_said(changes: dict[str, Any], said: str) -> None:
    assert trace({**TRACE, **changes})[1].strip() == said


def test_what_the_trace_says_comes_below() -> None:
    analysis = {
        "busy_share": 0.432,
        "kernels_per_step": 212,
        "mean_kernel_us": 12.34,
        "operators": [{"name": f"aten::{name}"} for name in ("mm", "add", "t", "sum")],
        "steps": {"data_wait_share": 0.21},
    }
    assert trace({**TRACE, "analysis": analysis})[2:] == [
        "        device busy 43.2%, waiting for data 21.0%, 212 kernels a step of 12.3 us",
        "        most time in aten::mm, aten::add, aten::t",
    ]
    assert trace({**TRACE, "analysis": {"busy_share": None, "operators": [], "steps": None}})[2:] == []


def test_other_ranks_are_counted() -> None:
    files = ["trace.json.gz", "trace.rank1.json.gz", "trace.rank2.json.gz"]
    assert trace({**TRACE, "files": files})[0].endswith("trace.json.gz and 2 of other ranks")


@pytest.mark.parametrize("found", [None, {}, {"why": "it broke"}])
def test_no_trace_is_no_line(found: dict[str, Any] | None) -> None:
    assert trace(found) == []
