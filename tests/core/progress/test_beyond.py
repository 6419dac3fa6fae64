"""What an entry claims beside its checked lines: keys, lines and reasons."""

from __future__ import annotations

from gpudebug.core import progress
from gpudebug.core.progress import beyond

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


def claims(status: str = "VALIDATED", more: str = "") -> list[tuple[str, int, str]]:
    document = progress.parse(ENTRY.format(status=status, more=more).encode(), "p.md")
    assert beyond.in_baseline(document, document.baselines[0]) == []
    assert beyond.outside(document) == []
    return [(c.key, c.line, c.why) for c in beyond.in_hypothesis(document, document.hypotheses[0])]


def test_what_gpudebug_writes_claims_nothing_more() -> None:
    assert claims() == []
    assert claims(more="  - Mood: good\n") == []


def test_a_twin_has_its_own_line() -> None:
    assert claims(more="  - GPU util after: 99.9%\n") == [("gpu util after", 13, beyond.TWICE)]


def test_a_remark_behind_a_verdict_is_none_of_ours() -> None:
    assert claims("VALIDATED by far") == [("status", 10, beyond.REMARK)]
    assert claims("TESTING - session a, since 2026-11-21T10:00:00+00:00") == []


def test_own_text_with_a_figure_does_not_belong_into_a_result() -> None:
    assert claims(more="  - Speedup: 9\n") == [("speedup", 13, beyond.BESIDE)]
