"""Workload and reference side by side: the flags that differ, and the figures that both know."""

from __future__ import annotations

import json

import pytest

from gpudebug.core.answers.answer import plain
from gpudebug.core.answers.diagnosis import OtherFlag
from gpudebug.core.diagnosis.model import DiagnosisFacts
from gpudebug.core.diagnosis.reference import difference
from gpudebug.core.words import SignalValue

WORKLOAD = ["python", "train.py", "--policy.type=rtc", "--num-workers", "0", "--lr=1e-4", "--compile"]
REFERENCE = ["python", "train.py", "--policy.type=act", "--num_workers=4", "--lr", "0.0001", "--seed=1"]


def test_flags_are_compared_by_what_they_set() -> None:
    found = difference([*WORKLOAD, "--output_dir=a"], [*REFERENCE, "--output_dir=b"])
    assert found.flags == (
        OtherFlag("policy.type", "rtc", "act"),
        OtherFlag("num_workers", "0", "4"),
        OtherFlag("compile", True, None),
        OtherFlag("seed", None, "1"),
    )
    assert found.program is None
    assert [*found.lines] == [
        "flag policy.type: rtc, reference act",
        "flag num_workers: 0, reference 4",
        "flag compile: set, reference not set",
        "flag seed: not set, reference 1",
    ]


def test_another_program_is_told() -> None:
    found = difference(["python", "rtc.py"], ["python", "act.py"])
    assert [*found.lines] == ["program: python rtc.py, reference python act.py"]


def test_a_command_differs_in_nothing_from_itself() -> None:
    facts = DiagnosisFacts(signals={"gpu_util": 20.0, "amp": True, "trains_on": "cuda:0"})
    found = difference(WORKLOAD, WORKLOAD, facts, facts)
    assert [*found.lines] == []
    assert plain(found) == {"program": None, "flags": [], "figures": [], "lines": []}


@pytest.mark.parametrize(
    ("name", "workload", "reference", "said"),
    [
        ("data_wait_share", 0.6, 0.02, "training waits 60% of its time for batches, reference 2.0%"),
        ("data_wait_share", 0.04, 0.0, None),
        ("gpu_util", 27.4, 85.0, "the device is busy 27%, reference 85%"),
        ("gpu_util", 81.0, 85.0, None),
        ("step_time_s", 0.2, 0.02, "a step takes 200 ms, reference 20 ms"),
        ("step_time_s", 0.02, 0.022, None),
        ("blocking_reads_per_step", 0.0, 2.0, "blocking reads of tensors: 0 a step, reference 2"),
        ("blocking_reads_per_step", 0.0, 0.0, None),
        ("amp", False, True, "mixed precision: no, reference yes"),
        ("trains_on", "cpu", "cuda:0", "the parameters live on cpu, reference cuda:0"),
        # What neither side measured: the reference itself is in it, and layers are other runs.
        ("reference_gap_pp", 50.0, 0.0, None),
        ("layer_quiet_ratio", 2.0, 1.0, None),
        ("device_idle_share", 0.8, 0.1, None),
        ("foreign_cpu", 80.0, 10.0, None),
    ],
)
def test_figures_count_where_they_are_apart(
    name: str, workload: SignalValue, reference: SignalValue, said: str | None
) -> None:
    found = difference(
        [], [], DiagnosisFacts(signals={name: workload}), DiagnosisFacts(signals={name: reference})
    )
    assert [*found.lines] == ([said] if said else [])
    assert [f["name"] for f in json.loads(json.dumps(plain(found)))["figures"]] == ([name] if said else [])


def test_what_one_side_does_not_know_does_not_differ() -> None:
    known = DiagnosisFacts(signals={"gpu_util": 20.0})
    assert difference([], [], known, DiagnosisFacts()).figures == ()
    assert difference([], [], known, None).figures == ()
