"""The table of what verdicts take for granted: every row is read, and says where it is from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpudebug.core.statistics import assumed
from gpudebug.core.statistics.level import POINTS, RATIOS

ROOT = Path(__file__).resolve().parents[3]
READ = "".join(
    path.read_text("utf-8")
    for folder in ("orchestrator/gpudebug/core", "tests/bench")
    for path in (ROOT / folder).rglob("*.py")
)


@pytest.mark.parametrize("name", assumed.TABLE)
def test_each_row_is_read_and_has_its_unit_and_source(name: str) -> None:
    row = assumed.TABLE[name]
    assert len(re.findall(rf'assumed\("{name}"\)', READ)) >= 1
    assert row.value > 0 and row.unit and row.meaning and row.source
    assert row.by in {"", "doctor", "why", "campaign", "sampler"}


def test_a_verdict_begins_with_the_tables_noise() -> None:
    assert (POINTS.sd, RATIOS.sd, POINTS.runs) == tuple(
        assumed.assumed(name) for name in ("noise_points", "noise_rate", "noise_runs")
    )
