"""Whether the metric moved far enough, and when that is unknown."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.statistics.test_across import watched
from tests.support.trials import BASE, GOOD, gate, in_turns, measured, result, run, runs, verdict
from tests.support.trials import following as in_turn

from gpudebug.core.records import Conditions, DeviceEvidence, Evidence, Gate, Verdict
from gpudebug.core.statistics.intervals import SURE, t_quantile
from gpudebug.core.statistics.level import RATIOS, Effect, Seen, follow
from gpudebug.core.verdict.gates.delta import delta_gate, is_gain, is_too_small, missing_in
from gpudebug.core.verdict.gates.setting import Order, TrialSetting
from gpudebug.core.verdict.protocol import is_over
from gpudebug.core.verdict.turns import NextRun, following
from gpudebug.core.words import Result, Status


class TestDelta:
    @pytest.mark.parametrize(
        ("after", "expected"),
        [
            ((28, 28, 28, 28), Result.FAIL),
            ((20, 20, 20, 20), Result.FAIL),
            ((37, 37, 37, 37), Result.FAIL),
            ((43, 43, 43, 43), Result.UNKNOWN),
            ((47.9,) * 6, Result.UNKNOWN),
            ((48.2,) * 6, Result.PASS),
            ((61, 62), Result.PASS),
            ((61,), Result.UNKNOWN),
            ((44,), Result.UNKNOWN),
            ((28,), Result.FAIL),
            ((10, 90), Result.UNKNOWN),
        ],
    )
    def test_estimate_and_interval_decide_together(self, after: tuple[float, ...], expected: Result) -> None:
        assert result("delta", BASE, runs(*after)) is expected

    @pytest.mark.parametrize(
        ("success", "failure", "expected"), [(20, 10, Result.PASS), (40, 10, Result.UNKNOWN)]
    )
    def test_the_campaigns_own_thresholds_count(
        self, success: float, failure: float, expected: Result
    ) -> None:
        assert result("delta", BASE, GOOD, success=success, failure=failure) is expected

    @pytest.mark.parametrize(
        ("turns", "expected"),
        [("AATT", Result.UNKNOWN), ("AATA", Result.UNKNOWN), ("AATTA", Result.PASS), ("AAT", Result.UNKNOWN)],
    )
    def test_a_gain_passes_behind_the_baseline_and_with_two_runs(self, turns: str, expected: Result) -> None:
        case = in_turns(turns, *(70 if turn == "T" else 28 for turn in turns))
        assert delta_gate(case).result is expected

    def test_too_small_a_gain_fails_before_the_baseline_runs_again(self) -> None:
        assert delta_gate(in_turns("AAT", 28, 29, 28)).result is Result.FAIL

    def test_what_is_likely_is_said_in_points(self) -> None:
        found = delta_gate(in_turns("AATTA", 28, 28, 43, 43, 28))
        assert found.note == (
            "a gain of 4.4 to 25.6 pp is likely; success asks for 20pp and surely more than 10pp"
        )

    def test_runs_of_a_shorter_window_say_less(self) -> None:
        long, short = (measured(BASE, runs(61, 62, rate=11.0, window=window)).delta for window in (40.0, 6.0))
        assert long is not None and long.low is not None
        assert short is not None and short.low is not None
        assert short.low < long.low - 2

    def test_a_gain_over_what_the_change_made_worse_itself_is_none(self) -> None:
        """Against the level before its first run it is 10 pp, and surely no 20."""
        turns = "AATTATATTATATTA"
        case = in_turns(turns, 48, 48, *(58 if turn == "T" else 28 for turn in turns[2:]))
        assert case.effect is not None
        assert case.effect.value >= 20
        assert case.effect.bounds()[0] > 10
        assert case.effect.earlier == pytest.approx(10, abs=0.1)
        assert delta_gate(case).result is Result.UNKNOWN

    @pytest.mark.parametrize("field", ["utilisation", "standard_error"])
    @pytest.mark.parametrize("part", ["baseline", "trial"])
    def test_one_run_without_its_figure_makes_it_unknown_and_is_named(self, field: str, part: str) -> None:
        before, after = list(BASE), list(GOOD)
        side = before if part == "baseline" else after
        side[1] = side[1].model_copy(update={field: None, "run": "0007-y"})
        found = gate(verdict(before, after), "delta")
        assert (found.result, found.value) == (Result.UNKNOWN, "unknown")
        assert found.note == f"{part}, run 0007-y: no utilisation was measured"

    def test_a_run_shorter_than_five_seconds_says_so_and_what_would_suffice(self) -> None:
        found = gate(verdict(BASE, [run(window=None)], TrialSetting(window_advice="--steps=900")), "delta")
        assert found.note == (
            "trial: the window is too short: 1.2 s after warm-up, at least 5 s needed; --steps=900"
        )

    def test_a_reason_that_is_no_short_window_gets_no_advice_on_windows(self) -> None:
        after = run(None)
        (device,) = after.devices
        lost = device.model_copy(update={"reason": "readings cover only 80% of the window"})
        found = gate(
            verdict(
                BASE, [after.model_copy(update={"devices": (lost,)})], TrialSetting(window_advice="more")
            ),
            "delta",
        )
        assert found.note == "trial: readings cover only 80% of the window"


LEVELS = st.lists(st.floats(20, 70), min_size=5, max_size=9)


def turns_of(levels: list[float]) -> str:
    return "AATTATATT"[: len(levels)]


class TestProperties:
    """What moves all runs alike moves no effect."""

    @given(LEVELS, st.floats(-15, 25))
    def test_a_constant_added_to_every_run_moves_no_effect(self, levels: list[float], by: float) -> None:
        turns = turns_of(levels)
        plain, moved = in_turns(turns, *levels), in_turns(turns, *(level + by for level in levels))
        assert plain.delta is not None
        assert moved.delta is not None
        assert moved.delta.model_dump() == pytest.approx(plain.delta.model_dump(), abs=1e-3)

    @given(LEVELS, st.floats(0.1, 10))
    def test_a_factor_on_every_rate_moves_no_ratio(self, rates: list[float], factor: float) -> None:
        turns = turns_of(rates)
        terms = {"metric": "steps_per_s", "success": 1.2, "failure": 1.05}
        plain, moved = (in_turns(turns, *(scale * r for r in rates), **terms) for scale in (1.0, factor))
        assert plain.delta is not None
        assert moved.delta is not None
        assert moved.delta.model_dump() == pytest.approx(plain.delta.model_dump(), rel=1e-3)

    @given(st.permutations([0, 1, 2]), st.permutations([0, 1]))
    def test_only_the_places_say_what_came_first(self, before: list[int], after: list[int]) -> None:
        sides, places = ((28, 31, 26), (61, 55)), ((0, 1, 4), (2, 3))
        orders = (before, after)
        plain = measured(*(runs(*side) for side in sides), TrialSetting(order=Order(*places, 5)))
        mixed = measured(
            *(runs(*(side[i] for i in order)) for side, order in zip(sides, orders, strict=True)),
            TrialSetting(
                order=Order(tuple(places[0][i] for i in before), tuple(places[1][i] for i in after), 5)
            ),
        )
        assert mixed.delta == plain.delta


class TestRatios:
    """Other metrics than utilisation: a ratio, above 1 where it is better."""

    @staticmethod
    def delta(metric: str, before: list[Evidence], after: list[Evidence], **more: object) -> Gate:
        terms = {"success": 1.2, "failure": 1.05, "metric": metric, **more}
        return gate(verdict(before, after, **terms), "delta")

    @pytest.mark.parametrize(
        ("rate", "expected"),
        [(5.0, Result.FAIL), (4.0, Result.FAIL), (5.6, Result.UNKNOWN), (7.0, Result.PASS)],
    )
    def test_of_a_rate(self, rate: float, expected: Result) -> None:
        found = self.delta("steps_per_s", runs(30, 30, 30, 30), runs(30, 30, 30, rate=rate))
        assert found.result is expected
        assert found.value.startswith(f"{rate / 5:.2f}x (95% CI ")
        assert found.threshold == "estimate >= 1.2x and lower bound > 1.05x"

    @pytest.mark.parametrize(
        ("seconds", "expected"), [(0.010, Result.FAIL), (0.020, Result.FAIL), (0.007, Result.PASS)]
    )
    def test_of_a_time_less_is_better(self, seconds: float, expected: Result) -> None:
        before = [run(latency_p50_s=0.010) for _ in range(4)]
        after = [run(latency_p50_s=seconds) for _ in range(3)]
        found = self.delta("latency_p50", before, after, direction="lower")
        assert found.result is expected
        assert found.value.startswith(f"{0.010 / seconds:.2f}x")

    @given(
        st.lists(st.floats(1, 100), min_size=2, max_size=4),
        st.lists(st.floats(1, 100), min_size=2, max_size=4),
    )
    def test_a_rate_and_the_time_of_it_give_one_answer(self, before: list[float], after: list[float]) -> None:
        rates = [[run(logged={"x": v}) for v in side] for side in (before, after)]
        times = [[run(logged={"x": 1 / v}) for v in side] for side in (before, after)]
        of_rates, of_times = (
            verdict(*arms, success=1.2, failure=1.05, metric="log:x", direction=d).delta
            for arms, d in ((rates, "higher"), (times, "lower"))
        )
        assert of_rates is not None
        assert of_times is not None
        assert of_times.model_dump() == pytest.approx(of_rates.model_dump())

    @given(st.floats(0.01, 100), st.floats(0.5, 2))
    def test_the_unit_does_not_matter(self, unit: float, gain: float) -> None:
        found = [
            verdict(
                [run(logged={"x": scale}), run(logged={"x": 1.02 * scale})],
                [run(logged={"x": gain * scale})],
                success=1.2,
                failure=1.05,
                metric="log:x",
            ).delta
            for scale in (1.0, unit)
        ]
        assert found[0] is not None
        assert found[1] is not None
        assert found[0].model_dump() == pytest.approx(found[1].model_dump(), rel=1e-4)

    @pytest.mark.parametrize(
        ("metric", "says"),
        [
            ("steps_per_s", "no step rate in the log"),
            ("samples_per_s", "print `samples/s` or `batch size: N`"),
            ("step_time_p50", "fewer than 5 step times"),
            ("step_time_p95", "fewer than 20 step times"),
            ("latency_p50", "no latencies in the log"),
            ("joules_per_step", "a device reports neither energy nor power"),
            ("log:fps", "`log: {fps: …}` in gpudebug.yaml matched no positive number"),
            ("section:load", "the training recorded no sections"),
        ],
    )
    def test_a_run_that_did_not_yield_it_is_named_and_nothing_is_guessed(
        self, metric: str, says: str
    ) -> None:
        found = verdict(
            runs(30, 30, rate=None), runs(60, 60, rate=None), metric=metric, success=1.2, failure=1.1
        )
        assert found.status is Status.INCONCLUSIVE
        assert gate(found, "delta").result is Result.UNKNOWN
        assert (gate(found, "delta").note or "").startswith("trial, run 0001-x: ")
        assert says in (gate(found, "delta").note or "")

    def test_no_utilisation_is_needed(self) -> None:
        before = runs(*[None] * 4)  # type: ignore[list-item]
        assert self.delta("steps_per_s", before, [run(None, 9.0)] * 3).result is Result.PASS

    def test_of_energy_less_is_better(self) -> None:
        before, after = ([run(joules_per_step=j)] * 3 for j in (400.0, 250.0))
        found = self.delta("joules_per_step", before, after, direction="lower")
        assert (found.result, found.value[:5]) == (Result.PASS, "1.60x")

    def test_a_counter_and_power_over_time_are_not_compared(self) -> None:
        device = DeviceEvidence(index=0, uuid="GPU-0", name="x")
        before, after = (
            [run(joules_per_step=j, devices=(device.model_copy(update={"energy_by": by}),))] * 2
            for j, by in ((400.0, "counter"), (250.0, "power"))
        )
        found = self.delta("joules_per_step", before, after, direction="lower")
        assert found.result is Result.UNKNOWN
        assert found.note == (
            "joules a step are reported by counter and the steps of the log in the baseline, "
            "by power and the steps of the log in the trial"
        )

    def test_samples_told_by_different_things_are_not_compared(self) -> None:
        before = [run(samples_per_s=80.0, samples_by="flags")] * 2
        after = [run(samples_per_s=160.0, samples_by="batch")] * 2
        found = self.delta("samples_per_s", before, after)
        assert found.result is Result.UNKNOWN
        assert found.note == "samples per second are reported by flags in the baseline, by batch in the trial"

    @pytest.mark.parametrize(
        ("metric", "field", "by", "what"),
        [
            ("steps_per_s", "steps_per_s", "steps_by", "steps per second are"),
            ("step_time_p50", "step_time_p50_s", "step_time_by", "step times are"),
        ],
    )
    def test_steps_of_the_log_are_not_compared_with_those_of_the_probe(
        self, metric: str, field: str, by: str, what: str
    ) -> None:
        before = [run(**{field: 2.0})] * 2
        after = [run(**{field: 8.0, by: "probe"})] * 2
        found = self.delta(metric, before, after)
        assert found.result is Result.UNKNOWN
        assert found.note == f"{what} reported by log in the baseline, by probe in the trial"

    def test_the_figures_of_the_verdict_fit_one_another(self) -> None:
        found = verdict(BASE, runs(28, 28, rate=9.0), metric="steps_per_s", success=1.2, failure=1.05)
        assert (found.metric, found.metric_before, found.metric_after) == (
            "steps_per_s",
            pytest.approx(5.0),
            pytest.approx(9.0),
        )
        assert found.delta is not None
        assert found.delta.value == pytest.approx(9 / 5, rel=1e-4)
        assert (found.before, found.after) == (pytest.approx(28, abs=0.1), 28.0)


def test_a_change_that_only_waits_more_itself_is_no_gain() -> None:
    """Its runs are kept from more of their time, which would explain a gain that no value shows."""
    others = [30.0, 40.0, 60.0, 65.0, 35.0]
    values = [math.log(1 - share / 100) for share in (30, 40, 30, 40, 35)]
    runs = [
        Seen(place, place in (2, 3), value, share)
        for place, (value, share) in enumerate(zip(values, others, strict=True))
    ]
    found = follow(runs, RATIOS)
    assert found.value > math.log(1.2)
    assert not is_gain(found, math.log(1.2), 0.0)
    assert is_gain(follow([run._replace(value=3 * run.changed) for run in runs], RATIOS), 0.2, 0.0)


# A change that makes its own processes wait for cores raises what others take of their time.
SUCCESS, FAILURE, MOST = math.log(1.2), math.log(1.1), 8


def campaign(draw: random.Random, gain: float, own: float) -> Status:
    """The verdict on a change that gains so much and adds `own` points to the share of others, who take 20 to
    60 % of a rate."""
    seen: list[Seen] = []

    def run(changed: bool) -> None:
        taken = draw.uniform(20, 60)
        value = math.log(1 - taken / 100) + draw.gauss(0, 0.07) + (math.log(gain) if changed else 0.0)
        seen.append(Seen(len(seen), changed, value, min(taken + own, 95) if changed else taken))

    run(False)
    run(False)
    step = NextRun.TRIAL
    while True:
        run(step is NextRun.TRIAL)
        effect = follow(seen, RATIOS)
        if is_gain(effect, SUCCESS, FAILURE):
            return Status.VALIDATED
        if is_too_small(effect, SUCCESS, FAILURE):
            return Status.REJECTED
        if effect.closed and is_over(effect, SUCCESS, FAILURE, MOST):
            return Status.INCONCLUSIVE
        last = max(one.place for one in seen if not one.changed)
        step = following(effect.trials, MOST, closed=effect.closed, since=len(seen) - last)


@pytest.mark.parametrize(
    ("gain", "own", "least", "most"),
    [(1.0, 20.0, 0, 60), (1.36, 0.0, 340, 400)],
    ids=["nothing, and its own share", "a gain"],
)
def test_the_values_alone_have_to_show_a_gain(gain: float, own: float, least: int, most: int) -> None:
    draw = random.Random(3)
    found = [campaign(draw, gain, own) for _ in range(400)]
    assert least <= found.count(Status.VALIDATED) <= most


QUIET = Conditions(foreign_procs=0, foreign_share=0.0, foreign_cpu=1.0, cpu_stolen=0.0, cpu_cores=0.9)
DECODES = watched(("data", 6.0, 6.0))
WAITS = watched(("data", 6.0, 0.2))


def made(like: Evidence, *levels: tuple[float, float]) -> list[Evidence]:
    """Runs of so much utilisation and so many steps a second, with the stacks of `like`."""
    changes = [
        {"utilisation": u, "progress_per_s": r, "steps_per_s": r, "conditions": QUIET} for u, r in levels
    ]
    return [like.model_copy(update={**c, "run": f"000{i}-x"}) for i, c in enumerate(changes, 1)]


BEFORE = [(98.0, 5.0), (97.8, 5.02), (98.1, 4.98), (98.0, 5.01)]


def test_batches_that_workers_make_now_are_no_failure_of_utilisation() -> None:
    before, after = made(DECODES, *BEFORE), made(WAITS, (60.0, 11.0), (60.4, 11.1))
    found = verdict(before, after)
    assert (found.status, gate(found, "delta").result) == (Status.INCONCLUSIVE, Result.UNKNOWN)
    assert "the CPU stand-in counts that as busy; set metric: steps_per_s in gpudebug.yaml" in found.why
    assert in_turn(before, after) is NextRun.DONE


@pytest.mark.parametrize(
    ("before", "rate"),
    [
        pytest.param(DECODES, 3.5, id="nothing more gets done"),
        pytest.param(WAITS, 11.0, id="the baseline waits, which utilisation shows"),
    ],
)
def test_otherwise_a_delta_that_is_too_small_rejects(before: Evidence, rate: float) -> None:
    found = verdict(made(before, *BEFORE), made(WAITS, (60.0, rate), (60.4, rate)))
    assert (found.status, gate(found, "delta").result) == (Status.REJECTED, Result.FAIL)


def test_while_it_is_open_what_gets_done_the_trial_goes_on() -> None:
    before, after = made(DECODES, *BEFORE), made(WAITS, (60.0, 4.4), (60.4, 6.0))
    assert verdict(before, after).status is Status.INCONCLUSIVE
    assert in_turn(before, after) is NextRun.TRIAL


HIGHER = {"log:quality": {"direction": "higher", "not_worse": 1.03}}
LOWER = {"log:quality": {"direction": "lower", "not_worse": 1.02}}


def side(utilisation: float, *qualities: float | None) -> list[Evidence]:
    logged: list[dict[str, Any]] = [{} if q is None else {"quality": q} for q in qualities]
    return [run(utilisation, 5.0 if utilisation < 50 else 11.0, logged=each) for each in logged]


def judged(before: list[Evidence], after: list[Evidence], terms: dict[str, Any]) -> Verdict:
    return verdict(before, after, TrialSetting(), also=terms)


@pytest.mark.parametrize(
    ("before", "after", "terms", "expected"),
    [
        ((0.9, 0.9), (0.9, 0.91), HIGHER, Result.PASS),
        ((0.9, 0.9), (0.88, 0.89), HIGHER, Result.PASS),
        ((0.9, 0.9), (0.84, 0.85), HIGHER, Result.UNKNOWN),
        ((0.9, 0.9), (0.4, 0.41), HIGHER, Result.FAIL),
        ((0.9, 0.9), (0.0, 0.0), HIGHER, Result.FAIL),
        ((-200, -210), (-205, -200), HIGHER, Result.PASS),
        ((-200, -210), (-400, -410), HIGHER, Result.FAIL),
        ((0.1, 0.1), (0.05, 0.05), LOWER, Result.PASS),
        ((0.1, 0.1), (0.2, 0.2), LOWER, Result.FAIL),
        ((0.1, 0.1), (0.0, 0.0), LOWER, Result.PASS),
        ((0.0, 0.0), (0.0, 0.0), LOWER, Result.PASS),
        ((0.0, 0.0), (0.3, 0.3), LOWER, Result.FAIL),
    ],
)
def test_it_may_not_get_worse(
    before: tuple[float, ...], after: tuple[float, ...], terms: dict[str, Any], expected: Result
) -> None:
    found = judged(side(28, *before), side(61, *after), terms)
    assert gate(found, "also:log:quality").result is expected
    assert (found.status is Status.VALIDATED) == (expected is Result.PASS)
    assert (found.status is Status.REJECTED) == (expected is Result.FAIL)


def test_a_fall_is_what_the_verdict_names() -> None:
    found = judged(side(28, 0.9, 0.9), side(61, 0.45, 0.45), HIGHER)
    assert found.why.startswith("also:log:quality: 0.9 to 0.45, 50% worse (95% CI ")
    assert found.hollow is False
    assert "log:quality 0.9 to 0.45" in found.notes


def test_a_fall_counts_only_where_there_is_a_gain_to_pay_for() -> None:
    before, after = side(28, 0.9, 0.9), side(43, 0.4, 0.41)
    found = judged(before, after, HIGHER)
    assert gate(found, "also:log:quality").result is Result.FAIL
    assert (found.status, gate(found, "delta").result) == (Status.INCONCLUSIVE, Result.UNKNOWN)
    assert in_turn(before, after, also=HIGHER) is NextRun.TRIAL


@pytest.mark.parametrize("part", ["baseline", "trial"])
def test_what_is_not_printed_is_unknown(part: str) -> None:
    before = side(28, 0.9, None if part == "baseline" else 0.9)
    after = side(61, 0.9, None if part == "trial" else 0.9)
    found = judged(before, after, HIGHER)
    said = gate(found, "also:log:quality")
    assert (found.status, said.result) == (Status.INCONCLUSIVE, Result.UNKNOWN)
    assert (said.note or "").startswith(
        f"{part}, run 0001-x: the program printed no quality; print `quality: "
    )


def test_an_open_figure_asks_for_another_run() -> None:
    found = judged(side(28, 0.9, 0.9), side(61, 0.85, 0.85), HIGHER)
    assert [g.name for g in found.gates if g.result is Result.UNKNOWN] == ["also:log:quality"]
    assert in_turn(side(28, 0.9, 0.9), side(61, 0.85, 0.85), also=HIGHER) is NextRun.TRIAL


def test_without_the_setting_there_is_no_gate() -> None:
    assert [g.name for g in verdict(BASE, BASE).gates if g.name.startswith("also:")] == []


def test_another_metric_may_be_kept_too() -> None:
    terms = {"latency_p99": {"direction": "lower", "not_worse": 1.1}}
    before, after = ([run(28, latency_p99_s=v)] * 2 for v in (0.010, 0.020))
    assert gate(verdict(before, after, also=terms), "also:latency_p99").result is Result.FAIL


def test_a_baseline_says_what_it_lacks() -> None:
    assert missing_in(side(28, 0.9, None), HIGHER) == [
        "run 0001-x: the program printed no quality; print `quality: 0.93`, or set `log: {quality: …}` in "
        "gpudebug.yaml"
    ]


@pytest.mark.parametrize(
    ("value", "low", "high", "gain", "small"),
    [
        # What others do on the host widens the interval, and forbids no answer.
        (2.4, 1.5, 3.9, True, False),
        (1.3, 1.06, 1.6, True, False),
        (1.3, 1.0, 1.7, False, False),
        (1.0, 0.9, 1.15, False, True),
        (1.0, 0.6, 1.7, False, False),
    ],
)
def test_ratios_are_judged_by_their_logarithms(
    value: float, low: float, high: float, gain: bool, small: bool
) -> None:
    success, failure = math.log(1.2), math.log(1.05)
    sd = (math.log(high) - math.log(low)) / 2 / t_quantile(0.5 + SURE / 2, 8.0)
    found = Effect(math.log(value), 1.0, sd, 8.0, 2, 2.0, True, math.log(value), 1.0, None, ())
    assert (is_gain(found, success, failure), is_too_small(found, success, failure)) == (gain, small)
