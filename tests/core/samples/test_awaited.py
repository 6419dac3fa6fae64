"""The device that makes the others wait, and how often, from the devices' rows alone."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.support.collectives import (
    CARDS,
    EVERY,
    H100,
    PAUSE_S,
    STEP_S,
    T4,
    Card,
    checkpoints,
    healthy,
    recorded,
    shares_of,
    whole,
)

from gpudebug.core.records import AwaitedDevice
from gpudebug.core.samples.awaited import awaited
from gpudebug.core.samples.table import Sample, SampleTable


def found_in(rows: Sequence[Sample], limit: float | None = None) -> tuple[AwaitedDevice | None, str | None]:
    return awaited(SampleTable(rows=list(rows)).by_device, whole(rows), shares_of(rows, limit))


@pytest.mark.parametrize("card", [H100, T4], ids=["H100", "T4"])
@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("averaged_s", [0.0, 1.0])
def test_the_device_its_period_and_its_pause(card: Card, every: int, averaged_s: float) -> None:
    rows = checkpoints(every, card, devices=3, seconds=210.0, culprit=2, averaged_s=averaged_s, noise=0.02)
    found, reason = found_in(rows)
    assert reason is None
    assert found is not None
    assert (found.index, found.uuid, found.state) == (2, "GPU-2", "idle")
    assert found.every_s == pytest.approx(every * STEP_S + PAUSE_S, rel=0.02)
    assert found.length_s == pytest.approx(PAUSE_S, rel=0.1)
    assert found.share == pytest.approx(PAUSE_S / (every * STEP_S + PAUSE_S), rel=0.2)


def test_a_driver_that_averages_the_pauses_away_still_shows_which_device() -> None:
    """Once a second, with utilisation and power averaged over a second: the period is too short to see."""
    found, _ = found_in(checkpoints(1, devices=8, seconds=60.0, averaged_s=1.0, util_s=1.0, noise=0.02))
    assert found is not None
    assert (found.index, found.every_s) == (0, None)
    assert found.share > 0.9


def test_one_that_works_alone_while_the_others_wait() -> None:
    found, _ = found_in(
        checkpoints(100, devices=4, seconds=90.0, culprit=1, pause=4.0, works=True, noise=0.02)
    )
    assert found is not None
    assert (found.index, found.state) == (1, "works")
    assert found.every_s == pytest.approx(9.0, rel=0.02)


def test_two_devices() -> None:
    found, _ = found_in(checkpoints(50, devices=2, seconds=60.0, culprit=1))
    assert found is not None
    assert found.index == 1


@pytest.mark.parametrize("card", CARDS.values(), ids=CARDS)
@pytest.mark.parametrize("averaged_s", [0.0, 1.0])
@pytest.mark.parametrize("seed", range(2))
def test_no_device_of_a_healthy_job_is_named(card: Card, averaged_s: float, seed: int) -> None:
    found, _ = found_in(healthy(card, devices=4, seconds=60.0, seed=seed, averaged_s=averaged_s), card.limit)
    assert found is None


def test_devices_that_idle_together_wait_for_none_of_them() -> None:
    rows = recorded(lambda _, t: (97.0, 530.0) if t % 3 < 2 else (0.0, 130.0), 8, 60.0, noise=0.02)
    assert found_in(rows) == (None, None)


def test_devices_that_have_no_part_in_the_job_are_not_awaited() -> None:
    """One works, seven were only visible; or one is not used, and seven spin."""
    works = recorded(lambda d, _: (97.0, 530.0) if d == 0 else (0.0, 70.0), 8, 60.0, noise=0.02)
    assert found_in(works, 700.0) == (None, None)
    unused = recorded(lambda d, _: (0.0, 70.0) if d == 0 else (99.0, 150.0), 8, 60.0, noise=0.02)
    assert found_in(unused, 700.0) == (None, None)


@pytest.mark.parametrize("devices", [2, 4])
@pytest.mark.parametrize("used", [3.0, 5.0])
def test_a_desktop_is_no_part_of_a_job_whose_power_dips(devices: int, used: float) -> None:
    """It renders or infers a little all the time; the others evaluate every so often, at less power."""

    def state(d: int, t: float) -> tuple[float, float]:
        if d == 0:
            return used, 60.0
        return (85.0, 220.0) if t % 15 < 1.5 else (97.0, 500.0)

    assert found_in(recorded(state, devices, 90.0, noise=0.02), 700.0) == (None, None)


def test_bursts_beside_a_job_whose_power_dips_do_not_make_it_wait() -> None:
    draw = random.Random(4)
    bursts = {second for second in range(90) if draw.random() < 0.2}

    def state(d: int, t: float) -> tuple[float, float]:
        if d == 0:
            return (60.0, 180.0) if int(t) in bursts else (2.0, 60.0)
        return (85.0, 220.0) if t % 15 < 1.5 else (97.0, 500.0)

    assert found_in(recorded(state, 4, 90.0, noise=0.02), 700.0) == (None, None)


def test_a_desktop_beside_devices_that_always_spin_is_not_awaited() -> None:
    """None of their work shows, and what it does has nothing to do with their power."""
    draw = random.Random(5)
    renders = [draw.uniform(2.0, 7.0) for _ in range(90)]
    rows = recorded(
        lambda d, t: (renders[int(t)], 62.0) if d == 0 else (97.0, 150.0), 4, 90.0, util_s=1.0, noise=0.03
    )
    assert found_in(rows, 700.0) == (None, None)


def test_only_what_it_idles_beside_their_waiting_counts() -> None:
    """It idles for 4 s of 10, and the others wait for the first of them."""

    def state(d: int, t: float) -> tuple[float, float]:
        if t % 10 < 1:
            return (0.0, 130.0) if d == 0 else (99.0, 150.0)
        return (0.0, 130.0) if d == 0 and 1 <= t % 10 < 4 else (97.0, 530.0)

    found, _ = found_in(recorded(state, 4, 90.0, noise=0.02), 700.0)
    assert found is not None
    assert (found.index, found.every_s) == (0, pytest.approx(10.0, rel=0.01))
    assert found.share < 0.32


def test_independent_jobs_wait_for_none() -> None:
    """While GPU 0 idles every so often the others go on at the power of work."""
    rows = recorded(lambda d, t: (0.0, 130.0) if d == 0 and t % 5 < 1 else (97.0, 530.0), 8, 60.0, noise=0.02)
    assert found_in(rows, 700.0) == (None, None)


def test_two_devices_in_turn_are_not_one() -> None:
    """A checkpoint by the first process of each of two hosts."""

    def state(d: int, t: float) -> tuple[float, float]:
        if t % 5 < 4:
            return 97.0, 530.0
        return (0.0, 130.0) if d in (0, 4) else (99.0, 150.0)

    assert found_in(recorded(state, 8, 60.0, noise=0.02)) == (None, None)


def test_one_pause_is_no_habit() -> None:
    rows = recorded(
        lambda d, t: (97.0, 530.0) if not 20 < t < 22 else (0.0, 130.0) if d == 3 else (99.0, 150.0), 8, 60.0
    )
    assert found_in(rows) == (None, None)


def test_pauses_that_do_not_come_regularly_have_no_period() -> None:
    starts = (3.0, 9.0, 11.0, 27.0, 30.0, 48.0, 51.0)

    def state(d: int, t: float) -> tuple[float, float]:
        if not any(s <= t < s + 1 for s in starts):
            return 97.0, 530.0
        return (0.0, 130.0) if d == 5 else (99.0, 150.0)

    found, _ = found_in(recorded(state, 8, 60.0, noise=0.02))
    assert found is not None
    assert (found.index, found.times, found.every_s) == (5, 7, None)


def test_without_power_it_is_not_known() -> None:
    rows = [replace(r, power_w=None) for r in checkpoints(50, devices=4, seconds=30.0)]
    assert found_in(rows) == (None, "GPU 0: no reading of power")


def test_one_device_has_no_others() -> None:
    assert found_in(checkpoints(50, devices=1, seconds=30.0)) == (None, None)


def test_devices_that_are_read_at_other_moments() -> None:
    rows = [replace(r, elapsed=r.elapsed + 0.013 * r.gpu_index) for r in checkpoints(50, H100, seconds=60.0)]
    found, _ = found_in(sorted(rows, key=lambda r: r.elapsed))
    assert found is not None
    assert found.index == 0
