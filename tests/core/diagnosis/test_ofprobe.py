from __future__ import annotations

from typing import Any

import pytest
from tests.support.diagnoses import stacks
from tests.support.trials import run

from gpudebug.core.diagnosis.ofprobe import (
    attached_signals,
    costs,
    device_signals,
    signals,
    step_parts,
    telling,
)
from gpudebug.core.inside.attached.foreign_frames import OWN_PROCESS, WITH_WORKERS
from gpudebug.core.records import ProbeEvidence, Stacks, StacksEvidence

PARTS = {"forward_share": 0.3, "backward_share": 0.3, "optimizer_share": 0.1}


def told(**probe: Any) -> dict[str, Any]:
    return {"probe": {"pid": 1, "steps": 50, **probe}}


def test_a_sample_costs_its_share_of_all_steps_where_several_share_a_batch() -> None:
    """Four steps of the optimizer on each batch of 64: three of them, and so the median, load none."""
    evidence = [{**told(steps_per_s=40.0, samples_per_s=640.0, step_time_p50_s=0.005), "batch_size": 64}]
    known = {"step_time_s": 0.005, "data_wait_share": 0.8, "loader_workers": 0, "batch_size": 64.0}
    found = costs(known, evidence)
    assert found["sample_cost_s"] == pytest.approx(0.8 / 640)
    assert found["fetch_s"] == pytest.approx(0.08)


@pytest.mark.parametrize(
    ("probe", "name", "expected"),
    [
        (PARTS, "unattributed_share", 0.3),
        ({"forward_share": 0.3, "backward_share": 0.3}, "unattributed_share", None),
        ({"forward_share": 0.6, "backward_share": 0.6, "optimizer_share": 0.1}, "unattributed_share", 0.0),
        ({**PARTS, "background_data_share": 0.4}, "unattributed_share", None),
        ({**PARTS, "background_data_share": 0.4, "data_wait_share": 0.1}, "unattributed_share", 0.2),
        ({"h2d": {"count": 4, "mb": 1, "seconds": 1}}, "h2d_copies_per_step", None),
        ({"span_steps": 2, "h2d": {"count": 4, "mb": 1, "seconds": 1}}, "h2d_copies_per_step", 2.0),
        ({"span_steps": 2, "h2d": {"count": 4, "mb": 1, "seconds": 1}}, "h2d_share", None),
        ({}, "loader_used", None),
        ({"facts": {}}, "loader_used", None),
        ({"facts": {"device": "cpu"}}, "loader_used", False),
        ({"facts": {"device": "cpu", "loaders": [3, "?", {"workers": 1}]}}, "loader_workers", 1.0),
        ({"facts": {"optimizers": [None, 7, {"steps": 3}]}}, "optimizers", 1.0),
        ({"facts": {"optimizers": "many"}}, "optimizers", None),
        ({}, "loader_workers", None),
        ({"facts": {"loaders": [{"workers": 0, "persistent_workers": False}]}}, "loader_persistent", None),
        ({"facts": {"loaders": [{"workers": 2, "persistent_workers": False}]}}, "loader_persistent", False),
        ({"facts": {"loaders": [{"workers": 2, "training": False}]}}, "loader_used", False),
        ({"facts": {"compile": None}}, "compiled", False),
        ({"facts": {}}, "compiled", None),
        ({"facts": {"compile": {"graph_breaks": 3}}}, "graph_breaks", 3.0),
        ({"facts": {"threads": 8}}, "threads_over_cores", 4.0),
        ({"step_time_p50_s": 0.1}, "step_time_spread", None),
        ({"alloc_retries": 0}, "alloc_retries", 0),
    ],
    ids=str,
)
def test_a_signal_of_the_probe(probe: dict[str, Any], name: str, expected: object) -> None:
    found = signals([told(**probe)], 2.0).get(name)
    assert found == (pytest.approx(expected) if isinstance(expected, float) else expected)


def test_without_a_probe_the_log_tells_steps_and_batch() -> None:
    assert signals([{"step_time_p50_s": 0.2, "batch_size": 8.0}], None) == {
        "step_time_s": 0.2,
        "batch_size": 8.0,
    }


def test_threads_of_all_ranks_of_the_host_count() -> None:
    ranks = [{"pid": pid, "steps": 50} for pid in (1, 2)]
    found = signals([told(facts={"threads": 8}, ranks=ranks)], 2.0)
    assert (found["threads"], found["threads_over_cores"]) == (16.0, 8.0)


def run_of_ofdevices(
    index: int | None = 0, *, working: float | None = 0.7, devices: int = 8
) -> dict[str, Any]:
    """evidence.json of a run in which the others wait for this device."""
    waited = {"index": index, "uuid": f"GPU-{index}", "state": "idle", "share": 0.3, "times": 60}
    return {
        "utilisation": 94.0,
        "working": working,
        "devices": [{}] * devices,
        "awaited": {**waited, "length_s": 1.0, "alike": True, "every_s": 3.5} if index is not None else None,
    }


def test_work_waiting_and_the_device_that_is_waited_for() -> None:
    assert device_signals([run_of_ofdevices(), run_of_ofdevices()]) == {
        "working_share": pytest.approx(0.7),
        "busy_waiting_share": pytest.approx(0.24),
        "awaited_share": pytest.approx(0.3),
        "awaited_device": "GPU 0 is idle every 3.5 s for 1 s while the others are busy at waiting power: "
        "periodic work on one device",
    }


def test_that_none_is_waited_for_is_known() -> None:
    found = device_signals([run_of_ofdevices(None)])
    assert (found["awaited_share"], found["awaited_device"]) == (0.0, None)


def test_runs_that_show_one_and_none() -> None:
    assert device_signals([run_of_ofdevices(), run_of_ofdevices(None)])["awaited_share"] == pytest.approx(
        0.15
    )


def test_another_device_in_each_run_is_none() -> None:
    found = device_signals([run_of_ofdevices(0), run_of_ofdevices(3)])
    assert (found["awaited_share"], found["awaited_device"]) == (0.0, None)


@pytest.mark.parametrize("lacking", [run_of_ofdevices(None, working=None), {"utilisation": 94.0}])
def test_without_power_all_is_unknown(lacking: dict[str, Any]) -> None:
    assert set(device_signals([lacking]).values()) == {None}


def test_one_device_has_no_others() -> None:
    found = device_signals([run_of_ofdevices(None, devices=1)])
    assert found["working_share"] == pytest.approx(0.7)
    assert found["awaited_share"] is None


@pytest.mark.parametrize("record", [{"x": 1}, "GPU 0", 7, [1]])
def test_a_record_that_is_none_leaves_it_unknown(record: object) -> None:
    """evidence.json by another version, or by hand."""
    found = device_signals([{**run_of_ofdevices(), "awaited": record}])
    assert (found["awaited_share"], found["awaited_device"]) == (None, None)
    assert found["working_share"] == pytest.approx(0.7)


def test_more_work_than_utilisation_is_no_waiting() -> None:
    assert device_signals([run_of_ofdevices(None, working=0.99)])["busy_waiting_share"] == 0.0


def unlike(**more: Any) -> dict[str, Any]:
    """Without power: one GPU at 4 %, seven at 99 %."""
    devices = [
        {"index": n, "uuid": f"GPU-{n}", "gpu_util": {"mean": u}} for n, u in enumerate([4.0] + [99.0] * 7)
    ]
    return {**run_of_ofdevices(None, working=None), "utilisation": 87.1, "devices": devices, **more}


@pytest.mark.parametrize(
    ("evidence", "judged_by", "found"),
    [
        ([run_of_ofdevices()], None, (70.0, "working")),
        ([run_of_ofdevices(), run_of_ofdevices(working=0.9)], None, (80.0, "working")),
        ([unlike()], None, (4.0, "least")),
        ([unlike()], "mean", (4.0, "least")),
        ([unlike(working=0.5)], "least", (4.0, "least")),
        ([unlike(working=0.5)], "working", (50.0, "working")),
        # Nothing misleads: all GPUs do as much as they are busy, or there is one.
        ([run_of_ofdevices(None, working=0.93)], None, None),
        ([run_of_ofdevices(None, working=None, devices=1)], "least", None),
        ([run_of_ofdevices(None, working=None)], "working", None),
        ([], None, None),
    ],
)
def test_the_utilisation_that_does_not_mislead(
    evidence: list[dict[str, Any]], judged_by: str | None, found: tuple[float, str] | None
) -> None:
    signals_of_ofdevices = telling(evidence, judged_by)
    if found is None:
        assert signals_of_ofdevices == {}
    else:
        assert signals_of_ofdevices == {"telling_util": pytest.approx(found[0]), "telling_devices": found[1]}


def stacks_of_ofattached(**phases: float) -> StacksEvidence:
    total = sum(phases.values())
    places = tuple((phase, (0,), 0, seconds, 0.0) for phase, seconds in phases.items())
    return StacksEvidence(
        training=Stacks(seconds=total, cpu_s=0.0, samples=100, frames=("a.py:f",), stacks=places)
    )


def job(loader: str = "", workers: int = 0, ranks: int = 0) -> dict[str, Any]:
    main = {"pid": 1, "of": "training", "loader": loader, "cores": 2.0}
    rest = [{"pid": 10 + n, "of": "worker"} for n in range(workers)]
    rest += [{"pid": 50 + n, "of": "rank"} for n in range(ranks)]
    return {"attached": {"processes": [main, *rest]}}


def test_the_parts_of_a_step_are_those_of_the_stacks() -> None:
    found = attached_signals(
        [job()], stacks_of_ofattached(data=6.0, forward=2.0, backward=1.0, other=1.0), None
    )
    assert found["data_wait_share"] == pytest.approx(0.6)
    assert found["optimizer_share"] == 0.0
    assert found["unattributed_share"] == pytest.approx(0.1)


def test_a_program_without_pytorch_has_no_parts_of_a_step() -> None:
    assert "data_wait_share" not in attached_signals([job()], stacks_of_ofattached(other=10.0), None)


def test_the_iterator_says_whether_the_loader_has_workers() -> None:
    assert attached_signals([job(OWN_PROCESS)], None, 4.0)["loader_workers"] == 0.0
    with_workers = attached_signals([job(WITH_WORKERS, workers=2)], None, 4.0)
    assert (with_workers["loader_workers"], with_workers["loader_workers_over_cores"]) == (2.0, 0.5)
    # Workers that cannot be seen are not none.
    assert "loader_workers" not in attached_signals([job(WITH_WORKERS)], None, 4.0)
    assert "loader_used" not in attached_signals([job()], None, 4.0)


def test_ranks_are_counted() -> None:
    assert attached_signals([job(ranks=3)], None, None)["world_size"] == 4.0
    assert attached_signals([job()], None, None)["world_size"] is None


def test_a_run_that_was_launched_is_the_probes() -> None:
    assert attached_signals([{"probe": {"pid": 1}}], stacks_of_ofattached(data=5.0), 4.0) == {}
    assert (
        attached_signals([{**job(OWN_PROCESS), "probe": {"pid": 1}}], stacks_of_ofattached(data=5.0), 4.0)
        == {}
    )


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
