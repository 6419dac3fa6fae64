from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.diagnosis.model import Diagnosis, Ranked
from gpudebug.core.diagnosis.rank import cost
from gpudebug.core.diagnosis.tested_causes import BY_TOUCH
from gpudebug.core.diagnosis.worth import gain_of, shares, worth

FOUND = Diagnosis(
    causes=(
        Ranked("dl", "", 0.6, exposed=0.5, ceiling_pp=30.0),
        Ranked("sync", "", 0.3, exposed=0.2),
        Ranked("amp", "", 0.05),
    )
)


@pytest.mark.parametrize(
    ("place", "points", "gain"), [(0, True, 30), (0, False, 0.5), (1, True, 20), (2, False, 0.1)]
)
def test_what_a_fix_is_expected_to_bring(place: int, points: bool, gain: float) -> None:
    assert gain_of(FOUND.causes[place], points=points) == pytest.approx(gain)


def test_chance_times_gain_for_each_second() -> None:
    matches = {1: {"amp": 1.0}, 2: {"dl": 0.9, "sync": 0.5}, 3: {}, 4: {"unknown": 1.0}, 5: {"dl": 1.0}}
    found = worth(FOUND, matches, cost_s=20.0)
    assert found[2] == pytest.approx((0.6 * 0.9 * 30 + 0.3 * 0.5 * 20) / 20)
    assert (found[3], found[4]) == (0.0, 0.0)
    assert found[2] > found[5] > found[1] > 0.0


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0.1, 100))
def test_what_tests_a_cause_better_is_never_worth_less(one: float, other: float, cost_s: float) -> None:
    found = worth(FOUND, {1: {"dl": min(one, other)}, 2: {"dl": max(one, other)}}, cost_s=cost_s)
    assert found[1] <= found[2]


def test_hypotheses_stand_as_the_causes_that_they_test() -> None:
    """In points of utilisation, or of 100 where it shows nothing, they would stand the other way round."""
    causes = (Ranked("a", "", 0.9, exposed=0.4, ceiling_pp=13.0), Ranked("b", "", 0.6, exposed=0.5))
    matches = {2: {"b": 1.0}, 1: {"a": 1.0}}
    found = Diagnosis(causes=causes)
    assert [cost(c) for c in causes] == [pytest.approx(v) for v in (0.36, 0.3)]
    assert shares(found, matches) == {1: pytest.approx(0.36), 2: pytest.approx(0.3)}
    gains = worth(found, matches, cost_s=1.0)
    assert gains[2] > gains[1]


def test_where_no_cause_is_known_what_the_change_decides_on_counts() -> None:
    found = shares(Diagnosis(causes=(Ranked("a", "", 0.4, exposed=0.1),)), {1: {}, 2: {"a": 1.0}}, {1: 0.5})
    assert found == {1: pytest.approx(0.6 * BY_TOUCH * 0.5), 2: pytest.approx(0.04)}
