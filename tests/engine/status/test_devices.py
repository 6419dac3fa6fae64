"""What `status` says of the devices of a baseline beside each other: what `sample` does."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.powered import busy
from tests.support.trials import run

from gpudebug.core.evidence.devices import notes as device_notes
from gpudebug.core.records import AwaitedDevice
from gpudebug.core.statistics.metrics import Metric
from gpudebug.engine.status.devices import advice, notes

WAITED = AwaitedDevice(
    index=0, uuid="GPU-0", state="idle", share=0.29, times=68, length_s=1.0, alike=True, every_s=3.5
)


def job(*utilisations: float, working: float | None = 0.2, waited: AwaitedDevice | None = WAITED) -> Any:
    devices = tuple(busy(u, 200.0, n) for n, u in enumerate(utilisations))
    mean = sum(utilisations) / len(utilisations)
    return run(mean, 1.0, devices=devices, working=working, awaited=waited).model_dump(mode="json")


def of(metric: str, devices: str | None, *evidence: Any) -> tuple[Any, Any]:
    criteria = SimpleNamespace(devices=devices)
    return SimpleNamespace(metric=Metric(metric), config=SimpleNamespace(criteria=criteria)), SimpleNamespace(
        evidence=list(evidence)
    )


def noted(metric: str, devices: str | None, *evidence: Any) -> list[str]:
    setup, baseline = of(metric, devices, *evidence)
    return notes(setup.metric, baseline)


WORST = job(3.7, *[99.9] * 7)


@pytest.mark.parametrize("metric", ["gpu_util", "steps_per_s"])
@pytest.mark.parametrize("judged_by", [None, "mean", "least", "working"])
def test_the_device_that_is_waited_for_is_said_as_sample_says_it(metric: str, judged_by: str | None) -> None:
    (waited, *_) = device_notes(WORST)
    assert waited.startswith("GPU 0 is idle every 3.5 s")
    assert noted(metric, judged_by, WORST)[0] == waited


def test_that_the_mean_misleads_is_said_once_and_advised_where_utilisation_judges() -> None:
    assert [("misleads" in one) for one in noted("gpu_util", None, WORST)] == [False]
    assert ["misleads" in one for one in advice(*of("gpu_util", None, WORST))] == [True]
    assert ["misleads" in one for one in noted("steps_per_s", None, WORST)] == [False, True]
    assert advice(*of("steps_per_s", None, WORST)) == []
    assert advice(*of("gpu_util", "working", WORST)) == []


def test_busy_waiting_of_one_gpu_is_said_too() -> None:
    alone = job(97.0, working=0.3, waited=None)
    assert noted("steps_per_s", None, alone) == list(device_notes(alone))
    assert "the power of work is drawn 30.0% of the time" in advice(*of("gpu_util", None, alone))[0]


def test_a_healthy_job_and_one_without_power_have_nothing() -> None:
    for healthy in (job(95.0, 96.0, working=0.95, waited=None), job(50.0, working=None, waited=None)):
        asked = ("steps_per_s", None, healthy)
        assert (noted(*asked), advice(*of(*asked))) == ([], [])
