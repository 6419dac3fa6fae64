"""The phases of `doctor --gpu`."""

from __future__ import annotations

import pytest

from gpudebug.core.hardware.plan import Load, Phase, parsed, plain_uuid, schedule, written

DIGITS = "5ca1ab1e000040008000000000000001"
DASHED = "5ca1ab1e-0000-4000-8000-000000000001"


def test_one_gpu_is_taken_through_each_load() -> None:
    phases = schedule(["GPU-a"], 4.0)
    assert [p.name for p in phases] == ["idle", "work 15", "work 50", "work 95", "spin 95"]
    assert {p.seconds for p in phases} == {4.0}
    assert [len(p.loads) for p in phases] == [0, 1, 1, 1, 1]


def test_each_gpu_works_alone_and_two_together_at_different_loads() -> None:
    phases = schedule(["a", "b", "c"], 1.0)
    alone = [p.loads[0].uuid for p in phases if len(p.loads) == 1]
    assert [alone.count(uuid) for uuid in "abc"] == [4, 4, 4]
    assert phases[-1] == Phase("together", 1.0, (Load("a", "work", 0.15), Load("b", "work", 0.95)))


@pytest.mark.parametrize(
    "text",
    [f"GPU-{DASHED}", f"MIG-{DASHED}", f"MIG-{DASHED}-mig0", f"MIG-GPU-{DASHED}/7/0", DIGITS, DASHED.upper()],
)
def test_a_uuid_is_the_same_however_it_is_written(text: str) -> None:
    assert plain_uuid(text) == DIGITS


def test_what_is_no_uuid_stays() -> None:
    assert plain_uuid("CPU") == "CPU"


def test_phases_survive_the_command_line() -> None:
    phases = schedule(["GPU-a", "GPU-b"], 2.5)
    assert parsed(written(phases)) == phases
