"""Below how many steps no cause is named, by what log and probe counted."""

from __future__ import annotations

from typing import Any

import pytest

from gpudebug.core.diagnosis.facts import facts_of
from gpudebug.core.diagnosis.few_steps import too_few
from gpudebug.core.diagnosis.rank import diagnose
from gpudebug.engine.run import catalogue


def seen(steps: int | None = None, *, probe: int | None = None, **more: Any) -> dict[str, Any]:
    told = {"steps": probe, "data_wait_share": 0.8} if probe is not None else None
    return {"run": "0001-x", "steps": steps, "step_unit": "step" if steps else None, "probe": told, **more}


@pytest.mark.parametrize(
    ("runs", "count"),
    [
        ([], None),
        ([seen()], None),
        ([seen(probe=0)], None),
        ([seen(probe=2, first_step_s=50.31)], "2 steps were seen, the first at 50.3 s"),
        ([seen(1)], "1 step was seen"),
        ([seen(9)], "9 steps were seen"),
        ([seen(10)], None),
        ([seen(9, probe=10)], None),
        ([seen(200, probe=5)], None),
        ([seen(7, probe=7, steps_per_s=1.0)], "7 steps were seen"),
        ([seen(7, probe=7, steps_per_s=0.4)], None),
        ([seen(100_007, first_count=100_001, last_count=100_007)], "7 steps were seen"),
        ([seen(50, first_count=50, last_count=50)], None),
        ([seen(1, step_unit="epoch")], None),
        ([seen(1, step_unit="epoch", probe=4)], "4 steps were seen"),
        ([seen(3, latency={"count": 500})], None),
        ([seen(6), seen(6)], None),
        (
            [seen(3, first_step_s=9), seen(4, first_step_s=8)],
            "7 steps were seen in 2 runs, the first at 8.0 s",
        ),
    ],
)
def test_how_many_steps_are_too_few(runs: list[dict[str, Any]], count: str | None) -> None:
    found = too_few(runs)
    assert found == (None if count is None else f"too short: {count}, and a cause needs 10")


def test_too_few_steps_name_no_cause_and_enough_do() -> None:
    causes = catalogue.load(None).causes
    few, enough = (diagnose(causes, facts_of([seen(probe=steps)])) for steps in (4, 40))
    assert few.causes == ()
    assert few.unexplained is None
    assert few.abstains == "too short: 4 steps were seen, and a cause needs 10: make the runs longer"
    assert enough.causes
    assert enough.abstains is None
