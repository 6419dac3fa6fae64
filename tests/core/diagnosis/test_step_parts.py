from __future__ import annotations

from tests.support.diagnoses import stacks
from tests.support.trials import run

from gpudebug.core.diagnosis.step_parts import step_parts
from gpudebug.core.records import ProbeEvidence, StacksEvidence


def probe(**shares: float) -> ProbeEvidence:
    return ProbeEvidence(pid=1, steps=100, **shares)  # type: ignore[arg-type]


def test_the_parts_of_a_step_and_what_is_left() -> None:
    found = step_parts(run(50.0, probe=probe(data_wait_share=0.5, forward_share=0.2, backward_share=0.2)))
    assert list(found.shares) == ["data_wait", "forward", "backward", "other"]
    assert round(found.shares["other"], 6) == 0.1


def test_parts_that_overlap_leave_nothing_and_never_less() -> None:
    found = step_parts(run(50.0, probe=probe(forward_share=0.7, backward_share=0.6)))
    assert found.shares["other"] == 0.0


def test_without_a_probe_the_parts_are_unknown_and_not_zero() -> None:
    assert step_parts(run(50.0)).shares == {}


def test_the_lines_with_the_most_time_are_the_first_three() -> None:
    seen = stacks(
        ("other", "app/train.py:load", 7, 6.0, 0.1),
        ("other", "app/train.py:step", 9, 3.8, 3.8),
        ("other", "app/train.py:log", 11, 0.2, 0.0),
    )
    places = step_parts(run(50.0, stacks=StacksEvidence(training=seen))).places
    assert [(p.function, p.state, round(p.share, 2)) for p in places] == [
        ("load", "waits", 0.6),
        ("step", "runs", 0.38),
    ]
