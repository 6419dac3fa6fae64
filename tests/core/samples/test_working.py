"""The working share: power beside utilisation, on a scale that the recording itself gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from tests.support.collectives import (
    CARDS,
    EVERY,
    H100,
    T4,
    Card,
    checkpoints,
    healthy,
    recorded,
    shares_of,
    truly_working,
    whole,
)

from gpudebug.core.records import Window
from gpudebug.core.samples.table import Sample, SampleTable
from gpudebug.core.samples.working import MIN_READINGS, WorkingShare, levels, power_readings, working


def constant(power: float, util: float = 98.0, *, devices: int = 1, seconds: float = 30.0) -> list[Sample]:
    return recorded(lambda _device, _t: (util, power), devices, seconds)


def only(rows: Sequence[Sample], limit: float | None = None, start: float = 0.0) -> WorkingShare:
    """Of the first device."""
    return next(iter(shares_of(rows, limit, start).values()))


@pytest.mark.parametrize("card", CARDS.values(), ids=CARDS)
@pytest.mark.parametrize("every", EVERY[::2])
def test_it_is_the_time_that_the_steps_take(card: Card, every: int) -> None:
    shares = shares_of(checkpoints(every, card, devices=3, seconds=105.0))
    assert [s.share for s in shares.values()] == pytest.approx([truly_working(every)] * 3, abs=0.03)


@pytest.mark.parametrize("limited", [True, False])
@pytest.mark.parametrize("averaged_s", [0.0, 1.0])
@pytest.mark.parametrize("card", [H100, T4], ids=["H100", "T4"])
def test_the_six_are_ranked_in_their_true_order(card: Card, limited: bool, averaged_s: float) -> None:
    found = [
        min(s.share or 0.0 for s in shares_of(rows, card.limit if limited else None).values())
        for every in EVERY
        if (rows := checkpoints(every, card, devices=3, seconds=105.0, averaged_s=averaged_s, noise=0.02))
    ]
    assert found == sorted(found)
    assert found[0] < 0.25
    assert found[-1] > 0.9


def test_a_mean_moves_with_no_average_of_the_driver() -> None:
    at_once, averaged = (
        only(checkpoints(50, devices=2, seconds=105.0, averaged_s=seconds)).share for seconds in (0.0, 1.0)
    )
    assert at_once == pytest.approx(averaged, abs=0.05)


@pytest.mark.parametrize("card", CARDS.values(), ids=CARDS)
def test_devices_that_work_all_the_time(card: Card) -> None:
    rows = recorded(lambda _, t: (0.0, card.idle) if t < 5 else (97.0, card.working), 2, 60.0, noise=0.03)
    shares = shares_of(rows, card.limit, start=10.0).values()
    assert all(s.share is not None and s.share > 0.95 for s in shares)


@pytest.mark.parametrize("card", CARDS.values(), ids=CARDS)
def test_devices_that_spin_all_the_time(card: Card) -> None:
    """Busy from start to end, and their power hardly above that of an idle device."""
    rows = recorded(lambda _, t: (0.0, card.idle) if t < 5 else (100.0, card.waiting), 2, 60.0, noise=0.03)
    shares = shares_of(rows, card.limit, start=10.0).values()
    assert all(s.share is not None and s.share < 0.3 for s in shares)


def test_a_device_is_measured_by_the_work_of_its_sibling() -> None:
    """GPU 1 waits from start to end: what work draws shows on GPU 0."""

    def state(device: int, t: float) -> tuple[float, float]:
        works = device == 0 and t % 4 < 2
        return (97.0, H100.working) if works else (99.0, H100.waiting)

    first, second = shares_of(recorded(state, 2, 40.0)).values()
    assert first.share == pytest.approx(0.5, abs=0.02)
    assert second.share == pytest.approx(0.0, abs=0.02)


def test_a_sibling_of_another_model_is_no_measure() -> None:
    rows = recorded(
        lambda device, t: (97.0, 530.0 if t % 4 < 2 else 150.0) if device == 0 else (97.0, 69.0), 2, 40.0
    )
    by_device = SampleTable(rows=rows).by_device
    one, other = by_device
    shares = working(by_device, whole(rows), names={one: "H100", other: "T4"})
    assert shares[one].share == pytest.approx(0.5, abs=0.02)
    assert shares[other].share is None


def test_idling_and_waiting_are_no_working_phases() -> None:
    """Two levels, neither of them of work: the limit tells."""
    rows = recorded(lambda _, t: (0.0, 130.0) if t % 6 < 3 else (99.0, 150.0), 1, 60.0)
    found = only(rows, limit=700.0)
    assert found.share is not None
    assert found.share < 0.1


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (
            constant(150.0),
            "power is alike all the time (150 W), also beside it, and its power limit and what it draws idle",
        ),
        ([replace(r, power_w=None) for r in constant(150.0)], "no reading of power"),
        (constant(150.0, seconds=1.5), f"only 15 readings of power in the window, {MIN_READINGS} needed"),
    ],
)
def test_it_abstains(rows: list[Sample], reason: str) -> None:
    found = only(rows)
    assert found.share is None
    assert found.scale is None
    assert found.reason is not None
    assert found.reason.startswith(reason)


def test_the_idle_power_before_the_job_tells_of_work_only_what_is_sure() -> None:
    """Before a job clocks are down: twice that may be waiting, seven times may not."""

    def run(power: float) -> WorkingShare:
        return only(recorded(lambda _, t: (0.0, 73.0) if t < 5 else (99.0, power), 1, 60.0), start=10.0)

    assert run(530.0).share == 1.0
    assert run(150.0).share is None


def test_power_right_after_the_work_is_no_idle_power() -> None:
    """While it is averaged it has not fallen yet: idle moments that are too short show nothing."""
    found = shares_of(healthy(averaged_s=1.0, devices=4), 700.0)
    assert all(s.share is not None and s.share > 0.7 for s in found.values())


@pytest.mark.parametrize(
    ("level", "two"),
    [
        (lambda t: 530.0 if t % 2 < 1 else 150.0, True),
        (lambda t: 500.0 + 30.0 * (t % 2), False),
        (lambda t: 200.0 + 400.0 * (t % 1), False),
    ],
)
def test_two_levels(level: Callable[[float], float], two: bool) -> None:
    found = levels(power_readings(recorded(lambda _, t: (97.0, level(t)), 1, 40.0), None))
    assert found is not None
    assert found.two is two


def test_power_that_never_varies_has_no_levels() -> None:
    assert levels(power_readings(constant(150.0), None)) is None
    assert levels([]) is None


def test_readings_count_for_the_time_since_the_last_one() -> None:
    rows = [r for r in constant(100.0, seconds=4.0) if not 1 < r.elapsed < 3]
    widths = [r.width for r in power_readings(rows, Window(start_s=0.5, end_s=4, samples=1, rule="fixed"))]
    assert max(widths) == pytest.approx(0.3)
    assert min(widths) == pytest.approx(0.1)
