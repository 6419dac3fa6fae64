"""What is seen from outside stands in for the probe, as far as it shows, and never for more."""

from __future__ import annotations

from typing import Any

import pytest

from gpudebug.core.diagnosis.ofattached import signals
from gpudebug.core.inside.attached.foreign_frames import OWN_PROCESS, WITH_WORKERS
from gpudebug.core.records import Stacks, StacksEvidence


def stacks(**phases: float) -> StacksEvidence:
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
    found = signals([job()], stacks(data=6.0, forward=2.0, backward=1.0, other=1.0), None)
    assert found["data_wait_share"] == pytest.approx(0.6)
    assert found["optimizer_share"] == 0.0
    assert found["unattributed_share"] == pytest.approx(0.1)


def test_a_program_without_pytorch_has_no_parts_of_a_step() -> None:
    assert "data_wait_share" not in signals([job()], stacks(other=10.0), None)


def test_the_iterator_says_whether_the_loader_has_workers() -> None:
    assert signals([job(OWN_PROCESS)], None, 4.0)["loader_workers"] == 0.0
    with_workers = signals([job(WITH_WORKERS, workers=2)], None, 4.0)
    assert (with_workers["loader_workers"], with_workers["loader_workers_over_cores"]) == (2.0, 0.5)
    # Workers that cannot be seen are not none.
    assert "loader_workers" not in signals([job(WITH_WORKERS)], None, 4.0)
    assert "loader_used" not in signals([job()], None, 4.0)


def test_ranks_are_counted() -> None:
    assert signals([job(ranks=3)], None, None)["world_size"] == 4.0
    assert signals([job()], None, None)["world_size"] is None


def test_a_run_that_was_launched_is_the_probes() -> None:
    assert signals([{"probe": {"pid": 1}}], stacks(data=5.0), 4.0) == {}
    assert signals([{**job(OWN_PROCESS), "probe": {"pid": 1}}], stacks(data=5.0), 4.0) == {}
