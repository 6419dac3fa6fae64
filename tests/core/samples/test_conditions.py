"""What the samples say of the machine, and when they cannot be trusted at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.support.readings import GPU, row

from gpudebug.core.records import Conditions, Window
from gpudebug.core.samples.conditions import apart, doubt, observed, usable
from gpudebug.core.samples.table import Sample, SampleTable

OTHER = (1, "GPU-1")
WINDOW = Window(start_s=1.0, end_s=3.0, samples=10, rule="steps")


def rows(*cells: dict[str, Any], device: tuple[int, str] = GPU) -> list[Sample]:
    """A row a second from 1 s on."""
    return [replace(row(i + 1.0, 50, device), **cell) for i, cell in enumerate(cells)]


def test_nothing_that_is_not_told_is_known() -> None:
    assert observed(rows({}, {}), WINDOW) == Conditions()
    assert observed([], None) == Conditions()


def test_foreign_processes_are_counted_where_they_disturb() -> None:
    before = replace(row(0.5, 0), foreign_procs=7)
    found = observed([before, *rows({"foreign_procs": 0}, {"foreign_procs": 2}, {})], WINDOW)
    assert (found.foreign_procs, found.foreign_share) == (2, 0.5)


def test_the_device_that_others_compute_on_is_known_of_several() -> None:
    free, shared = rows({"foreign_procs": 0}), rows({"foreign_procs": 2}, device=OTHER)
    found = observed([*free, *shared], WINDOW)
    assert (found.foreign_on, found.foreign_uuid) == OTHER
    assert observed(rows({"foreign_procs": 2}), WINDOW).foreign_uuid is None
    assert observed(rows({"foreign_procs": 2}), WINDOW).foreign_on is None
    assert observed([*free, *rows({"foreign_procs": 0}, device=OTHER)], WINDOW).foreign_on is None


def test_who_came_in_the_last_moments_counts_for_a_crash() -> None:
    """The tail behind the window is cut off, and a neighbour who took the memory came in it."""
    seen = rows(*[{"foreign_procs": 0}] * 3, {"foreign_procs": 1}, {"foreign_procs": 1})
    assert observed(seen, WINDOW).foreign_procs == 0
    assert observed(seen, WINDOW, crashed=True).foreign_procs == 1


def test_a_short_window_has_the_load_that_is_read_just_behind_it() -> None:
    short = Window(start_s=1.5, end_s=2.6, samples=5, rule="steps")
    seen = rows({"cpu_stolen": 1.0}, {}, {"cpu_stolen": 30.0}, {"cpu_stolen": 2.0})
    assert observed(seen, short).cpu_stolen == 30.0
    assert observed(seen[:2], short).cpu_stolen is None


@pytest.mark.parametrize(("other", "expected"), [({"foreign_procs": 3}, 3), ({}, None)])
def test_the_worst_of_the_devices_counts_and_none_may_be_silent(
    other: dict[str, int], expected: int | None
) -> None:
    found = observed([*rows({"foreign_procs": 1}), *rows(other, device=OTHER)], None)
    assert found.foreign_procs == expected


def test_strangers_on_one_node_are_there_whoever_is_on_another() -> None:
    found = observed([*rows({"foreign_procs": 1}), *rows({}, device=OTHER)], None, nodes=True)
    assert (found.foreign_procs, found.foreign_share) == (1, 1.0)
    assert (found.foreign_on, found.foreign_uuid) == GPU
    none = observed([*rows({"foreign_procs": 0}), *rows({}, device=OTHER)], None, nodes=True)
    assert none.foreign_procs is None


def test_clocks_and_throttling_are_the_worst_of_the_devices() -> None:
    one = rows(
        {"sm_clock_mhz": 1400.0, "throttle": "none"}, {"sm_clock_mhz": 1200.0, "throttle": "sw_thermal"}
    )
    two = rows(
        {"sm_clock_mhz": 900.0, "throttle": "sw_thermal+sw_power_cap"},
        {"sm_clock_mhz": 900.0, "throttle": "sw_thermal"},
        device=OTHER,
    )
    assert observed(one, None).sm_clock_mhz == 1300
    found = observed([*one, *two], None)
    assert found.sm_clock_mhz == 900
    assert found.throttle == {"sw_power_cap": 0.5, "sw_thermal": 1.0}


def test_the_load_of_others_is_a_mean() -> None:
    assert observed(rows({"foreign_cpu": 10.0}, {"foreign_cpu": 40.0}, {}), None).foreign_cpu == 25


def test_what_the_run_writes_and_uses_are_means() -> None:
    found = observed(rows({"write_mb_s": 1.0, "cpu_util": 150.0}, {"cpu_util": 50.0}, {}), None, 4.0)
    assert (found.write_mb_s, found.cpu_cores, found.cores) == (1.0, 1.0, 4.0)


USABLE: list[tuple[float | None, object, float | None]] = [
    (None, None, None),
    (1.5, None, 1.5),
    (None, 8, 8.0),
    (1.5, 8, 1.5),
    (16.0, 8, 8.0),
    (2.0, "many", 2.0),
    (2.0, True, 2.0),
    (None, 0, None),
]


@pytest.mark.parametrize(("quota", "affinity", "cores"), USABLE)
def test_the_cores_that_a_run_may_use(quota: float | None, affinity: object, cores: float | None) -> None:
    assert usable(quota, affinity) == cores


def side(clock: float | None = None, **throttle: float) -> list[Conditions]:
    return [Conditions(sm_clock_mhz=clock, throttle=throttle or ({} if clock else None))]


APART: dict[str, tuple[Sequence[Conditions], Sequence[Conditions], str | None]] = {
    "the same": (side(1410), side(1400), None),
    "not told": (side(), side(1400), None),
    "slower": (side(1410), side(1200), "clocks of 1410 and 1200 MHz"),
    "faster": (side(1200), side(1410), "clocks of 1200 and 1410 MHz"),
    "at its power limit": (side(1410), side(1200, sw_power_cap=0.4), None),
    "the faster one at its power limit": (
        side(1410, sw_power_cap=0.4),
        side(1200),
        "clocks of 1410 and 1200 MHz",
    ),
    "idle before": (side(1000, gpu_idle=0.3), side(1410), None),
    "too hot": (
        side(1410, sw_thermal=0.1),
        side(1400, sw_thermal=0.5),
        "throttled by sw_thermal 10% and 50% of the time",
    ),
    "alike hot": (side(1410, sw_thermal=0.5), side(1400, sw_thermal=0.6), None),
    "a brake": (side(1410), side(1400, hw_power_brake=1.0), "throttled by hw_power_brake 0% and 100%"),
    "power limit alone": (side(1410), side(1410, sw_power_cap=1.0), None),
}


@pytest.mark.parametrize(("before", "after", "said"), APART.values(), ids=APART)
def test_clocks_that_differ_by_themselves(
    before: Sequence[Conditions], after: Sequence[Conditions], said: str | None
) -> None:
    found = apart(before, after)
    assert [text[: len(said or "")] for text in found] == ([said] if said else [])


LONG = [row(t, 50) for t in (1.0, 2.0, 2.0, 40.0)]
DOUBTS: dict[str, tuple[SampleTable, float | None, int | None, str | None]] = {
    "whole": (SampleTable(LONG), 41.0, 100, None),
    "nothing known": (SampleTable([]), None, None, None),
    "a clock that jumped": (
        SampleTable([row(5.0, 50), row(3.5, 50)]),
        5.0,
        None,
        "the clock of samples.csv went back by 1.5 s at 5.0 s",
    ),
    "two devices at a time": (SampleTable([row(5.0, 50), row(4.9, 50, OTHER)]), 5.0, None, None),
    "rows cut off": (SampleTable(LONG), 60.0, None, "samples.csv is cut short: it ends at 40.0 s of 60.0 s"),
    "a run that was ended": (SampleTable(LONG), None, None, None),
    "one torn row": (SampleTable(LONG, unreadable=1), 41.0, None, None),
    "garbage": (SampleTable(LONG, unreadable=4), 41.0, None, "4 of 8 rows of samples.csv cannot be read"),
    "a log cut off": (
        SampleTable([replace(row(1.0, 50), log_bytes=900)]),
        1.0,
        120,
        "train.log is cut short: 120 bytes are left of 900",
    ),
    "a log that grew after the last row": (
        SampleTable([replace(row(1.0, 50), log_bytes=90)]),
        1.0,
        120,
        None,
    ),
}


@pytest.mark.parametrize(("samples", "duration", "size", "said"), DOUBTS.values(), ids=DOUBTS)
def test_evidence_that_cannot_be_trusted_is_named(
    samples: SampleTable, duration: float | None, size: int | None, said: str | None
) -> None:
    assert doubt(samples, duration, size) == said


def test_what_the_run_waited_for_is_a_mean() -> None:
    cells = {"cpu_wait": 30.0, "cpu_throttled": 4.0, "cpu_stolen": 20.0, "foreign_demand": 150.0}
    found = observed(rows(cells, {}, dict.fromkeys(cells, 0.0)), None)
    assert (found.cpu_wait, found.cpu_throttled, found.cpu_stolen, found.foreign_demand) == (15, 2, 10, 75)


@pytest.mark.parametrize(
    ("before", "after", "differs"),
    [
        pytest.param((3.0, 2.0), (60.0, 1.5), True, id="others used up the quota"),
        pytest.param((60.0, 1.5), (3.0, 2.0), True, id="while the baseline was recorded"),
        pytest.param((3.0, 1.0), (60.0, 2.0), False, id="the change wants more cores"),
        pytest.param((40.0, 1.0), (60.0, 1.0), False, id="held alike"),
        pytest.param((None, 1.0), (60.0, 1.0), False, id="unknown"),
    ],
)
def test_a_quota_that_held_one_side_back(
    before: tuple[float | None, float], after: tuple[float | None, float], differs: bool
) -> None:
    sides = [[Conditions(cpu_throttled=held, cpu_cores=used)] * 2 for held, used in (before, after)]
    found = apart(*sides)
    assert bool(found) is differs
    assert all(text.startswith("held back by a CPU quota for ") for text in found)
