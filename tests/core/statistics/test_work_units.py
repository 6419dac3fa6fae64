"""The choice of a unit of work among what runs count."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.statistics.work_units import AUTO, CountedRate, pick, recorded, text

ENV = CountedRate("environment steps", "total_timesteps", 500.0)
FPS = CountedRate("environment steps", "printed fps", 480.0)
STEPS = CountedRate("optimizer steps", "the probe", 20.0)
OWN = CountedRate("log:turns", "turns", 3.0)
CANDIDATES = st.lists(st.sampled_from([ENV, FPS, STEPS, OWN]), max_size=4, unique=True)


def test_the_first_that_all_runs_have() -> None:
    found = pick([[ENV, FPS, STEPS], [FPS, STEPS]])
    assert found is not None
    assert (found.unit, found.source, found.rates) == ("environment steps", "printed fps", (480.0, 480.0))


def test_a_unit_that_is_set_is_never_another_one() -> None:
    assert pick([[ENV, STEPS], [STEPS]], "environment steps") is None
    found = pick([[ENV, STEPS], [ENV, STEPS]], "optimizer steps")
    assert found is not None
    assert found.source == "the probe"


def test_an_own_pattern_is_taken_only_if_it_is_asked_for() -> None:
    assert pick([[OWN], [OWN]]) is None
    assert pick([[ENV, OWN]], "log:turns") is not None


@given(st.lists(CANDIDATES, max_size=4))
def test_what_is_picked_is_in_every_run(runs: list[list[CountedRate]]) -> None:
    found = pick(runs, AUTO)
    if found is None:
        assert not runs or not [one for one in runs[0] if one != OWN and all(one in run for run in runs)]
    else:
        assert all((found.unit, found.source) in [one[:2] for one in run] for run in runs)


def test_the_texts() -> None:
    assert text("tokens", "num_tokens") == "tokens, from num_tokens"
    assert text("tokens", "num_tokens", chosen=False) == "tokens, from num_tokens (set)"
    assert recorded({}) == []
