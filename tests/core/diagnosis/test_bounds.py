from __future__ import annotations

import pytest
from tests.support.diagnoses import cause, facts, stacks

from gpudebug.core.diagnosis.bounds import most_exposed

WORKERS = cause(exposed=[{"stack": "decode", "of": "workers", "within": "data_wait_share", "times": 0.9}])
DECODES = stacks(("other", "a.py:get a.py:decode", 3, 8.0, 8.0), ("other", "a.py:get a.py:cut", 5, 2.0, 2.0))
CODE = {
    "train.py:main:1": "main()",
    "train.py:Net.forward:7": "b[i] = 1",
    "train.py:Net.forward:8": "b.sum()",
}


@pytest.mark.parametrize(
    ("busy", "most"),
    [(0.5, 0.6), (0.99, 0.8)],
    ids=["all of the wait, where cores are free", "all that workers compute, where they are full"],
)
def test_workers_that_are_quicker_shorten_a_step_by_their_time_or_by_the_wait(
    busy: float, most: float
) -> None:
    known = facts(workers=DECODES, data_wait_share=0.6, cores_busy_share=busy)
    assert most_exposed(WORKERS, known) == pytest.approx(most)


@pytest.mark.parametrize(
    ("counted", "most"),
    [(5.0, 0.8), (1.0, 0.1)],
    ids=["a function that is mainly such, as a whole", "one line among others alone"],
)
def test_a_fix_reaches_the_function_that_is_mainly_what_the_cause_is_about(
    counted: float, most: float
) -> None:
    seen = stacks(
        ("other", "train.py:main train.py:Net.forward", 7, counted, counted),
        ("other", "train.py:main train.py:Net.forward lib/math.py:where", 8, 8.0 - counted, 0.0),
        ("other", "train.py:main", 1, 2.0, 2.0),
        code=CODE,
    )
    one = cause(exposed=[{"code": r"b\[i\]", "times": 0.7}])
    assert most_exposed(one, facts(stacks=seen)) == pytest.approx(most)


def test_the_backward_pass_of_what_the_forward_pass_does_no_more_goes_with_it() -> None:
    seen = stacks(
        ("forward", "train.py:main train.py:Net.forward", 7, 2.0, 2.0),
        ("backward", "train.py:main torch/autograd.py:backward", 1, 4.0, 4.0),
        ("optimizer", "train.py:main", 1, 4.0, 4.0),
        code=CODE,
    )
    one = cause(exposed=[{"code": r"b\[i\]", "phase": "forward"}])
    known = facts(stacks=seen, forward_share=0.2, backward_share=0.4)
    assert most_exposed(one, known) == pytest.approx(0.6)


def test_parts_of_a_step_add_up_and_kernels_have_no_bound() -> None:
    shares = {"forward_share": 0.3, "backward_share": 0.4, "device_time_share": 0.9}
    both = cause(
        exposed=[{"signal": "forward_share", "times": 0.2}, {"signal": "backward_share", "times": 0.3}]
    )
    assert most_exposed(both, facts(**shares)) == pytest.approx(0.7)
    assert (
        most_exposed(cause(exposed=[{"signal": "device_time_share", "times": 0.4}]), facts(**shares)) is None
    )


@pytest.mark.parametrize(
    ("cores", "starved", "most"), [(2.0, 0.0, 0.6), (16.0, 0.0, 0.8), (2.0, 5.0, 0.8)],
    ids=["two cores take half of what computes", "many take all of it", "a wait for a core computes nothing"],
)  # fmt: skip
def test_loading_in_workers_takes_the_cores_that_it_takes_here(
    cores: float, starved: float, most: float
) -> None:
    seen = stacks(("data", "train.py:main data.py:get", 1, 8.0, 8.0), ("other", "train.py:main", 1, 2.0, 2.0))
    one = cause(exposed=[{"signal": "data_wait_share"}], asks_for="Loader workers")
    known = facts(stacks=seen.model_copy(update={"starved_s": starved}), data_wait_share=0.8, cores=cores)
    assert most_exposed(one, known) == pytest.approx(most)
