"""What does not fit together is said; what does is not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.probe_lines import training

from gpudebug.core.inside.probe.crosscheck import factor, nodes, notes
from gpudebug.core.inside.probe.processes import read_probe
from gpudebug.core.records import DeviceInfo, ProbeEvidence

CPU = DeviceInfo(index=0, uuid="CPU", name="a processor", kind="cpu")
GPU = DeviceInfo(index=0, uuid="GPU-0", name="a GPU", kind="nvml")
TWO = {"optimizers": [{"index": 0}, {"index": 1}]}


def probe(rate: float | None = 10.0, **more: Any) -> ProbeEvidence:
    return ProbeEvidence(pid=1, steps=300, steps_per_s=rate, **more)


RATES = {
    "the same": (probe(), 10.0, None),
    "nearly": (probe(), 10.9, None),
    "the log does not tell": (probe(), None, None),
    "the probe does not": (probe(None), 10.0, None),
    "four times": (probe(), 39.6, "the log counts 4 steps for each step of the optimizer"),
    "two optimizers": (probe(facts=TWO), 20.0, "each step of the optimizer: there are 2 optimizers"),
    "accumulated": (probe(backwards_per_step=8.0), 80.5, "gradients are accumulated over 8 backward passes"),
    "a third": (probe(), 3.3, "the optimizer steps 3 times for each step of the log"),
    "apart": (probe(), 14.0, "14 steps/s by the log, 10 by the optimizer's steps"),
    "far beyond": (probe(), 5000.0, "count different things"),
}


@pytest.mark.parametrize(("told", "log_rate", "said"), RATES.values(), ids=RATES)
def test_the_rates_of_log_and_probe(told: ProbeEvidence, log_rate: float | None, said: str | None) -> None:
    found = notes(told, log_rate, [CPU])
    assert len(found) == (said is not None)
    assert all(said in note for note in found if said)


@pytest.mark.parametrize(
    ("device", "sampled", "count"),
    [("cpu", [GPU], 1), ("cpu", [CPU], 0), ("cuda:0", [GPU], 0), (None, [GPU], 0), ("cpu", [], 0)],
)
def test_a_training_on_the_cpu_beside_an_idle_gpu(
    device: str | None, sampled: list[DeviceInfo], count: int
) -> None:
    found = notes(probe(facts={"device": device} if device else {}), None, sampled)
    assert len(found) == count
    assert all("runs on the CPU" in note for note in found)


def test_a_probe_that_switched_itself_off_is_noted() -> None:
    assert notes(probe(off="ValueError: no"), 10.0, [CPU]) == (
        "the probe switched itself off: ValueError: no",
    )


@given(st.integers(2, 128), st.floats(-0.14, 0.14))
def test_a_whole_factor_is_found_within_what_rates_are_known_to(times: int, error: float) -> None:
    assert factor(times + min(1.0, 0.05 * times / 0.15) * error) == times


@pytest.mark.parametrize("ratio", [0.0, 0.3, 1.0, 1.04, 1.5, 2.4, 3.5, 7.5, 129.0, 1e9])
def test_other_ratios_are_no_factor(ratio: float) -> None:
    assert factor(ratio) is None


@pytest.mark.parametrize(("second", "noted"), [(0, True), (1, False)], ids=["the same rank", "another"])
def test_a_node_that_trains_on_its_own_is_named(second: int, noted: bool) -> None:
    text = training(1, steps=60, rank=0, world_size=2, node="n0")
    found = nodes(read_probe(text + training(2, steps=50, rank=second, world_size=2, node="n1")))
    assert [note.partition(",")[0] for note in found] == (["n1 trained"] if noted else [])
    assert nodes(None) == ()
