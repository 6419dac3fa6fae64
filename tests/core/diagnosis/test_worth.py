from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.diagnosis.model import Diagnosis, Ranked
from gpudebug.core.diagnosis.rank import cost
from gpudebug.core.diagnosis.worth import shares

FOUND = Diagnosis(
    causes=(
        Ranked("dl", "", 0.6, exposed=0.5, ceiling_pp=30.0),
        Ranked("sync", "", 0.3, exposed=0.2),
        Ranked("amp", "", 0.05),
    )
)


def test_chance_times_the_share_of_the_time() -> None:
    matches = {1: {"amp": 1.0}, 2: {"dl": 0.9, "sync": 0.5}, 3: {}, 4: {"unknown": 1.0}, 5: {"dl": 1.0}}
    found = shares(FOUND, matches)
    assert found[2] == pytest.approx(0.6 * 0.9 * 0.5 + 0.3 * 0.5 * 0.2)
    assert (found[3], found[4]) == (0.0, 0.0)
    assert found[2] == pytest.approx(found[5]) and found[5] > found[1] > 0.0


@given(st.floats(0, 1), st.floats(0, 1))
def test_what_tests_a_cause_better_never_brings_less(one: float, other: float) -> None:
    found = shares(FOUND, {1: {"dl": min(one, other)}, 2: {"dl": max(one, other)}})
    assert found[1] <= found[2]


def test_hypotheses_stand_as_the_causes_that_they_test() -> None:
    causes = (Ranked("a", "", 0.9, exposed=0.4, ceiling_pp=13.0), Ranked("b", "", 0.6, exposed=0.5))
    found = Diagnosis(causes=causes)
    assert [cost(c) for c in causes] == [pytest.approx(v) for v in (0.36, 0.3)]
    assert shares(found, {2: {"b": 1.0}, 1: {"a": 1.0}}) == {1: pytest.approx(0.36), 2: pytest.approx(0.3)}
