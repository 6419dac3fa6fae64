"""Histories of a campaign and the one next thing after each."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.campaign.decide import (
    SMALL,
    Action,
    ActionKind,
    BaselineState,
    Campaign,
    Claimed,
    Ending,
    HypothesisState,
    RunState,
    decide,
    goal,
    only,
    waiting,
)
from gpudebug.core.statistics.metrics import Metric
from gpudebug.core.words import VERDICTS, Status

MISSING = BaselineState("workload", "not recorded yet")
STALE = BaselineState("workload", "tree changed since it was recorded", 28.0)
VALID = BaselineState("workload", None, 28.0)
REFERENCE = BaselineState("reference", None, 85.0)
NO_REFERENCE = BaselineState("reference", "not recorded yet")
OLD_REFERENCE = BaselineState("reference", "tree changed since it was recorded", 60.0)
UNKNOWN_REFERENCE = BaselineState("reference", None, None)


def h(
    number: int,
    status: Status = Status.UNTESTED,
    *,
    code: bool = False,
    after: float | None = None,
    verified: bool = True,
    claimed: Claimed | None = None,
    written: bool = False,
    share: float | None = None,
) -> HypothesisState:
    verified = verified and status in VERDICTS
    return HypothesisState(
        number,
        status,
        mechanical=not code,
        verified=verified,
        after=after,
        claimed=claimed,
        written=written,
        share=share,
    )


def campaign(*hypotheses: HypothesisState, **more: object) -> Campaign:
    return replace(Campaign(baselines=(VALID,), hypotheses=hypotheses), **more)  # type: ignore[arg-type]


MINE = h(2, Status.TESTING, code=True, claimed=Claimed.MINE)
OTHERS = h(2, Status.TESTING, code=True, claimed=Claimed.OTHERS)
DONE = (
    h(1, Status.REJECTED),
    h(2, Status.INCONCLUSIVE),
    h(3, Status.INVALID),
    h(4, Status.VALIDATED, after=50),
)
CUT_OFF = RunState("0007-h2", sealed=False, hypothesis=2)
JUDGED = RunState("0008-h2", sealed=True, hypothesis=2)
SOLVING = h(1, Status.VALIDATED, after=85.0)
WON = h(5, Status.VALIDATED, after=8.0)

# name, campaign, kind, what of the action is told: role, hypothesis, run or ending
HISTORIES: list[tuple[str, Campaign, ActionKind, dict[str, object]]] = [
    ("nothing yet", campaign(baselines=(MISSING,)), ActionKind.RECORD_BASELINE, {"role": "workload"}),
    ("baseline, no hypothesis", campaign(), ActionKind.PROPOSE, {}),
    (
        "a hypothesis, no baseline",
        campaign(h(1), baselines=(MISSING,)),
        ActionKind.RECORD_BASELINE,
        {"role": "workload"},
    ),
    (
        "a stale baseline",
        campaign(h(1), baselines=(STALE,)),
        ActionKind.RECORD_BASELINE,
        {"role": "workload"},
    ),
    (
        "workload before reference",
        campaign(baselines=(MISSING, NO_REFERENCE)),
        ActionKind.RECORD_BASELINE,
        {"role": "workload"},
    ),
    (
        "reference before a test",
        campaign(h(1), baselines=(VALID, NO_REFERENCE)),
        ActionKind.RECORD_BASELINE,
        {"role": "reference"},
    ),
    (
        "reference stale",
        campaign(h(1), baselines=(VALID, OLD_REFERENCE)),
        ActionKind.RECORD_BASELINE,
        {"role": "reference"},
    ),
    ("both baselines", campaign(h(1), baselines=(VALID, REFERENCE)), ActionKind.TEST, {"hypothesis": 1}),
    (
        "a reference of unknown utilisation",
        campaign(h(1), baselines=(VALID, UNKNOWN_REFERENCE)),
        ActionKind.TEST,
        {},
    ),
    ("in the file's order", campaign(h(7), h(2)), ActionKind.TEST, {"hypothesis": 7}),
    ("after a verdict", campaign(h(1, Status.REJECTED), h(2)), ActionKind.TEST, {"hypothesis": 2}),
    ("what needs no one first", campaign(h(1, code=True), h(2)), ActionKind.TEST, {"hypothesis": 2}),
    (
        "what needs someone last",
        campaign(h(1, code=True), *DONE[1:]),
        ActionKind.IMPLEMENT,
        {"hypothesis": 1},
    ),
    ("all tested", campaign(*DONE), ActionKind.PROPOSE, {}),
    # Nothing to propose, by the word of sessions or of a person (None).
    ("one has nothing", campaign(*DONE, nothing=("a",)), ActionKind.PROPOSE, {}),
    ("one, twice", campaign(*DONE, nothing=("a", "a")), ActionKind.PROPOSE, {}),
    (
        "two have nothing",
        campaign(*DONE, nothing=("a", "b")),
        ActionKind.STOP,
        {"ending": Ending.NOTHING_LEFT},
    ),
    ("a person has nothing", campaign(nothing=(None,)), ActionKind.STOP, {"ending": Ending.NOTHING_LEFT}),
    ("a session and a person", campaign(nothing=("a", None)), ActionKind.STOP, {}),
    ("nothing, but one waits", campaign(h(5), nothing=("a", "b")), ActionKind.TEST, {"hypothesis": 5}),
    ("nothing, but one to write", campaign(h(5, code=True), nothing=(None,)), ActionKind.IMPLEMENT, {}),
    ("nothing, but another's", campaign(OTHERS, nothing=("a", "b")), ActionKind.PROPOSE, {}),
    ("nothing, but mine", campaign(MINE, nothing=("a", "b")), ActionKind.IMPLEMENT, {}),
    (
        "nothing, baseline stale",
        campaign(baselines=(STALE,), nothing=(None,)),
        ActionKind.RECORD_BASELINE,
        {},
    ),
    ("nothing, cut off", campaign(loose_runs=(CUT_OFF,), nothing=(None,)), ActionKind.RECOVER, {}),
    ("nothing, solved", campaign(SOLVING, nothing=(None,)), ActionKind.STOP, {"ending": Ending.SOLVED}),
    (
        "nothing, exhausted",
        campaign(*DONE, hypothesis_budget=4, nothing=(None,)),
        ActionKind.STOP,
        {"ending": Ending.EXHAUSTED},
    ),
    ("tested one of code", campaign(h(1, Status.REJECTED, code=True)), ActionKind.PROPOSE, {}),
    # What promises most a second of the device, as far as that is known.
    (
        "worth most",
        campaign(h(1, share=0.1), h(2, share=0.3), h(3, share=0.2)),
        ActionKind.TEST,
        {"hypothesis": 2},
    ),
    ("of one worth", campaign(h(5, share=0.1), h(2, share=0.1)), ActionKind.TEST, {"hypothesis": 5}),
    ("unknown behind promising", campaign(h(1), h(2, share=0.1)), ActionKind.TEST, {"hypothesis": 2}),
    # Too little to order by: as they stand in the file.
    ("small", campaign(h(1, share=0.003), h(2, share=0.01), h(3)), ActionKind.TEST, {"hypothesis": 1}),
    ("small behind unknown", campaign(h(1), h(2, share=0.003)), ActionKind.TEST, {"hypothesis": 1}),
    ("chosen", only(campaign(h(1, share=0.5), h(2), h(3)), 3), ActionKind.TEST, {"hypothesis": 3}),
    ("chosen, of code", only(campaign(h(1), h(2, code=True)), 2), ActionKind.IMPLEMENT, {"hypothesis": 2}),
    ("unknown before worthless", campaign(h(1, share=0.0), h(2)), ActionKind.TEST, {"hypothesis": 2}),
    ("worthless ones", campaign(h(3, share=-1.0), h(2, share=0.0)), ActionKind.TEST, {"hypothesis": 3}),
    (
        "of those to write",
        campaign(h(1, code=True), h(2, code=True, share=1)),
        ActionKind.IMPLEMENT,
        {"hypothesis": 2},
    ),
    (
        "without anybody, for little",
        campaign(h(1, code=True, share=9), h(2, share=0)),
        ActionKind.TEST,
        {"hypothesis": 2},
    ),
    (
        "mine is worth nothing",
        campaign(h(1, share=9), replace(MINE, written=True, share=0)),
        ActionKind.TEST,
        {"hypothesis": 2},
    ),
    (
        "tested ones are worth nothing",
        campaign(h(1, Status.REJECTED, share=9), h(2)),
        ActionKind.TEST,
        {"hypothesis": 2},
    ),
    # Claims: what one has begun goes on, what others hold is theirs.
    ("mine, not written yet", campaign(h(1), MINE), ActionKind.IMPLEMENT, {"hypothesis": 2}),
    ("mine, written", campaign(h(1), replace(MINE, written=True)), ActionKind.TEST, {"hypothesis": 2}),
    (
        "mine, a flag by hand",
        campaign(h(1), replace(MINE, mechanical=True)),
        ActionKind.TEST,
        {"hypothesis": 2},
    ),
    ("another's", campaign(OTHERS, h(3)), ActionKind.TEST, {"hypothesis": 3}),
    (
        "another's, and one to write",
        campaign(OTHERS, h(3, code=True)),
        ActionKind.IMPLEMENT,
        {"hypothesis": 3},
    ),
    ("nothing but another's", campaign(OTHERS), ActionKind.PROPOSE, {"hypothesis": None}),
    ("mine, no baseline", campaign(MINE, baselines=(MISSING,)), ActionKind.RECORD_BASELINE, {}),
    ("mine, another's cut off", campaign(MINE, loose_runs=(CUT_OFF,)), ActionKind.RECOVER, {}),
    ("another's, solved", campaign(OTHERS, SOLVING), ActionKind.STOP, {}),
    # Recovery goes before everything.
    (
        "a run cut off",
        campaign(h(2), loose_runs=(CUT_OFF,)),
        ActionKind.RECOVER,
        {"run": "0007-h2", "hypothesis": 2},
    ),
    ("a verdict unspliced", campaign(h(2), loose_runs=(JUDGED,)), ActionKind.RECOVER, {"run": "0008-h2"}),
    (
        "the first of two",
        campaign(h(2), loose_runs=(CUT_OFF, JUDGED)),
        ActionKind.RECOVER,
        {"run": "0007-h2"},
    ),
    (
        "testing, nothing runs",
        campaign(h(1), h(2, Status.TESTING)),
        ActionKind.RECOVER,
        {"hypothesis": 2, "run": None},
    ),
    (
        "a baseline's run cut off",
        campaign(baselines=(MISSING,), loose_runs=(RunState("0001-baseline-workload", sealed=False),)),
        ActionKind.RECOVER,
        {"run": "0001-baseline-workload", "hypothesis": None},
    ),
    ("cut off, solved", campaign(SOLVING, loose_runs=(CUT_OFF,)), ActionKind.RECOVER, {}),
    (
        "cut off, out of budget",
        campaign(*DONE, hypothesis_budget=4, loose_runs=(CUT_OFF,)),
        ActionKind.RECOVER,
        {},
    ),
    ("testing, no baseline", campaign(h(1, Status.TESTING), baselines=(MISSING,)), ActionKind.RECOVER, {}),
    # Solved.
    ("solved", campaign(SOLVING, h(2)), ActionKind.STOP, {"ending": Ending.SOLVED, "hypothesis": 1}),
    (
        "solved just so",
        campaign(h(1, Status.VALIDATED, after=80.0)),
        ActionKind.STOP,
        {"ending": Ending.SOLVED},
    ),
    (
        "solved by a later one",
        campaign(*DONE, h(5, Status.VALIDATED, after=81)),
        ActionKind.STOP,
        {"hypothesis": 5},
    ),
    (
        "solved and exhausted",
        campaign(SOLVING, hypothesis_budget=1),
        ActionKind.STOP,
        {"ending": Ending.SOLVED},
    ),
    (
        "solved, accepted",
        campaign(SOLVING, baselines=(STALE,), accepted=True),
        ActionKind.RECORD_BASELINE,
        {"role": "workload"},
    ),
    (
        "solved, accepted and measured",
        campaign(SOLVING, accepted=True),
        ActionKind.STOP,
        {"ending": Ending.SOLVED},
    ),
    (
        "solved, accepted, reference stale",
        campaign(SOLVING, baselines=(VALID, OLD_REFERENCE), accepted=True, target=80.0),
        ActionKind.STOP,
        {"ending": Ending.SOLVED},
    ),
    (
        "exhausted, accepted",
        campaign(SOLVING, baselines=(STALE,), accepted=True, hypothesis_budget=1),
        ActionKind.RECORD_BASELINE,
        {},
    ),
    (
        "solved, baseline stale",
        campaign(SOLVING, baselines=(STALE,)),
        ActionKind.STOP,
        {"ending": Ending.SOLVED},
    ),
    ("not yet there", campaign(h(1, Status.VALIDATED, after=79.9), h(2)), ActionKind.TEST, {"hypothesis": 2}),
    (
        "there, not validated",
        campaign(h(1, Status.REJECTED, after=95), h(2)),
        ActionKind.TEST,
        {"hypothesis": 2},
    ),
    ("there by hand", campaign(h(1, Status.VALIDATED, after=95, verified=False), h(2)), ActionKind.TEST, {}),
    ("validated, figure unknown", campaign(h(1, Status.VALIDATED), h(2)), ActionKind.TEST, {}),
    ("an own target reached", campaign(h(1, Status.VALIDATED, after=50), target=45.0), ActionKind.STOP, {}),
    (
        "an own target not reached",
        campaign(h(1, Status.VALIDATED, after=85), target=90.0),
        ActionKind.PROPOSE,
        {},
    ),
    (
        "as good as the reference",
        campaign(h(1, Status.VALIDATED, after=76), baselines=(VALID, REFERENCE)),
        ActionKind.STOP,
        {"ending": Ending.SOLVED},
    ),
    (
        "not as good as the reference",
        campaign(h(1, Status.VALIDATED, after=74), baselines=(VALID, REFERENCE)),
        ActionKind.PROPOSE,
        {},
    ),
    (
        "how good the reference is must be known first",
        campaign(SOLVING, baselines=(VALID, NO_REFERENCE)),
        ActionKind.RECORD_BASELINE,
        {"role": "reference"},
    ),
    (
        "an own target needs no reference",
        campaign(SOLVING, baselines=(VALID, NO_REFERENCE), target=80.0),
        ActionKind.STOP,
        {"ending": Ending.SOLVED},
    ),
    # Budgets.
    ("exhausted", campaign(*DONE, h(5), hypothesis_budget=4), ActionKind.STOP, {"ending": Ending.EXHAUSTED}),
    ("one left", campaign(*DONE, h(5), hypothesis_budget=5), ActionKind.TEST, {"hypothesis": 5}),
    (
        "untested ones cost nothing",
        campaign(h(1), h(2), h(3), hypothesis_budget=1),
        ActionKind.TEST,
        {"hypothesis": 1},
    ),
    (
        "out of device time",
        campaign(h(1), device_time=7200.0, device_time_budget=7200.0),
        ActionKind.STOP,
        {"ending": Ending.OUT_OF_BUDGET},
    ),
    ("device time left", campaign(h(1), device_time=7199.0, device_time_budget=7200.0), ActionKind.TEST, {}),
    ("no limit of device time", campaign(h(1), device_time=1e9), ActionKind.TEST, {}),
    (
        "no budget to record a baseline",
        campaign(baselines=(STALE,), device_time=10.0, device_time_budget=5.0),
        ActionKind.STOP,
        {"ending": Ending.OUT_OF_BUDGET},
    ),
]


@pytest.mark.parametrize(("state", "kind", "told"), [x[1:] for x in HISTORIES], ids=[x[0] for x in HISTORIES])
def test_each_history_has_one_next_thing(state: Campaign, kind: ActionKind, told: dict[str, object]) -> None:
    action = decide(state)
    assert action.kind is kind
    assert {name: getattr(action, name) for name in told} == told
    assert (action.ending is not None) is (kind is ActionKind.STOP)


@pytest.mark.parametrize(
    ("baselines", "target", "expected"),
    [
        ((VALID,), None, 80.0),
        ((VALID, REFERENCE), None, 75.0),
        ((VALID, REFERENCE), 60.0, 60.0),
        ((VALID, UNKNOWN_REFERENCE), None, 80.0),
        ((VALID, NO_REFERENCE), None, 80.0),
        ((VALID, OLD_REFERENCE), None, 50.0),
        ((), 0.0, 0.0),
    ],
)
def test_the_goal(baselines: tuple[BaselineState, ...], target: float | None, expected: float) -> None:
    assert goal(Campaign(baselines, (), target=target, failure=10.0)) == expected


RATE = Metric("steps_per_s")
TIME = Metric("latency_p50", lower=True)


@pytest.mark.parametrize(
    ("metric", "reference", "target", "expected"),
    [
        (RATE, None, None, None),
        (RATE, 11.0, None, 10.0),
        (TIME, 0.010, None, 0.011),
        (TIME, 0.010, 0.02, 0.02),
        (TIME, None, 0.02, 0.02),
    ],
)
def test_the_goal_of_another_metric(
    metric: Metric, reference: float | None, target: float | None, expected: float | None
) -> None:
    baselines = (VALID, BaselineState("reference", None, reference))
    found = goal(Campaign(baselines, (), target=target, failure=1.1, metric=metric))
    assert found == (expected if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(
    ("metric", "after", "target", "kind", "says"),
    [
        (RATE, 12.0, 11.0, ActionKind.STOP, "reaches 12 steps/s, the target is 11 steps/s"),
        (RATE, 10.0, 11.0, ActionKind.PROPOSE, ""),
        (RATE, 1000.0, None, ActionKind.PROPOSE, ""),
        (TIME, 0.009, 0.0095, ActionKind.STOP, "reaches 9 ms, the target is 9.5 ms"),
        (TIME, 0.010, 0.0095, ActionKind.PROPOSE, ""),
    ],
)
def test_another_metric_solves_by_its_own_figure(
    metric: Metric, after: float, target: float | None, kind: ActionKind, says: str
) -> None:
    action = decide(campaign(h(1, Status.VALIDATED, after=after), metric=metric, target=target))
    assert action.kind is kind
    assert says in action.why


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (campaign(baselines=(STALE,)), ["baseline workload", "tree changed"]),
        (campaign(SOLVING), ["hypothesis 1", "85.0%", "80.0%"]),
        (campaign(*DONE, hypothesis_budget=4), ["4 hypotheses", "budget is 4"]),
        (campaign(device_time=90.0, device_time_budget=60.0), ["90 s", "60 s"]),
        (campaign(loose_runs=(CUT_OFF,)), ["0007-h2", "cut off"]),
        (campaign(loose_runs=(JUDGED,)), ["0008-h2", "not in the progress file"]),
        (campaign(h(3, Status.TESTING)), ["hypothesis 3", "TESTING"]),
        (campaign(WON, metric=Metric("steps_per_s")), ["hypothesis 5 is VALIDATED", "you can stop here"]),
        (campaign(replace(WON, counts=False), metric=Metric("steps_per_s")), ["every hypothesis has"]),
        (campaign(WON, metric=Metric("steps_per_s"), target=9.0), ["every hypothesis has"]),
        (campaign(h(3, code=True)), ["hypothesis 3", "no change"]),
        (
            campaign(h(1, share=0.1), h(2, share=0.35), h(3), h(4, Status.REJECTED)),
            ["hypothesis 2, the best expected gain of 3 untested (35.0% of the time)"],
        ),
        (
            campaign(h(1), h(2), unweighed="my.yaml:3: unknown key"),
            ["hypothesis 1, the first in the file: my.yaml:3: unknown key"],
        ),
        (
            campaign(h(1, share=0.2), h(2), metric=Metric("steps_per_s")),
            ["hypothesis 1, the best expected gain of 2 untested (20.0% of the time)"],
        ),
        (
            campaign(h(1, code=True), h(2, code=True, share=0.5)),
            ["no change to test yet, the best expected gain of 2 untested (50.0% of the time)"],
        ),
    ],
)
def test_why_says_what_it_rests_on(state: Campaign, words: list[str]) -> None:
    assert all(word in decide(state).why for word in words)


@pytest.mark.parametrize(
    "state",
    [
        campaign(h(1, share=0.5)),
        campaign(h(1), h(2)),
        campaign(h(1, share=0.0), h(2, share=0.0)),
        campaign(h(1, share=0.5), h(2, code=True, share=0.6)),
    ],
    ids=["the only one", "unknown", "worthless", "the only one of its kind"],
)
def test_no_promise_is_told_where_it_chose_nothing(state: Campaign) -> None:
    assert decide(state).why == "hypothesis 1 is untested"


def maybe(value: st.SearchStrategy[float]) -> st.SearchStrategy[float | None]:
    return st.none() | value


BASELINES = st.builds(
    BaselineState,
    st.sampled_from(["workload", "reference"]),
    st.none() | st.sampled_from(["not recorded yet", "tree changed"]),
    maybe(st.floats(0, 100)),
)
HYPOTHESES = st.builds(
    HypothesisState,
    st.integers(1, 99),
    st.sampled_from(list(Status)),
    st.booleans(),
    st.booleans(),
    maybe(st.floats(0, 100)),
    share=maybe(st.floats(-1, 1)),
)
RUNS = st.builds(RunState, st.text(min_size=1, max_size=8), st.booleans(), st.none() | st.integers(1, 99))
CAMPAIGNS = st.builds(
    Campaign,
    st.lists(BASELINES, max_size=2, unique_by=lambda b: b.role).map(tuple),
    st.lists(HYPOTHESES, max_size=8, unique_by=lambda x: x.number).map(tuple),
    st.lists(RUNS, max_size=2).map(tuple),
    maybe(st.floats(0, 100)),
    st.floats(0, 30),
    st.integers(1, 20),
    st.floats(0, 1e5),
    maybe(st.floats(0, 1e5)),
    nothing=st.lists(st.none() | st.sampled_from("abc"), max_size=3).map(tuple),
)


@given(CAMPAIGNS)
def test_every_campaign_has_exactly_one_next_thing(state: Campaign) -> None:
    action = decide(state)
    assert isinstance(action, Action)
    assert action == decide(state)
    assert action.why
    assert (action.ending is not None) is (action.kind is ActionKind.STOP)
    needs = {
        ActionKind.RECORD_BASELINE: action.role is not None,
        ActionKind.TEST: action.hypothesis is not None,
        ActionKind.IMPLEMENT: action.hypothesis is not None,
        ActionKind.RECOVER: action.hypothesis is not None or action.run is not None,
    }
    assert needs.get(action.kind, True)


@given(CAMPAIGNS)
def test_the_order_of_concerns(state: Campaign) -> None:
    kind = decide(state).kind
    loose = bool(state.loose_runs) or any(x.status is Status.TESTING for x in state.hypotheses)
    assert (kind is ActionKind.RECOVER) is loose
    if kind in (ActionKind.TEST, ActionKind.IMPLEMENT, ActionKind.PROPOSE):
        assert all(b.why is None for b in state.baselines)
        assert sum(x.status in VERDICTS for x in state.hypotheses) < state.hypothesis_budget
    left = [x for x in state.hypotheses if x.status is Status.UNTESTED]
    if kind is ActionKind.IMPLEMENT:
        assert not any(x.mechanical for x in left)
    if kind is ActionKind.PROPOSE:
        assert not left


@given(CAMPAIGNS)
def test_nothing_to_propose_ends_what_would_ask_for_a_proposal_and_changes_nothing_else(
    state: Campaign,
) -> None:
    without, action = decide(replace(state, nothing=())), decide(state)
    if action != without:
        assert without.kind is ActionKind.PROPOSE
        assert action.ending is Ending.NOTHING_LEFT
        assert None in state.nothing or len(set(state.nothing)) > 1
        assert not any(x.status in (Status.UNTESTED, Status.TESTING) for x in state.hypotheses)
    added = HypothesisState(100, Status.UNTESTED, mechanical=True)
    assert decide(replace(state, hypotheses=(*state.hypotheses, added))).ending is not Ending.NOTHING_LEFT


@given(CAMPAIGNS)
def test_only_an_untested_hypothesis_is_tested(state: Campaign) -> None:
    action = decide(state)
    if action.kind in (ActionKind.TEST, ActionKind.IMPLEMENT):
        chosen = next(x for x in state.hypotheses if x.number == action.hypothesis)
        assert chosen.status is Status.UNTESTED
        assert chosen.mechanical is (action.kind is ActionKind.TEST)
        known = [x.share or 0.0 for x in waiting(state, chosen.mechanical)]
        assert (chosen.share or 0.0) == max(known) or max(known) < SMALL


@given(CAMPAIGNS)
def test_doing_the_next_thing_again_and_again_comes_to_an_end(state: Campaign) -> None:
    """Each action, done, changes the files so that another follows: no campaign turns in circles."""
    for _ in range(60):
        action = decide(state)
        if action.kind in (ActionKind.STOP, ActionKind.PROPOSE, ActionKind.IMPLEMENT):
            return
        state = done(state, action)
    raise AssertionError(f"still {decide(state)}")


def done(state: Campaign, action: Action) -> Campaign:
    """The campaign as its files tell it after the action."""
    if action.kind is ActionKind.RECORD_BASELINE:
        return replace(
            state,
            baselines=tuple(replace(b, why=None) if b.role == action.role else b for b in state.baselines),
        )
    if action.kind is ActionKind.RECOVER:
        status = Status.UNTESTED
        loose = tuple(r for r in state.loose_runs if r.name != action.run)
    else:
        status, loose = Status.REJECTED, state.loose_runs
    changed = tuple(
        replace(x, status=status)
        if x.number == action.hypothesis and (action.kind is ActionKind.TEST or x.status is Status.TESTING)
        else x
        for x in state.hypotheses
    )
    return replace(state, hypotheses=changed, loose_runs=loose)
