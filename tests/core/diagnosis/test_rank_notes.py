"""What is odd about ranks is named, with whom it is about."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.rank_lines import rank

from gpudebug.core.diagnosis.rank_notes import notes

CUDA = {"device": "cuda:0"}
ODD: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "it ended": (
        {},
        {"last_step_s": 20.0, "last_step_by_s": 24.0},
        "rank 1 took no step any more while the others did",
    ),
    "the probe is off": ({}, {"off": "no room"}, "rank 1 stopped reporting: no room"),
    "another PyTorch": ({}, {"torch": "2.4.0"}, "PyTorch differs: 2.13.0 on rank 0; 2.4.0 on rank 1"),
    "another clock": (
        {},
        {"own_clock": True, "start_s": None, "last_step_s": None, "last_step_by_s": None},
        "rank 1 ran on another host: shares are of their own steady steps, and their times do not compare",
    ),
    "one device": (CUDA, CUDA, "ranks 0, 1 train on one device (GPU 0)"),
    "one device by its UUID": (
        {"device": "cuda:0", "uuid": "GPU-7"},
        {"device": "cuda:1", "uuid": "GPU-7"},
        "ranks 0, 1 train on one device (GPU-7)",
    ),
    "one device by what is visible": (
        {**CUDA, "visible": "3"},
        {"device": "cuda:1", "visible": "2, 3"},
        "ranks 0, 1 train on one device (GPU 3)",
    ),
    "one core for eight workers": (
        {},
        {"cores": 1.0, "loader_workers": 8, "slurm_cpus": "1"},
        "rank 1 has 1 core for 8 loader workers (SLURM_CPUS_PER_TASK=1)",
    ),
    "a step that did not inherit its cores": (
        {"cores": 8.0, "slurm_cpus": "8"},
        {"cores": 1.0, "slurm_cpus": "8"},
        "rank 1 may use 1 of the 8 cores that the job asked for a task: "
        "srun --cpus-per-task gives them to a step",
    ),
    "all of them": (
        {"cores": 1.0, "loader_workers": 8},
        {"cores": 1.0, "loader_workers": 8},
        "ranks 0, 1 have 1 core for 8 loader workers",
    ),
}


@pytest.mark.parametrize(("first", "second", "note"), ODD.values(), ids=ODD)
def test_what_is_odd_is_one_line(first: dict[str, Any], second: dict[str, Any], note: str) -> None:
    assert notes([rank(0, **first), rank(1, **second)], 2) == (note,)


EVEN: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "alike": ({}, {}),
    "a device each by what is visible": ({**CUDA, "visible": "0"}, {**CUDA, "visible": "1"}),
    "the same number on two nodes": (CUDA, {**CUDA, "node": "node2"}),
    "a device that is not visible": ({**CUDA, "visible": ""}, {**CUDA, "visible": ""}),
    "two ranks on the CPU": ({"visible": ""}, {"visible": ""}),
    "unknown": (
        {"torch": None, "cores": None},
        {"last_step_s": None, "last_step_by_s": None, "loader_workers": 8, "cores": None},
    ),
    "it reports rarely": ({}, {"last_step_s": 28.0, "last_step_by_s": 92.0}),
    "its last step is not known": ({}, {"last_step_s": 20.0, "last_step_by_s": None}),
    "it was told last": ({"last_step_s": 28.0, "last_step_by_s": 60.0}, {"last_step_by_s": 600.0}),
}


@pytest.mark.parametrize(("first", "second"), EVEN.values(), ids=EVEN)
def test_what_is_not_odd_or_not_known_is_no_line(first: dict[str, Any], second: dict[str, Any]) -> None:
    assert notes([rank(0, **first), rank(1, **second)], 2) == ()


def test_ranks_that_never_reported_are_named() -> None:
    why = "dead before the first step, or unable to write into the run's folder"
    assert notes([rank(0), rank(2)], 4) == (f"no report of ranks 1, 3: {why}",)
    (many,) = notes([rank(0)], 64)
    assert many.startswith("no report of ranks 1, 2, 3, 4, 5, 6, 7, 8 and 55 more: ")


def test_ranks_beyond_those_that_are_looked_at_are_not_said_to_be_missing() -> None:
    assert notes([rank(n) for n in range(64)], 512) == ("the first 64 of 512 ranks are looked at",)
