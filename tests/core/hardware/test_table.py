"""The checks of a machine: which GPUs are meant, how the sampler kept time, what its buffer holds."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support import gpu_recordings as made
from tests.support import nvml

from gpudebug.core.hardware.plan import plain_uuid
from gpudebug.core.hardware.recording import Gpu
from gpudebug.core.hardware.table import probe_check
from gpudebug.core.records import ProbeEvidence
from gpudebug.core.records.inside import ProbedCopies
from gpudebug.core.samples.row import DeviceReading


def probe(**changes: Any) -> ProbeEvidence:
    figures: dict[str, Any] = {
        "h2d": ProbedCopies(count=100, mb=6.4, seconds=0.1, pinned_share=1.0),
        "blocking_reads_per_step": 1.0,
        "syncs_per_step": 1.0,
        "device_time_share": 0.4,
    }
    return ProbeEvidence(pid=1, steps=200, span_steps=100, **{**figures, **changes})


def test_what_was_made_was_counted() -> None:
    check = probe_check(probe(), None)
    assert (check.result, check.next) == ("ok", None)
    assert "1.00 copies to the GPU a step" in check.found and "events: 40 % of a step" in check.found


@pytest.mark.parametrize(
    ("changes", "result"),
    [
        ({"syncs_per_step": 0.0}, "failed"),
        ({"blocking_reads_per_step": 2.0}, "failed"),
        ({"h2d": ProbedCopies(count=1, mb=1, seconds=1)}, "failed"),
        ({"h2d": None}, "unknown"),
        ({"device_time_share": None}, "unknown"),
        ({"device_time_share": None, "syncs_per_step": 0.0}, "failed"),
    ],
)
def test_what_is_wrong_fails_and_what_is_missing_is_unknown(changes: dict[str, Any], result: str) -> None:
    check = probe_check(probe(**changes), None)
    assert check.result == result and check.next


def test_a_probe_that_reported_nothing_fails_with_its_reason() -> None:
    check = probe_check(None, "PyTorch was not loaded")
    assert check.result == "failed" and "PyTorch was not loaded" in check.found


FIRST, SECOND = (plain_uuid(nvml.uuid(i)) for i in (0, 1))


def test_what_was_found_is_named() -> None:
    assert made.table()["driver"].found == "GPU 0 NVIDIA Stand-in 100; driver 550.54.15, CUDA 12.4"


@pytest.mark.parametrize(
    ("uuids", "result", "found"),
    [
        ((FIRST, SECOND), "ok", "the same 2 in the same order"),
        ((SECOND, FIRST), "failed", "in another order"),
        ((FIRST,), "failed", "GPU 1 unseen by CUDA, 0 of CUDA's not sampled"),
        (("f" * 32, FIRST, SECOND), "failed", "none unseen by CUDA, 1 of CUDA's not sampled"),
    ],
)
def test_sampler_and_cuda_must_mean_the_same(uuids: tuple[str, ...], result: str, found: str) -> None:
    check = made.table(2, machine_=made.machine(2, cuda_uuids=uuids))["UUIDs"]
    assert check.result == result and found in check.found
    assert (check.next is None) == (result == "ok")


def test_a_part_of_a_gpu_is_unknown_and_says_what_to_take() -> None:
    part = Gpu(0, nvml.uuid(0).replace("GPU", "MIG"), "x", mig=True)
    check = made.table(machine_=made.machine(gpus=(part,)))["MIG"]
    assert check.result == "unknown" and check.next


@pytest.mark.parametrize(
    ("notes", "result"),
    [
        ({}, "ok"),
        ({"missed": 5}, "ok"),
        ({"missed": 50}, "failed"),
        ({"restarts": 1}, "failed"),
        ({"ticks": 0}, "unknown"),
    ],
)
def test_ticks_that_were_missed(notes: dict[str, object], result: str) -> None:
    assert made.table(notes=notes)["sampling"].result == result


def test_lateness_is_counted_from_the_tick() -> None:
    assert "late by 2.0 ms (median), 2.0 ms (99 %)" in made.table()["sampling"].found


def test_the_drivers_buffer() -> None:
    assert made.table()["GPU 0 buffer"].found == "10.0 new samples a second, of the driver's own buffer"
    assert made.table(notes={"source": "rates"})["GPU 0 buffer"].result == "unknown"
    assert made.table(notes={"source": "none"})["GPU 0 buffer"].result == "unknown"

    def still(index: int, load: object) -> DeviceReading:
        return DeviceReading(gpu_util=3.0, new_samples=0)

    assert made.table(rule=still)["GPU 0 buffer"].result == "failed"


def test_a_lost_device_is_named_by_what_the_sampler_said() -> None:
    lost = made.machine(outcome="DEVICE_LOST", reason="the sampler ended")
    check = made.table(machine_=lost, until=9.0, notes={"lost": "GPU 0 is lost"})["load"]
    assert check.result == "failed" and check.found == "DEVICE_LOST after work 15: GPU 0 is lost"
