"""A trial compared phase by phase."""

from __future__ import annotations

import pytest
from tests.core.statistics.test_phases import phase
from tests.support.trials import run, verdict

from gpudebug.core.records import Evidence, Window

WINDOW = Window(start_s=2, end_s=32, samples=150, rule="steps")


def seen(supervised: float, *ppo: float) -> Evidence:
    known = [phase("supervised", supervised, supervised, window=WINDOW)]
    known += [phase("ppo", util, 2 * util, window=WINDOW) for util in ppo]
    return run(30.0, phases=tuple(known))


@pytest.mark.parametrize(
    ("after", "lines"),
    [
        (
            [seen(10.0, 60.0)] * 2,
            [
                "phase supervised: gpu_util 10.0% to 10.0%, +0.0pp (95% CI",
                "phase ppo: gpu_util 30.0% to 60.0%, +30.0pp (95% CI",
            ],
        ),
        (
            [seen(10.0), seen(10.0, 60.0)],
            [
                "phase supervised: gpu_util 10.0% to 10.0%",
                "phase ppo: unknown, it did not come in 1 of 2 trial runs",
            ],
        ),
        ([run(30.0)] * 2, ["phase supervised: unknown", "phase ppo: unknown"]),
    ],
)
def test_each_phase_is_compared_with_itself(after: list[Evidence], lines: list[str]) -> None:
    notes = [note for note in verdict([seen(10.0, 30.0)] * 2, after).notes if note.startswith("phase ")]
    assert [note.startswith(line) for note, line in zip(notes, lines, strict=True)] == [True, True]
    assert "throughput 60 to 120 steps/s, 2.00x" in notes[1] or "unknown" in notes[1]


def test_runs_in_one_phase_have_no_lines() -> None:
    assert not any("phase" in note for note in verdict([seen(10.0)] * 2, [seen(20.0)] * 2).notes)
