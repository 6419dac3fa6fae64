"""What the training process computes beside its model, and what the CPU stand-in makes of it."""

from __future__ import annotations

import pytest
from tests.support.diagnoses import stacks
from tests.support.trials import run

from gpudebug.core.records import DeviceEvidence, Evidence, Stacks, StacksEvidence
from gpudebug.core.statistics.own_work import counted_as_busy, own_work

CPU = (DeviceEvidence(index=0, uuid="CPU", name="x"),)
MODEL = [("forward", "job/t.py:main", 3, 1.0, 1.0), ("backward", "job/t.py:main", 4, 1.0, 1.0)]


def rows(*others: tuple[str, float, float]) -> Stacks:
    """A model that computes for 2 s, and `others`: phase, seconds, seconds that it ran."""
    made = [(phase, "job/t.py:main job/t.py:get", 9, seconds, ran) for phase, seconds, ran in others]
    return stacks(*MODEL, *made)


def watched(*others: tuple[str, float, float], devices: tuple[DeviceEvidence, ...] = CPU) -> Evidence:
    return run(devices=devices, stacks=StacksEvidence(training=rows(*others)))


def test_each_phase_that_is_not_the_models_counts_as_far_as_it_runs() -> None:
    found = own_work(rows(("data", 4.0, 3.0), ("env", 2.0, 0.0), ("other", 2.0, 1.0), ("eval", 2.0, 2.0)))
    assert found == pytest.approx({"data": 0.25, "env": 0.0, "other": 1 / 12})


def test_without_a_models_phases_nothing_is_known() -> None:
    assert own_work(stacks(("other", "job/t.py:main", 9, 5.0, 5.0))) is None


@pytest.mark.parametrize("json", [False, True])
def test_batches_made_in_the_training_process_are_named(json: bool) -> None:
    e = watched(("data", 6.0, 6.0))
    text = counted_as_busy([e.model_dump(mode="json") if json else e])
    assert text is not None
    assert "computes 75% of the time outside its model, most of it making batches" in text


@pytest.mark.parametrize(
    "found",
    [
        pytest.param([watched(("data", 6.0, 0.2))], id="the loader waits for a store"),
        pytest.param([watched(("data", 0.4, 0.4))], id="little of it"),
        pytest.param(
            [watched(("data", 6.0, 6.0), devices=(DeviceEvidence(index=0, uuid="GPU-1", name="x"),))],
            id="a GPU, which the process keeps idle",
        ),
        pytest.param([watched(("data", 6.0, 6.0)), run(devices=CPU)], id="a run that was not watched"),
        pytest.param([], id="no run"),
    ],
)
def test_nothing_is_said_otherwise(found: list[Evidence]) -> None:
    assert counted_as_busy(found) is None
