from __future__ import annotations

from typing import Any

import pytest
from tests.support.answers import read
from tests.terminal.test_diagnose import CAUSE

from gpudebug.core.answers.diagnosis import AttachedLook, WhyAnswer
from gpudebug.terminal import why as render
from gpudebug.terminal.why import job, ranks, unseen

DEVICE: dict[str, Any] = {
    "index": 0, "uuid": "GPU-0", "name": "A100", "reason": None,
    "gpu_util": {"mean": 31.0, "p5": 0.0, "p50": 28.0, "p95": 90.0},
}  # fmt: skip
ANSWER: dict[str, Any] = {
    "command": "python train.py", "outcome": "ENDED_BY_PLAN", "why": "its planned window is full",
    "exit_status": None, "duration_s": 41.2, "window": {"start_s": 8.0, "end_s": 40.0, "samples": 160},
    "reason": None, "devices": [DEVICE], "throughput": {"steps_per_s": 5.0},
    "step": {
        "time_s": 0.2, "shares": {"data_wait": 0.5, "forward": 0.2, "other": 0.3},
        "places": [{"site": "train.py:87", "function": "load", "share": 0.5, "state": "waits", "code": "x"}],
    },
    "failure": None, "problem": None, "kind": "vision", "framework": "timm", "abstains": None, "gates": [],
    "causes": [CAUSE], "missing": [], "notes": [], "replayed": False, "folder": "/w/gpudebug-why-1",
    "next_command": "gpudebug init --from gpudebug-why-1",
}  # fmt: skip


def why(**changes: Any) -> str:
    return render.why(read(WhyAnswer, {**ANSWER, **changes}))


def test_an_answer_says_how_busy_where_why_and_what_to_do() -> None:
    assert (
        why()
        == """\
41.2 s of timm, steady from 8 to 40 s, 5 steps/s: python train.py
GPU 0 (GPU-0): gpu_util 31.0% (p5 0, p50 28, p95 90)
A step of 200 ms: data wait 50%, forward 20%, other 30%
Most time: 50% waits train.py:87 load
1. dl-no-workers 62% likely, at most 2.50x, +45.0pp: Loading has no workers
   try --set --num_workers=4 (training waits 60% of its time for batches)
Next  gpudebug init --from gpudebug-why-1"""
    )


PHASES = {"start_up_s": 12.1, "first_steps_s": 0.9, "steady_s": 30.0, "within": {"evaluation": 0.3}}


@pytest.mark.parametrize(
    ("most", "behind"),
    [
        ((None, None), ""),
        (("start-up", 0.02), ""),
        (("evaluation", 0.3), "; most: evaluation, 30% of the plan"),
    ],
)
def test_the_phases_of_a_run_and_the_one_that_costs_most(most: tuple[Any, Any], behind: str) -> None:
    text = why(phases={**PHASES, "most": most[0], "most_share": most[1]}).splitlines()[2]
    assert text == f"Phases: start-up 12.1 s, first steps 0.9 s, steady 30.0 s (evaluation 30%){behind}"


def test_phases_that_the_log_names_are_below() -> None:
    one = {"by": "log", "runs": 1, "start_s": 2.0, "seconds": 30.0, "stretches": 1, "rate_unit": "step"}
    named = [{**one, "name": name, "gpu_util": 20.0, "rate": 10.0, "reason": None} for name in ("sft", "ppo")]
    changes = "the run changes between a and b 39 times, every 1.0 s"
    nothing = {"most": None, "most_share": None}
    place = {"site": "train.py:9", "function": "teach", "share": 0.8, "state": "runs", "code": "teach()"}
    more = {"named": named, "named_reason": changes, "named_places": {"sft": place}}
    lines = why(phases={**PHASES, **nothing, **more}).splitlines()
    assert lines[3:6] == [
        "   sft: 30.0 s from 2.0 s on, gpu_util 20.0%, 10 steps/s; 80% runs train.py:9 teach",
        "   ppo: 30.0 s from 2.0 s on, gpu_util 20.0%, 10 steps/s",
        f"   {changes}",
    ]


def test_the_place_of_a_start_up_that_costs_most() -> None:
    place = {
        "site": "train.py:9",
        "function": "Calls.read",
        "share": 0.8,
        "state": "runs",
        "code": "decode()",
    }
    most = {"most": "start-up", "most_share": 0.7, "start_up_place": place}
    lines = why(phases={**PHASES, **most, "start_up_caller": "lib/sampler.py:Grouped"}).splitlines()
    assert lines[3] == "Start-up: 80% runs train.py:9 Calls.read, called by lib/sampler.py:Grouped"


@pytest.mark.parametrize("devices", [1, 2, 8])
@pytest.mark.parametrize("causes", [0, 1, 5])
def test_it_is_never_longer_than_twelve_lines_and_ends_with_what_is_next(devices: int, causes: int) -> None:
    text = why(
        devices=[DEVICE] * devices,
        causes=[CAUSE] * causes,
        notes=["one", "two", "three"],
        problem="the command failed after 3 s: " + "ValueError " * 40,
    )
    lines = text.splitlines()
    assert len(lines) <= render.MOST_LINES
    assert lines[-1].startswith("Next  ")


def test_many_devices_are_one_line() -> None:
    busy = {**DEVICE, "gpu_util": {**DEVICE["gpu_util"], "mean": 91.0}}
    silent = {**DEVICE, "gpu_util": None, "reason": "lost"}
    text = why(devices=[DEVICE, busy, silent])
    assert "3 devices: gpu_util 61.0% (least 31, most 91; 1 unknown)" in text


def test_what_is_to_be_typed_is_never_cut() -> None:
    change = "--set --" + "a" * 200 + "=1"
    text = why(causes=[{**CAUSE, "hypothesis": {**CAUSE["hypothesis"], "change": change}}])
    assert f"   try {change}" in text


def test_no_cause_is_listed_where_none_is_named() -> None:
    text = why(abstains="no cause stands out")
    assert "No cause is named: no cause stands out\n" in text
    assert CAUSE["id"] not in text


def test_a_run_that_shows_no_window_says_why() -> None:
    text = why(window=None, reason="the window is too short", outcome="CRASHED", why="exit 1", devices=[])
    assert text.startswith("CRASHED (exit 1), 41.2 s of timm, no steady window: python train.py")


def test_of_several_ranks_it_says_who_waits_for_whom() -> None:
    straggler = {
        "rank": 1, "node": "n1", "cause": "loader", "title": "its batches come later", "gap": 0.45,
        "certain": True, "for": [], "line": "train.py:9 read (waiting): `f.read()`",
    }  # fmt: skip
    ranks: dict[str, Any] = {
        "world_size": 2, "reported": 2, "rows": [], "straggler": straggler, "late": None, "abstains": None,
        "notes": ["PyTorch differs", "and more"],
    }  # fmt: skip
    lines = why(ranks=ranks).splitlines()
    at = lines.index(
        "Straggler: rank 1 on n1, loader: its batches come later; they wait 45.0% of the time for it"
    )
    assert lines[at + 1] == "   train.py:9 read (waiting): `f.read()`"
    assert lines[at + 2] == "Ranks: PyTorch differs"
    assert len(lines) <= render.MOST_LINES
    assert "No rank holds the others up" in why(ranks={**ranks, "straggler": None}).splitlines()


MAIN: dict[str, object] = {"of": "training", "cores": 1.5, "main_running": 0.4, "main_ready": 0.2}


def look(*processes: dict[str, object], members: int | None = 1, cost: float | None = 0.008) -> AttachedLook:
    return AttachedLook(pid=7, members=members, processes=processes, cost=cost)


def test_a_job_is_one_line() -> None:
    assert job(look(MAIN)) == (
        "Job 7: 1 Python process, 1.50 cores; its thread runs 40%, waits for a core 20%; "
        "looking took 0.8% of a core"
    )


def test_of_a_job_without_python_the_processes_are_counted() -> None:
    assert job(look({**MAIN, "main_ready": None}, members=None)).startswith("Job 7: 1 process, 1.50 cores; ")
    assert job(look(MAIN, {"of": "other", "cores": 0.5}, members=None)).startswith("Job 7: 2 processes, 2.00")


def test_ranks_are_counted_and_of_very_many_processes_it_says_which_part_was_seen() -> None:
    ranks = [{"of": "rank", "cores": 1.0} for _ in range(31)]
    assert job(look(MAIN, *ranks, members=289)).startswith(
        "Job 7: 32 ranks, 289 Python processes, 32 of them 32.50 cores; "
    )


def test_waiting_for_a_disk_and_faults_are_named_if_there_are_any() -> None:
    slow = {**MAIN, "main_ready": 0.01, "disk_wait": 0.3, "read_mb_s": 120.4, "major_faults_s": 40.0}
    assert "runs 40%, waits for a disk 30%, reads 120 MB/s, 40 page faults/s" in job(look(slow))


def test_a_rank_that_is_elsewhere_than_the_others_is_named() -> None:
    waits = {"place": "train.py:9 step", "place_share": 0.7}
    others = [{"of": "rank", "rank": n, **waits} for n in range(1, 3)]
    slow = {"of": "rank", "rank": 3, "place": "data.py:4 decode", "place_share": 0.8}
    assert ranks(look({**MAIN, **waits}, *others, slow)) == [
        "Ranks: 3 of 4 mostly in train.py:9 step; rank 3 80% in data.py:4 decode"
    ]
    # Two places as often say nothing of who is the odd one, and ranks that agree need no line.
    assert ranks(look({**MAIN, **waits}, *others)) == []
    assert ranks(look({**MAIN, **waits}, slow)) == []
    assert ranks(look({**MAIN, **waits}, others[0], slow, {**slow, "rank": 4})) == []


def test_stacks_that_are_missing_are_said_with_what_allows_them() -> None:
    refused = {**MAIN, "why": "kernel.yama.ptrace_scope is 1", "allow": "sudo gpudebug why --pid 7"}
    assert unseen(look(refused)) == [
        "Stacks unknown: kernel.yama.ptrace_scope is 1",
        "To see them: sudo gpudebug why --pid 7",
    ]
    assert unseen(look({**MAIN, "why": None, "allow": None})) == []


def test_what_is_unknown_is_left_out_and_never_0() -> None:
    blank = {"of": "training", "cores": None, "main_running": None, "read_mb_s": None}
    assert job(look(blank, members=None, cost=None)) == "Job 7: nothing was seen of it"
