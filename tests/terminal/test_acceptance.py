"""What `accept`, `reopen`, `release` and `export` print for people."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpudebug.core.answers.hypotheses import (
    AcceptAnswer,
    CombinedGain,
    ExportAnswer,
    ExportedHypothesis,
    ReleaseAnswer,
    ReopenAnswer,
)
from gpudebug.core.words import Status
from gpudebug.terminal import acceptance

ACCEPTED = AcceptAnswer(
    command="python train.py --lr=0.2",
    campaign="test",
    hypothesis=2,
    title="The loader waits",
    intervention="--set --lr=0.2",
    order=1,
    already=False,
    notes=("the code changed",),
    why="hypothesis 2 is accepted: record the baseline with its change",
    files=("/r/progress/test.md",),
)
REOPENED = ReopenAnswer(
    campaign="test",
    hypothesis=3,
    title="The loader waits",
    was=Status.REJECTED,
    already=False,
    earlier_runs=("0004-h3", "0005-h3"),
    why="the code changed",
    files=("/r/progress/test.md",),
)
WORTH = CombinedGain(
    metric="gpu_util",
    text="GPU util 20% to 70%: +50pp",
    throughput="1 to 2 steps/s: 2.00x",
    runs_before=("0001-baseline-workload",),
    runs_after=("0007-baseline-workload",),
)


def exported(number: int, title: str, improvement: str, intervention: str, **more: Any) -> ExportedHypothesis:
    known = {"order": 1, "throughput": "1 to 2 steps/s: 2.00x", "metric": "gpu_util"}
    unknown = {"delta": None, "throughput_ratio": None, "patch": None, "in_checkout": False}
    return ExportedHypothesis(
        number=number,
        title=title,
        improvement=improvement,
        intervention=intervention,
        **{**known, **unknown, **more},
    )


EXPORTED = ExportAnswer(
    campaign="test",
    directory="/r/runs/export",
    patches=("0001-a.patch",),
    hypotheses=(
        exported(2, "A", "+40pp", "--patch p", patch="0001-a.patch"),
        exported(1, "B", "+20pp", "--set x=1"),
        exported(3, "C", "+5pp", "--patch q", in_checkout=True),
    ),
    combined=WORTH,
    command="python train.py",
    replayed=False,
    notes=(),
    next_command="git apply /r/runs/export/0001-a.patch",
    files=("/r/runs/export/0001-a.patch", "/r/runs/export/README.md"),
)


def test_an_acceptance() -> None:
    assert acceptance.accept(ACCEPTED) == (
        "Hypothesis 2 is accepted: record the baseline with its change.\n"
        "Change: --set --lr=0.2\n"
        "From now on run: python train.py --lr=0.2\n"
        "note: the code changed\n"
        "Next: gpudebug next"
    )


def test_a_reopened_hypothesis_and_what_is_kept() -> None:
    assert acceptance.reopen(REOPENED) == (
        "Hypothesis 3 is UNTESTED again: the code changed\n"
        "Kept: runs/0004-h3, runs/0005-h3\n"
        "Next: gpudebug next"
    )
    again = replace(REOPENED, why="hypothesis 3 is UNTESTED already", already=True, earlier_runs=())
    assert acceptance.reopen(again) == "Hypothesis 3 is UNTESTED already.\nNext: gpudebug next"


def test_a_claim_given_back() -> None:
    answer = ReleaseAnswer(
        campaign="test", hypothesis=3, kept=None, why="hypothesis 3 is UNTESTED again", files=()
    )
    assert acceptance.release(answer) == "Hypothesis 3 is UNTESTED again.\nNext: gpudebug next"


def test_an_export_with_its_combined_figure_last() -> None:
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
    rate = replace(WORTH, metric="steps_per_s", text="steps_per_s 1 to 2: 2.00x")
    once = acceptance.export(replace(EXPORTED, combined=rate)).splitlines()
    assert once[-2] == "Together, as measured: steps_per_s 1 to 2: 2.00x"
    unknown = replace(WORTH, text=None, throughput=None, why="a run lacks gpu_util")
    said = acceptance.export(replace(EXPORTED, combined=unknown, next_command=None))
    assert said.splitlines()[-1] == "Together: unknown: a run lacks gpu_util"
