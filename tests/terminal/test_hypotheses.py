"""The table of hypotheses, laid out for narrow and wide screens."""

from __future__ import annotations

import re

from tests.support.statuses import STORY, answer, hypothesis, judged

from gpudebug.terminal.fit import Screen
from gpudebug.terminal.hypotheses import hypotheses, sweeps

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
