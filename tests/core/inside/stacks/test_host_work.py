"""What a program of JAX computes itself between its compiled steps."""

from __future__ import annotations

import pytest
from tests.support.diagnoses import stacks

from gpudebug.core.inside.stacks.host_work import host_share

STEP = ("other", "job/train.py:<module> job/train.py:main", 51, 2.0, 0.4)
READS = ("other", "job/train.py:<module> job/train.py:main _src/array.py:ArrayImpl.__float__", 53, 1.0, 0.0)
CODE = {
    "job/train.py:main:51": "params, state, loss = train_step(params, state, x, y)",
    "job/train.py:main:53": "print(float(loss))",
    "job/train.py:prepare:16": "out = sum(shift(x, i) for i in range(9))",
}


def prepared(seconds: float, cpu_s: float) -> tuple[str, str, int, float, float]:
    frames = "job/train.py:<module> job/train.py:main job/train.py:prepare _core/numeric.py:roll"
    return ("other", frames, 16, seconds, cpu_s)


def test_what_runs_below_the_loop_counts_whatever_it_is_called() -> None:
    assert host_share(stacks(STEP, READS, prepared(7.0, 6.0), code=CODE)) == pytest.approx(0.6)


def test_what_waits_and_what_the_compiler_does_is_no_work_of_the_programs_own() -> None:
    compiles = (
        "other",
        "job/train.py:<module> job/train.py:main _src/compiler.py:backend_compile",
        51,
        9.0,
        9.0,
    )
    assert host_share(stacks(STEP, READS, prepared(7.0, 0.0), compiles, code=CODE)) == 0.0


def test_without_a_compiler_or_with_pytorch_it_is_unknown() -> None:
    assert host_share(stacks(STEP, prepared(7.0, 6.0), code=CODE)) is None
    forward = ("forward", "job/train.py:main m.py:Net.forward", 1, 1.0, 1.0)
    assert host_share(stacks(READS, forward, code=CODE)) is None
