"""The table of hypotheses, laid out for narrow and wide screens."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from tests.support.statuses import STORY, answer, hypothesis, judged

from gpudebug.core.answers.hypotheses import (
    AcceptAnswer,
    CombinedGain,
    ExportAnswer,
    ExportedHypothesis,
    ReleaseAnswer,
    ReopenAnswer,
)
from gpudebug.core.words import Status
from gpudebug.terminal.fit import Screen
from gpudebug.terminal.hypotheses import accept, export, hypotheses, release, reopen, sweeps

NARROW, USUAL, WIDE = Screen(40), Screen(80), Screen(200)


def test_on_80_columns_title_and_figures_have_a_line_each() -> None:
    assert hypotheses(answer(*STORY), USUAL) == [
        "  H  status        hypothesis",
        "     delta (95% CI)            throughput  loss        cost   age",
        "  1  REJECTED      Cause 1",
        "     -0.6pp (-16.1 to +14.9)   1.03x       CONVERGING  14 s   2.2 min",
        "     gpu_util ▁▁▁▁▁▂▂▂▂▂▃▃▃▃▃▄▄▄▄▄▅▅▅▅▅▆▆▆▆▆▇▇▇▇▇█████",
        "  2  UNTESTED      Single precision moves twice the bytes that half precision w…",
        "  3  INCONCLUSIVE  Cause 3",
        "     +75.0pp (+60.4 to +89.6)  4.20x       unknown     14 s   2.2 min",
        "     throughput is unknown (1.03x): more runs would tell",
        "     gpu_util ▁▁▁▁▁▂▂▂▂▂▃▃▃▃▃▄▄▄▄▄▅▅▅▅▅▆▆▆▆▆▇▇▇▇▇█████",
        "  4  TESTING       Cause 4",
        "     claimed by session a-1 since 2026-01-01T10:00:00+00:00",
        "  5  VALIDATED     Cause 5",
        "     UNVERIFIED +71.6pp",
        "  6  VALIDATED     Cause 6",
        "     +75.0pp (+60.4 to +89.6)  4.20x       CONVERGING  1.1 h  4.6 d",
        "     accepted: its change is part of the workload",
        "     gpu_util ▁▁▁▁▁▂▂▂▂▂▃▃▃▃▃▄▄▄▄▄▅▅▅▅▅▆▆▆▆▆▇▇▇▇▇█████",
    ]


def test_on_200_columns_a_hypothesis_is_a_row() -> None:
    lines = hypotheses(answer(*STORY), WIDE)
    (row,) = [line for line in lines if re.match(" +1  ", line)]
    assert " ".join(row.split()) == "1 REJECTED Cause 1 -0.6pp (-16.1 to +14.9) 1.03x CONVERGING 14 s 2.2 min"
    (head,) = [line for line in lines if "hypothesis  " in line]
    # Beside a title, not at the far end of the screen.
    assert head.index("delta (95% CI)") == row.index("-0.6pp") < 112


def test_on_40_columns_every_figure_is_named() -> None:
    assert hypotheses(answer(*STORY), NARROW)[:6] == [
        "  1  REJECTED",
        "     Cause 1",
        "     -0.6pp (95% CI -16.1 to +14.9),",
        "     throughput 1.03x, loss CONVERGING,",
        "     cost 14 s, 2.2 min ago",
        "     gpu_util ▁▁▁▁▂▂▂▃▃▃▄▄▄▅▅▅▆▆▆▆▇▇▇███",
    ]


def test_a_run_without_readings_is_no_picture_and_a_broken_one_is_named() -> None:
    broken = [{"run": "0007-h1", "spark": None}, {"run": "0008-h1", "spark": []}]
    lines = hypotheses(answer(judged(1, sparks=broken)), USUAL)
    assert not any("gpu_util" in line for line in lines)
    assert "     unreadable evidence: 0007-h1" in lines


def test_another_metric_has_its_name() -> None:
    ratio = {"delta_pp": None, "delta_ci": None, "improvement": 1.314, "improvement_ci": [1.236, None]}
    own = judged(1, metric="latency_p50", **ratio)
    told = answer(own, judged(2), metric="latency_p50")
    lines = hypotheses(told, USUAL)
    assert any(line.startswith("     latency_p50 (95% CI)") for line in lines)
    assert any(line.startswith("     1.31x  ") for line in lines)
    assert "     judged by gpu_util" in lines
    assert "     latency_p50 1.31x," in hypotheses(told, NARROW)


def test_what_is_left_out_is_counted() -> None:
    many = [judged(1), *(hypothesis(n) for n in range(2, 1000)), judged(1000, "REJECTED")]
    rows = [
        {"value": str(n), "hypothesis": n, "status": "UNTESTED", "verified": None, "throughput_ratio": None}
        | dict.fromkeys(("delta_pp", "delta_ci", "improvement", "improvement_ci"))
        for n in range(2, 1000)
    ]
    of_one, of_none = (
        {"parameter": p, "standing": None, "rows": r} for p, r in (("--a", rows), ("--b", rows[9:]))
    )
    told = answer(*many, shown=[1, 2, 3, 1000], sweeps=[of_one, of_none])
    assert hypotheses(told, USUAL)[-1] == "  …  and 996 more (996 UNTESTED): gpudebug status --json"
    assert sweeps(told, USUAL)[1:] == [
        "Sweep of --a",
        "  value    H  status        change                              throughput",
        "  2        2  UNTESTED",
        "  3        3  UNTESTED",
        "  … and 996 more values",
    ]


def test_without_any() -> None:
    assert hypotheses(answer(), USUAL) == ["No hypotheses yet."]
    assert sweeps(answer(), USUAL) == []


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
    assert accept(ACCEPTED) == (
        "Hypothesis 2 is accepted: record the baseline with its change.\n"
        "Change: --set --lr=0.2\n"
        "From now on run: python train.py --lr=0.2\n"
        "note: the code changed\n"
        "Next: gpudebug next"
    )


def test_a_reopened_hypothesis_and_what_is_kept() -> None:
    assert reopen(REOPENED) == (
        "Hypothesis 3 is UNTESTED again: the code changed\n"
        "Kept: runs/0004-h3, runs/0005-h3\n"
        "Next: gpudebug next"
    )
    again = replace(REOPENED, why="hypothesis 3 is UNTESTED already", already=True, earlier_runs=())
    assert reopen(again) == "Hypothesis 3 is UNTESTED already.\nNext: gpudebug next"


def test_a_claim_given_back() -> None:
    answer = ReleaseAnswer(
        campaign="test", hypothesis=3, kept=None, why="hypothesis 3 is UNTESTED again", files=()
    )
    assert release(answer) == "Hypothesis 3 is UNTESTED again.\nNext: gpudebug next"


def test_an_export_with_its_combined_figure_last() -> None:
    assert export(EXPORTED).splitlines() == [
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
    once = export(replace(EXPORTED, combined=rate)).splitlines()
    assert once[-2] == "Together, as measured: steps_per_s 1 to 2: 2.00x"
    unknown = replace(WORTH, text=None, throughput=None, why="a run lacks gpu_util")
    said = export(replace(EXPORTED, combined=unknown, next_command=None))
    assert said.splitlines()[-1] == "Together: unknown: a run lacks gpu_util"
