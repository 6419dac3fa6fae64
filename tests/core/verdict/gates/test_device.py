"""Whether the device, and the cores that feed it, were the run's own."""

from __future__ import annotations

from collections.abc import Sequence

from tests.support.trials import gate, run, verdict

from gpudebug.core.records import Conditions, DeviceEvidence, Evidence, Gate
from gpudebug.core.words import Result, Status


def on_gpu(procs: int | None, share: float = 0.0, cpu: float | None = None) -> Conditions:
    return Conditions(
        foreign_procs=procs, foreign_share=share if procs is not None else None, foreign_cpu=cpu
    )


def side(level: float, rate: float, *found: Conditions, uuid: str = "GPU-0") -> list[Evidence]:
    device = DeviceEvidence(index=0, uuid=uuid, name="x")
    return [run(level + i, rate, conditions=c, devices=(device,)) for i, c in enumerate(found)]


def device(before: Sequence[Conditions], after: Sequence[Conditions], uuid: str = "GPU-0") -> Gate:
    found = verdict(side(28, 5, *before, uuid=uuid), side(61, 11, *after, uuid=uuid))
    shown = gate(found, "device_to_itself")
    assert (found.status is Status.INVALID) is (shown.result is Result.FAIL)
    return shown


def test_a_device_to_itself_passes() -> None:
    found = device([on_gpu(0), on_gpu(0)], [on_gpu(0), on_gpu(0)])
    assert (found.result, found.value) == (Result.PASS, "alone")


def test_another_process_in_any_run_is_named() -> None:
    found = device([on_gpu(0), on_gpu(0)], [on_gpu(0), on_gpu(2, 0.25)])
    assert (found.result, found.note) == (Result.FAIL, None)
    assert found.value == "2 other processes on the device in trial run 0001-x, 25% of the time"


def test_a_baseline_that_shared_the_device_is_to_be_recorded_anew() -> None:
    found = device([on_gpu(1, 1.0), on_gpu(0)], [on_gpu(0), on_gpu(0)])
    assert found.result is Result.FAIL
    assert "baseline run 0001-x" in found.value
    assert found.note == "run `gpudebug baseline` to record the baseline again"


def test_a_driver_that_does_not_tell_is_quoted() -> None:
    blank = side(28, 5, on_gpu(0), on_gpu(0))
    silent = [
        e.model_copy(update={"missing": {"foreign_procs": "No Permission"}})
        for e in side(61, 11, on_gpu(None), on_gpu(None))
    ]
    found = gate(verdict(blank, silent), "device_to_itself")
    assert found.result is Result.SKIPPED
    assert found.note == "not checkable in trial run 0001-x: No Permission"
