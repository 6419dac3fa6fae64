"""What the devices of a run show beside each other, in evidence and in words."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.support.collectives import EVERY, H100, checkpoints, healthy, recorded, truly_working

from gpudebug.core.evidence.build import EndedRun, RunReadings, build
from gpudebug.core.evidence.together import (
    awaited_in,
    awaited_text,
    mean_hides,
    mean_misleads,
    notes,
    telling,
    waited_for,
)
from gpudebug.core.records import AwaitedDevice, DeviceInfo, Evidence
from gpudebug.core.samples.table import Sample, SampleTable
from gpudebug.core.trainlog.reader import LogSummary
from gpudebug.core.words import Outcome


def evidence_of(rows: tuple[Sample, ...], limit: float | None = None, **missing: str) -> Evidence:
    found = SampleTable(rows=list(rows))
    devices = [
        DeviceInfo(index=i, uuid=uuid, name="NVIDIA H100", kind="nvml", power_limit_w=limit)
        for i, uuid in found.devices
    ]
    run = EndedRun(
        name="0001-sample", role="sample", outcome=Outcome.COMPLETED, devices=devices, missing=missing
    )
    return build(run, RunReadings(samples=found, log=LogSummary()))


@pytest.fixture(scope="module")
def six() -> list[Evidence]:
    return [evidence_of(checkpoints(every, devices=8, seconds=240.0, noise=0.02)) for every in EVERY]


def test_each_of_the_six_names_the_device_and_its_period(six: list[Evidence]) -> None:
    found = [e.awaited for e in six]
    assert [one.index if one else None for one in found] == [0] * 6
    assert [one.every_s if one else None for one in found] == pytest.approx(
        [1.05, 1.5, 3.5, 6.0, 26.0, 51.0], rel=0.01
    )
    assert [e.awaited_reason for e in six] == [None] * 6


def test_least_and_working_rank_the_six(six: list[Evidence]) -> None:
    least = [min(d.gpu_util.mean for d in e.devices if d.gpu_util) for e in six]
    working = [e.working for e in six]
    assert least == sorted(least)
    assert working == sorted(working, key=lambda share: share or 0.0)
    assert working == pytest.approx([truly_working(every) for every in EVERY], abs=0.04)


def test_the_mean_is_marked_in_all_six(six: list[Evidence]) -> None:
    for e in six:
        told, misleads = notes(e)
        assert told.startswith("GPU 0 is idle every ")
        assert "misleads: waiting counts as busy in it" in misleads
        assert "criteria: {devices: working}" in misleads


def test_what_is_advised_is_silent_for_who_does_it(six: list[Evidence]) -> None:
    stored = [e.model_dump(mode="json") for e in six]
    assert mean_hides(stored) == mean_hides(six)
    assert "GPU 0 is busy" in str(mean_hides(six))
    assert "{devices: least}" in str(mean_hides(six))
    assert mean_hides(six, "mean") == mean_hides(six)
    assert (mean_hides(six, "working"), mean_hides(six, "least")) == (None, None)


def test_all_that_spin_are_told_to_who_judges_by_the_least() -> None:
    rows = recorded(lambda _, t: (0.0, 70.0) if t < 5 else (97.0, 150.0), 4, 60.0, noise=0.02)
    found = evidence_of(tuple(rows), limit=700.0)
    said = str(mean_hides([found]))
    assert said.startswith("the mean gpu_util of 97")
    assert mean_hides([found], "least") == said
    assert mean_hides([found], "working") is None


def test_unlike_devices_without_power_are_told_once() -> None:
    rows = [replace(r, power_w=None) for r in checkpoints(50, devices=2, seconds=30.0)]
    found = evidence_of(tuple(rows))
    assert "{devices: least}" in str(mean_hides([found, found]))
    assert mean_hides([found], "least") is None


def test_a_healthy_job_has_nothing_to_note() -> None:
    found = evidence_of(healthy(H100, seconds=60.0), limit=700.0)
    assert found.awaited is None
    assert notes(found) == ()


def test_without_power_shares_are_unknown_and_the_reason_is_the_drivers() -> None:
    rows = tuple(Sample(*(getattr(r, n) for n in _FIRST)) for r in checkpoints(50, devices=2, seconds=30.0))
    found = evidence_of(rows, power_w="not supported by this driver")
    assert found.working is None
    assert found.working_reason == "not supported by this driver"
    assert found.awaited_reason == "GPU 0: no reading of power"
    assert [d.working_reason for d in found.devices] == ["not supported by this driver"] * 2
    (note,) = notes(found)
    assert note.startswith("the mean over GPUs misleads: GPU 0 is busy ")


_FIRST = (
    *("elapsed", "gpu_util", "mem_used_mb", "gpu_index", "gpu_uuid", "new_samples", "rss_mb", "log_bytes"),
)


def test_without_a_window_nothing_is_said() -> None:
    found = evidence_of(checkpoints(50, devices=2, seconds=2.0))
    assert found.window is None
    assert (found.working, found.working_reason, found.awaited_reason) == (None, None, None)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (
            {"state": "idle", "times": 66, "length_s": 1.0, "every_s": 3.5},
            "GPU 3 is idle every 3.5 s for 1 s while the others are busy at waiting power: "
            "periodic work on one device",
        ),
        (
            {"state": "works", "times": 4, "length_s": 2.0, "every_s": None},
            "GPU 3 works alone 4 times for 2 s on average while the others are busy at waiting power: "
            "they wait for it",
        ),
        (
            {"state": "idle", "times": 1, "length_s": 61.0, "every_s": None},
            "GPU 3 is idle for 1 min 1 s while the others are busy at waiting power: they wait for it",
        ),
    ],
)
def test_the_sentence(fields: dict[str, object], text: str) -> None:
    found = AwaitedDevice.model_validate({"index": 3, "uuid": "GPU-3", "share": 0.2, "alike": True, **fields})
    assert awaited_text(found) == text
    part = found.model_copy(update={"uuid": "MIG-7"})
    assert awaited_text(part) == text.replace("GPU 3", "GPU 3 (MIG-7)")


@pytest.mark.parametrize(
    ("utilisation", "share", "awaited", "said"),
    [
        (97.0, 0.95, False, False),
        (97.0, 0.95, True, True),
        (97.0, 0.4, False, True),
        (97.0, None, True, False),
        (None, 0.4, True, False),
    ],
)
def test_when_the_mean_misleads(
    utilisation: float | None, share: float | None, awaited: bool, said: bool
) -> None:
    assert (mean_misleads(utilisation, share, awaited=awaited) is not None) is said


def test_a_record_and_its_json_have_the_same_notes(six: list[Evidence]) -> None:
    for e in six:
        assert notes(e.model_dump(mode="json")) == notes(e)


def test_the_device_that_all_runs_wait_for(six: list[Evidence]) -> None:
    alone, none = six[2], healthy_run()
    assert waited_for([alone]) == notes(alone)[0]
    assert waited_for([none]) is None
    # Of two runs one shows it: half of the time, as a mean.
    assert alone.awaited is not None
    assert f"({alone.awaited.share / 2:.0%} of the window)" in str(waited_for([alone, none]))
    other = alone.awaited.model_copy(update={"index": 3, "uuid": "GPU-3"})
    assert waited_for([alone, alone.model_copy(update={"awaited": other})]) is None


@pytest.mark.parametrize("record", [{"x": 1}, "GPU 0", 7, [1], None])
def test_a_record_that_is_none_is_waited_for_by_none(record: object) -> None:
    assert awaited_in([{"working": 0.5, "awaited": record}]) is None
    assert notes({"working": 0.5, "utilisation": 50.0, "awaited": None, "devices": None}) == ()


def test_what_tells_how_busy_devices_are(six: list[Evidence]) -> None:
    assert {telling([e]) for e in six} == {"working"}
    assert telling([healthy_run()]) is None
    lacking = six[0].model_copy(update={"working": None, "awaited": None})
    assert telling([lacking]) == "least"


def healthy_run() -> Evidence:
    return evidence_of(healthy(devices=8, seconds=60.0))
