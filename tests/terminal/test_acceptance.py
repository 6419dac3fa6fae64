"""What `accept`, `reopen`, `release` and `export` print for people."""

from __future__ import annotations

from typing import Any

from gpudebug.terminal import acceptance

ACCEPTED: dict[str, Any] = {
    "why": "hypothesis 2 is accepted: record the baseline with its change",
    "intervention": "--set --lr=0.2",
    "notes": ["the code changed"],
    "next_command": "gpudebug next",
}
EXPORTED: dict[str, Any] = {
    "files": ["/r/runs/export/0001-a.patch", "/r/runs/export/README.md"],
    "hypotheses": [
        {
            "number": 2,
            "title": "A",
            "improvement": "+40pp",
            "intervention": "--patch p",
            "patch": "0001-a.patch",
        },
        {"number": 1, "title": "B", "improvement": "+20pp", "intervention": "--set x=1", "patch": None},
        {"number": 3, "title": "C", "improvement": "+5pp", "intervention": "--patch q", "patch": None},
    ],
    "combined": {"text": "GPU util 20% to 70%: +50pp", "throughput": "1 to 2 steps/s: 2.00x", "why": None},
    "notes": [],
    "next_command": "git apply /r/runs/export/0001-a.patch",
}


def test_an_acceptance() -> None:
    assert acceptance.accept(ACCEPTED) == (
        "Hypothesis 2 is accepted: record the baseline with its change.\n"
        "Change: --set --lr=0.2\n"
        "note: the code changed\n"
        "Next: gpudebug next"
    )


def test_a_reopened_hypothesis_and_what_is_kept() -> None:
    answer = {"hypothesis": 3, "why": "the code changed", "already": False, "next_command": "gpudebug next"}
    assert acceptance.reopen({**answer, "earlier_runs": ["0004-h3", "0005-h3"]}) == (
        "Hypothesis 3 is UNTESTED again: the code changed\n"
        "Kept: runs/0004-h3, runs/0005-h3\n"
        "Next: gpudebug next"
    )
    again = {**answer, "why": "hypothesis 3 is UNTESTED already", "already": True, "earlier_runs": []}
    assert acceptance.reopen(again) == "Hypothesis 3 is UNTESTED already.\nNext: gpudebug next"


def test_a_claim_given_back() -> None:
    answer = {"why": "hypothesis 3 is UNTESTED again", "next_command": "gpudebug next"}
    assert acceptance.release(answer) == "Hypothesis 3 is UNTESTED again.\nNext: gpudebug next"


def test_an_export_with_its_combined_figure_last() -> None:
    for h, there in zip(EXPORTED["hypotheses"], (False, False, True), strict=True):
        h["in_checkout"] = there
    assert acceptance.export(EXPORTED).splitlines() == [
        "wrote /r/runs/export/0001-a.patch",
        "wrote /r/runs/export/README.md",
        "hypothesis 2: A",
        "    alone +40pp, --patch p (0001-a.patch)",
        "hypothesis 1: B",
        "    alone +20pp, --set x=1 (no patch)",
        "hypothesis 3: C",
        "    alone +5pp, --patch q (its patch is in the checkout already)",
        "Together, as measured: GPU util 20% to 70%: +50pp, throughput 1 to 2 steps/s: 2.00x",
        "Next: git apply /r/runs/export/0001-a.patch",
    ]
    unknown = {**EXPORTED, "combined": {"text": None, "throughput": None, "why": "a run lacks gpu_util"}}
    assert "Together: unknown: a run lacks gpu_util" in acceptance.export({**unknown, "next_command": None})
