"""The signals that several devices give beside each other."""

from __future__ import annotations

from typing import Any

import pytest

from gpudebug.core.diagnosis.ofdevices import signals, telling


def run(index: int | None = 0, *, working: float | None = 0.7, devices: int = 8) -> dict[str, Any]:
    """evidence.json of a run in which the others wait for this device."""
    waited = {"index": index, "uuid": f"GPU-{index}", "state": "idle", "share": 0.3, "times": 60}
    return {
        "utilisation": 94.0,
        "working": working,
        "devices": [{}] * devices,
        "awaited": {**waited, "length_s": 1.0, "alike": True, "every_s": 3.5} if index is not None else None,
    }


def test_work_waiting_and_the_device_that_is_waited_for() -> None:
    assert signals([run(), run()]) == {
        "working_share": pytest.approx(0.7),
        "busy_waiting_share": pytest.approx(0.24),
        "awaited_share": pytest.approx(0.3),
        "awaited_device": "GPU 0 is idle every 3.5 s for 1 s while the others are busy at waiting power: "
        "periodic work on one device",
    }


def test_that_none_is_waited_for_is_known() -> None:
    found = signals([run(None)])
    assert (found["awaited_share"], found["awaited_device"]) == (0.0, None)


def test_runs_that_show_one_and_none() -> None:
    assert signals([run(), run(None)])["awaited_share"] == pytest.approx(0.15)


def test_another_device_in_each_run_is_none() -> None:
    found = signals([run(0), run(3)])
    assert (found["awaited_share"], found["awaited_device"]) == (0.0, None)


@pytest.mark.parametrize("lacking", [run(None, working=None), {"utilisation": 94.0}])
def test_without_power_all_is_unknown(lacking: dict[str, Any]) -> None:
    assert set(signals([lacking]).values()) == {None}


def test_one_device_has_no_others() -> None:
    found = signals([run(None, devices=1)])
    assert found["working_share"] == pytest.approx(0.7)
    assert found["awaited_share"] is None


@pytest.mark.parametrize("record", [{"x": 1}, "GPU 0", 7, [1]])
def test_a_record_that_is_none_leaves_it_unknown(record: object) -> None:
    """evidence.json by another version, or by hand."""
    found = signals([{**run(), "awaited": record}])
    assert (found["awaited_share"], found["awaited_device"]) == (None, None)
    assert found["working_share"] == pytest.approx(0.7)


def test_more_work_than_utilisation_is_no_waiting() -> None:
    assert signals([run(None, working=0.99)])["busy_waiting_share"] == 0.0


def unlike(**more: Any) -> dict[str, Any]:
    """Without power: one GPU at 4 %, seven at 99 %."""
    devices = [
        {"index": n, "uuid": f"GPU-{n}", "gpu_util": {"mean": u}} for n, u in enumerate([4.0] + [99.0] * 7)
    ]
    return {**run(None, working=None), "utilisation": 87.1, "devices": devices, **more}


@pytest.mark.parametrize(
    ("evidence", "judged_by", "found"),
    [
        ([run()], None, (70.0, "working")),
        ([run(), run(working=0.9)], None, (80.0, "working")),
        ([unlike()], None, (4.0, "least")),
        ([unlike()], "mean", (4.0, "least")),
        ([unlike(working=0.5)], "least", (4.0, "least")),
        ([unlike(working=0.5)], "working", (50.0, "working")),
        # Nothing misleads: all GPUs do as much as they are busy, or there is one.
        ([run(None, working=0.93)], None, None),
        ([run(None, working=None, devices=1)], "least", None),
        ([run(None, working=None)], "working", None),
        ([], None, None),
    ],
)
def test_the_utilisation_that_does_not_mislead(
    evidence: list[dict[str, Any]], judged_by: str | None, found: tuple[float, str] | None
) -> None:
    signals = telling(evidence, judged_by)
    if found is None:
        assert signals == {}
    else:
        assert signals == {"telling_util": pytest.approx(found[0]), "telling_devices": found[1]}
