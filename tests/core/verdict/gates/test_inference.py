"""When a program counts as one that only infers, and so is not asked for a loss."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.trials import gate, run, verdict

from gpudebug.core.records import Evidence, LatencyEvidence, LossEvidence, ProbeEvidence
from gpudebug.core.verdict.gates.inference import NO_LOSS, infers
from gpudebug.core.words import Result


def inferring(**more: Any) -> Evidence:
    figures: dict[str, Any] = {"latency_p50_s": 0.01, "latency": LatencyEvidence(count=300, p50_s=0.01)}
    return run(None, None, unit=None, **{**figures, "loss": LossEvidence(), **more})


@pytest.mark.parametrize(
    "more",
    [
        {"latency": None},
        {"loss": LossEvidence(points=1)},
        {"steps": 40},
        {"probe": ProbeEvidence(pid=1, steps=40)},
    ],
    ids=["no latency", "a loss", "steps", "steps of an optimizer"],
)
def test_a_program_that_may_train_is_asked_for_its_loss(more: dict[str, Any]) -> None:
    assert infers([inferring()])
    assert not infers([inferring(), inferring(**more)])
    found = gate(verdict([inferring()], [inferring(**more)], metric="latency_p50", direction="lower"), "loss")
    assert found.result is not Result.SKIPPED


def test_one_that_infers_is_not() -> None:
    terms = {"metric": "latency_p50", "direction": "lower", "success": 1.2, "failure": 1.1}
    found = gate(verdict([inferring()], [inferring()], **terms), "loss")
    assert (found.result, found.note) == (Result.SKIPPED, NO_LOSS)
