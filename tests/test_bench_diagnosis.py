"""The benchmark of the diagnosis: what orders of testing cost, and the bounds of the recorded table."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.bench.diagnosis import orders, recording, sheet
from tests.bench.diagnosis.__main__ import main
from tests.bench.diagnosis.recording import Recording, Run, Trial

SHEET = """\
# GPU utilization debugging: some

## Baselines

### Baseline: workload
- **GPU util**: 20.0%

## Hypotheses

### Hypothesis 1: One
- **Status**: UNTESTED

### Hypothesis 2: Two
- **Status**: UNTESTED
"""


def made(statuses: list[str]) -> Recording:
    trials = {n: Trial("", status, "why", 10.0) for n, status in enumerate(statuses, 1)}
    return Recording("some", "## Baselines", [], trials)


def test_a_progress_file_is_taken_apart_and_put_together() -> None:
    blocks = sheet.entries(SHEET)
    assert list(blocks) == [1, 2]
    assert sheet.composed("some", sheet.baselines(SHEET), blocks) == SHEET
    assert "Hypothesis 1" not in sheet.composed("some", sheet.baselines(SHEET), {2: blocks[2]})


def test_a_recording_is_read_back_as_it_was(tmp_path: Path) -> None:
    kept = made(["REJECTED", "VALIDATED"])
    kept.trials[2].runs.append(Run("0003-h2", {"run.json": {"duration_s": 10.0}}))
    first = recording.write(kept, tmp_path).read_bytes()
    assert recording.read("some", tmp_path) == kept
    assert recording.write(kept, tmp_path).read_bytes() == first
    assert recording.read("other", tmp_path) is None


def test_an_order_costs_what_stands_before_its_first_validated() -> None:
    kept = made(["REJECTED", "VALIDATED", "INCONCLUSIVE"])
    assert orders.cost(kept, [3, 2, 1]) == orders.Cost(2, 20.0)
    assert orders.cost(kept, [1, 3]) == orders.Cost(2, 20.0, found=False)


@settings(max_examples=10, deadline=None)
@given(n=st.integers(1, 9), fixes=st.integers(1, 3))
def test_chance_needs_as_many_as_theory_says(n: int, fixes: int) -> None:
    """With k fixes among n the first is found after (n + 1) / (k + 1) on average."""
    k = min(n, fixes)
    mean = orders.shuffled(made(["VALIDATED"] * k + ["REJECTED"] * (n - k))).experiments
    assert mean == pytest.approx((n + 1) / (k + 1), rel=0.1)


@pytest.mark.slow
def test_the_recorded_table_keeps_its_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0, capsys.readouterr().err
