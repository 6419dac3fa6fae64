from __future__ import annotations

from typing import Any

import pytest

from gpudebug.core.diagnosis.ofprobe import signals

PARTS = {"forward_share": 0.3, "backward_share": 0.3, "optimizer_share": 0.1}


def told(**probe: Any) -> dict[str, Any]:
    return {"probe": {"pid": 1, "steps": 50, **probe}}


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
