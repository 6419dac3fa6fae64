from __future__ import annotations

import pytest

from gpudebug.core.catalogue.model import Own
from gpudebug.core.change import intervention
from gpudebug.core.diagnosis import model
from gpudebug.core.diagnosis.model import judged, moved, power_of
from gpudebug.core.words import SignalValue, Status

FLAG, CODE = "--set --num_workers=4", "--code"
PATCH = "--patch hypotheses/patches/h1.patch"
WAIT = Own(signal="data_wait_share", direction="falls")
WORKERS = Own(signal="loader_workers", direction="rises")
READS = Own(signal="blocking_reads_per_step", direction="is_zero")


@pytest.mark.parametrize(
    ("change", "own", "before", "after", "power"),
    [
        (FLAG, [], {}, {}, 0.6),
        (CODE, [], {}, {}, 0.9),
        (PATCH, [], {}, {}, 0.9),
        ("--compound --set --a=1 --patch hypotheses/patches/h1.patch", [], {}, {}, 0.9),
        ("--env A=1", [], {}, {}, 0.6),
        (None, [], {}, {}, 0.6),
        (FLAG, [WAIT], {"data_wait_share": 0.6}, {"data_wait_share": 0.1}, 0.6),
        (FLAG, [WAIT], {"data_wait_share": 0.6}, {"data_wait_share": 0.6}, 0.3),
        (PATCH, [WAIT], {"data_wait_share": 0.6}, {"data_wait_share": 0.58}, 0.3),
        (PATCH, [WAIT], {"data_wait_share": 0.6}, {}, 0.9),
        (FLAG, [WAIT], {}, {"data_wait_share": 0.6}, 0.6),
        (
            FLAG,
            [WAIT, WORKERS],
            {"data_wait_share": 0.6, "loader_workers": 0.0},
            {"data_wait_share": 0.6, "loader_workers": 4.0},
            0.6,
        ),
        (FLAG, [WAIT, WORKERS], {"loader_workers": 4.0}, {"loader_workers": 4.0}, 0.3),
    ],
)
def test_what_a_trial_would_have_shown(
    change: str | None,
    own: list[Own],
    before: dict[str, SignalValue],
    after: dict[str, SignalValue],
    power: float,
) -> None:
    parsed = intervention.parse(change) if change else None
    assert power_of(parsed, own, before, after) == power


@pytest.mark.parametrize(
    ("own", "before", "after", "expected"),
    [
        (WAIT, 0.5, 0.44, True),
        (WAIT, 0.5, 0.46, False),
        (WAIT, 0.5, 0.6, False),
        (WAIT, 0.0, 0.0, False),
        (WORKERS, 0.0, 1.0, True),
        (WORKERS, 4.0, 4.2, False),
        (WORKERS, False, True, True),
        (WORKERS, True, True, False),
        (READS, 3.0, 0.0, True),
        (READS, 3.0, 1.0, False),
        (READS, 0.0, 0.0, True),
        (READS, None, 0.0, None),
        (READS, 3.0, None, None),
        (WORKERS, "cpu", "cuda", None),
    ],
)
def test_whether_a_figure_moved(
    own: Own, before: SignalValue | None, after: SignalValue | None, expected: bool | None
) -> None:
    assert moved(own, before, after) is expected


@pytest.mark.parametrize("status", list(Status))
def test_only_a_verdict_that_is_valid_says_something(status: Status) -> None:
    powers = {"dl-no-workers": 0.6, "dl-few-workers": 0.6, "py-gc": 0.3}
    said = judged(7, status, powers, before_accepting=True)
    if status in (Status.UNTESTED, Status.TESTING, Status.INVALID):
        assert said == ()
        return
    assert said == (
        model.Tested(("dl-no-workers", "dl-few-workers"), status.value, 0.6, 7, True),
        model.Tested(("py-gc",), status.value, 0.3, 7, True),
    )
