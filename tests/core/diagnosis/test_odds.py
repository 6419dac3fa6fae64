from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.diagnoses import cause, facts

from gpudebug.core.diagnosis import model
from gpudebug.core.diagnosis.odds import CAP, lowered, prior, score

WAIT = {"signal": "data_wait_share", "above": 0.2, "weight": 8.0}
NONE = {"signal": "loader_workers", "equals": 0, "weight": 3.0, "otherwise": 0.5}
EXPOSED = [{"signal": "data_wait_share"}]


def odds(known: Any, **fields: Any) -> float:
    return score(cause(**fields), known).odds


def test_weights_multiply_the_prior_and_what_is_unknown_counts_one() -> None:
    signature = [WAIT, NONE]
    base = odds(facts(gc_share=0.0), signature=signature)
    assert odds(facts(data_wait_share=0.3), signature=signature) == pytest.approx(base * 8 / 0.1)
    assert odds(facts(data_wait_share=0.3, loader_workers=2), signature=signature) == pytest.approx(
        base * 4 / 0.1
    )
    assert odds(facts(data_wait_share=0.3, loader_workers=0), signature=signature) == pytest.approx(
        base * 24 / 0.1
    )


def test_priors_are_those_of_the_kind() -> None:
    one = cause(prior={"vision": 4, "default": 2})
    assert [prior(one, kind) for kind in ("vision", "llm")] == [4, 2]
    assert prior(cause(), "rl") == 1


@given(st.lists(st.floats(2, 100), max_size=6), st.lists(st.floats(0.001, 0.99), max_size=6))
def test_signs_together_stay_within_the_cap(high: list[float], low: list[float]) -> None:
    signs = [{"signal": "gc_share", "above": 0.0, "weight": w} for w in (*high, *low)]
    found = score(cause(signature=signs), facts(gc_share=0.5)).odds
    bare = score(cause(signature=[]), facts()).odds * (10 if high else 1)
    assert bare / CAP * 0.999 <= found <= bare * CAP * 1.001


def test_a_requirement_rules_out_only_where_it_is_known_to_fail() -> None:
    requires = [{"signal": "loader_workers", "below": 1}]
    assert score(cause(requires=requires), facts(loader_workers=2)).ruled_out
    assert not score(cause(requires=requires), facts(loader_workers=0)).ruled_out
    assert not score(cause(requires=requires), facts()).ruled_out


@given(st.floats(0, 1), st.floats(0, 1))
def test_more_exposed_time_never_lowers_a_cause(one: float, other: float) -> None:
    less, more = sorted((one, other))
    fields: dict[str, Any] = {"exposed": EXPOSED, "signature": [NONE]}
    found = [odds(facts(data_wait_share=v, loader_workers=0), **fields) for v in (less, more)]
    assert found[0] <= found[1]


def test_a_small_share_is_a_tenth_and_an_unknown_one_lies_between() -> None:
    at = {v: odds(facts(data_wait_share=v), exposed=EXPOSED) for v in (0.04, 0.06, 0.6)}
    unknown = odds(facts(), exposed=EXPOSED)
    assert at[0.6] == pytest.approx(10 * at[0.06])
    assert at[0.04] < at[0.06] < unknown < at[0.6]


REFERENCE = facts(data_wait_share=0.3, loader_workers=4)


@pytest.mark.parametrize(
    ("reference", "factor"),
    [
        (None, 24.0),
        (facts(data_wait_share=0.02, loader_workers=4), 48.0),
        (facts(data_wait_share=0.35, loader_workers=0), 0.1),
        (facts(data_wait_share=0.9, loader_workers=0), 8.0),
        (facts(data_wait_share=0.35), 3.0),
        (facts(), 24.0),
    ],
    ids=["none", "has neither", "has both", "waits far more", "waits as much", "tells nothing"],
)
def test_what_the_good_reference_shares_explains_nothing(reference: Any, factor: float) -> None:
    known = facts(data_wait_share=0.4, loader_workers=0, reference=reference)
    bare = odds(known, signature=[]) / 0.1
    assert odds(known, signature=[WAIT, NONE]) == pytest.approx(bare * factor)


@pytest.mark.parametrize(
    ("known", "fields", "factor"),
    [
        (facts(gpu_util=95, device_stand_in=False), {}, 0.05),
        (facts(gpu_util=95, device_stand_in=True), {}, 1),
        (facts(gpu_util=95), {}, 1),
        (facts(gpu_util=85, device_stand_in=False), {}, 1),
        (facts(gpu_util=95, busy_waiting_share=0.2, device_stand_in=False), {}, 1),
        (facts(gpu_util=95, busy_waiting_share=0.02, device_stand_in=False), {}, 0.05),
        (facts(gpu_util=95, device_stand_in=False), {"gate": True}, 1),
        (
            facts(gpu_util=95, device_stand_in=False),
            {"signature": [{"signal": "gpu_util", "above": 90, "weight": 5}]},
            50,
        ),
    ],
)
def test_a_gpu_that_is_busy_idles_for_nothing(known: Any, fields: dict[str, Any], factor: float) -> None:
    assert odds(known, **fields) == pytest.approx(factor * odds(facts()))


def trial(status: str, power: float = 0.6, **more: Any) -> model.Tested:
    return model.Tested(more.pop("causes", ("dl-waits",)), status, power, 1, **more)


@pytest.mark.parametrize(
    ("trials", "left"),
    [
        ([], 1.0),
        ([trial("REJECTED")], 0.4),
        ([trial("REJECTED", 0.9)], 0.1),
        ([trial("REJECTED"), trial("REJECTED")], 0.16),
        ([trial("INCONCLUSIVE")], 0.5),
        ([trial("INCONCLUSIVE", 0.2)], 0.8),
        ([trial("INCONCLUSIVE", 0.0)], 1.0),
        ([trial("VALIDATED")], 1.0),
        ([trial("REJECTED", causes=("other",))], 1.0),
        ([trial("REJECTED", before_accepting=True)], 1.0),
    ],
)
def test_trials_lower_the_causes_that_they_tested(trials: list[model.Tested], left: float) -> None:
    assert lowered("dl-waits", trials) == pytest.approx(left)
    assert score(cause(), facts(), trials).odds == pytest.approx(left * odds(facts()))


@given(
    st.lists(
        st.tuples(st.sampled_from(["REJECTED", "INCONCLUSIVE", "VALIDATED", "INVALID"]), st.floats(0, 1))
    )
)
def test_no_trial_raises_a_cause(trials: list[tuple[str, float]]) -> None:
    left = lowered("dl-waits", [trial(status, power) for status, power in trials])
    assert 0.0 <= left <= 1.0
    assert math.isfinite(left)


@given(st.floats(0, 1))
def test_what_a_trial_left_open_says_no_more_than_a_rejection_by_it(power: float) -> None:
    left = [lowered("dl-waits", [trial(status, power)]) for status in ("REJECTED", "INCONCLUSIVE")]
    assert left[0] <= left[1]


ANY = {"signal": "anomaly", "equals": True, "weight": 30.0, "otherwise": 0.3}


@pytest.mark.parametrize(
    ("known", "definite"),
    [
        (facts(anomaly=True, foreign_procs=1), True),
        (facts(anomaly=True, foreign_procs=1, launch_blocking=False), True),
        (facts(anomaly=True), False),
        (facts(foreign_procs=1), False),
        (facts(launch_blocking=True, anomaly=False, foreign_procs=1), False),
    ],
    ids=["one sign", "not the other", "requirement unknown", "nothing known", "little"],
)
def test_what_is_known_without_a_run(known: Any, definite: bool) -> None:
    blocking = {"signal": "launch_blocking", "equals": True, "weight": 8.0, "otherwise": 0.6}
    requires = [{"signal": "foreign_procs", "above": 0}]
    assert score(cause(requires=requires, signature=[ANY, blocking]), known).definite is definite


@pytest.mark.parametrize(("weight", "factor"), [(1.0, 0.1), (1.3, 0.31), (2.0, 2.0), (9.0, 9.0)])
def test_a_cause_without_a_clear_sign_is_a_tenth_as_likely(weight: float, factor: float) -> None:
    sign = {"signal": "gc_share", "above": 0.0, "weight": weight}
    bare = odds(facts(), signature=[]) / 0.1
    assert odds(facts(gc_share=0.5), signature=[sign]) / bare == pytest.approx(factor, abs=0.01)
