"""What an entry says in gpudebug's own lines beside what it writes there: keys, lines and reasons."""

from __future__ import annotations

import time

import pytest

from gpudebug.core import progress
from gpudebug.core.progress import surplus

ENTRY = """\
## Baselines

### Baseline: workload
- **GPU util**: 20.0%

## Hypotheses

### Hypothesis 1: The loader waits
- **Intervention**: --set --lr=0.2
- **Status**: {status}
- **Result**:
  - GPU util after: 56.4%
{more}  - Runs: runs/0002-h1
"""


def found(status: str = "VALIDATED", more: str = "") -> list[tuple[str, int, str]]:
    document = progress.parse(ENTRY.format(status=status, more=more).encode(), "p.md")
    assert surplus.in_baseline(document, document.baselines[0]) == []
    return [(s.key, s.line, s.why) for s in surplus.in_hypothesis(document, document.hypotheses[0])]


def test_what_gpudebug_writes_is_all_of_it() -> None:
    assert found() == []
    assert found(more="  - Mood: good\n") == []


def test_a_twin_has_its_own_line() -> None:
    assert found(more="  - GPU util after: 99.9%\n") == [("gpu util after", 13, surplus.TWICE)]


def test_a_remark_behind_a_verdict_is_none_of_ours() -> None:
    assert found("VALIDATED by far") == [("status", 10, surplus.REMARK)]
    assert found("TESTING - session a, since 2026-11-21T10:00:00+00:00") == []


def test_own_text_with_a_figure_does_not_belong_into_a_result() -> None:
    assert found(more="  - Speedup: 9\n") == [("speedup", 13, surplus.BESIDE)]
    assert found(more="  - Chart: [x](plots/h1.png), https://example.org/9\n") == []


@pytest.mark.parametrize("part", ["1,", "[x](", "1-", "~~a", "<!--", ":a", "FAILED/", "1 ", "http://", "\\"])
def test_no_text_takes_long(part: str) -> None:
    begun = time.process_time()
    surplus.measured(part * 30_000), surplus.figured(part * 30_000)
    assert time.process_time() - begun < 5
