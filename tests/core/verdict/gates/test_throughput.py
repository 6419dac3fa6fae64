"""Whether more got done, and whether busy time did the same work."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from tests.support.powered import side
from tests.support.trials import BASE, GOOD, following, gate, result, run, runs, verdict

from gpudebug.core.records import Evidence, ProbeEvidence
from gpudebug.core.verdict.gates.setting import TrialSetting
from gpudebug.core.verdict.turns import NextRun
from gpudebug.core.words import Result, Status


class TestThroughput:
    @pytest.mark.parametrize(
        ("rates", "better", "not_worse"),
        [
            ((11.0, 11.0), Result.PASS, Result.PASS),
            ((5.0, 5.0), Result.UNKNOWN, Result.PASS),
            ((5.1,), Result.UNKNOWN, Result.PASS),
            ((4.5,) * 4, Result.UNKNOWN, Result.PASS),
            ((4.1,) * 4, Result.FAIL, Result.UNKNOWN),
            ((3.5,) * 4, Result.FAIL, Result.FAIL),
            ((2.0, 2.0), Result.FAIL, Result.FAIL),
        ],
    )
    def test_of_each_wish(self, rates: tuple[float, ...], better: Result, not_worse: Result) -> None:
        after = [run(61, r) for r in rates]
        assert result("throughput", BASE, after) is better
        assert result("throughput", BASE, after, throughput="not_worse") is not_worse
        assert result("throughput", BASE, after, throughput="any") is Result.SKIPPED

    @pytest.mark.parametrize("part", ["baseline", "trial"])
    def test_one_run_without_a_rate_makes_it_unknown_and_is_named(self, part: str) -> None:
        before, after = list(BASE), list(GOOD)
        (before if part == "baseline" else after)[1] = run(61, None, run="0007-y")
        found = gate(verdict(before, after), "throughput")
        assert (found.result, found.value) == (Result.UNKNOWN, "unknown")
        assert (found.note or "").startswith(f"{part}, run 0007-y: no step rate in the log")

    def test_counts_of_different_things_are_not_compared(self) -> None:
        found = verdict(BASE, runs(61, 62, rate=300.0, unit="samples"))
        assert gate(found, "throughput").result is Result.UNKNOWN
        assert gate(found, "throughput").note == "the baseline's log counts step, the trial's samples"
        assert (found.throughput_before, found.throughput_after, found.throughput_unit) == (None, None, None)

    def test_steps_of_the_log_are_not_compared_with_those_of_the_probe(self) -> None:
        """Where gradients are accumulated one of them may be several of the others."""
        told = runs(61, 62, rate=11.0, steps_by="probe")
        found = gate(verdict(BASE, told), "throughput")
        assert found.result is Result.UNKNOWN
        assert "steps come from the log in some runs and from the probe in others" in (found.note or "")
        before = [e.model_copy(update={"steps_by": "probe"}) for e in BASE]
        assert result("throughput", before, told) is Result.PASS

    @pytest.mark.parametrize("metric", ["gpu_util", "steps_per_s"])
    def test_where_the_probe_told_of_every_run_its_steps_are_compared(self, metric: str) -> None:
        """A faster trial may be too short for its log to tell a rate."""
        before = [
            e.model_copy(update={"probe": ProbeEvidence(pid=1, steps=9, steps_per_s=4.0)}) for e in BASE
        ]
        inside = ProbeEvidence(pid=1, steps=9, steps_per_s=8.0)
        after = runs(61, 62, rate=8.0, steps_by="probe", probe=inside)
        ratios = {} if metric == "gpu_util" else {"success": 1.2, "failure": 1.05}
        found = verdict(before, after, metric=metric, **ratios)
        assert found.throughput_ratio is not None
        assert found.throughput_ratio.value == pytest.approx(2, rel=0.05)
        assert (found.throughput_before, found.throughput_after) == pytest.approx((4, 8), rel=1e-5)
        assert found.status is Status.VALIDATED

    def test_any_unit_will_do_where_it_is_the_same(self) -> None:
        found = verdict(runs(28, 29, rate=0.5, unit="epoch"), runs(61, 62, rate=1.0, unit="epoch"))
        assert found.throughput_ratio is not None
        assert found.throughput_ratio.value == pytest.approx(2, rel=1e-5)
        assert (found.throughput_before, found.throughput_after) == pytest.approx((0.5, 1), rel=1e-5)
        assert found.throughput_unit == "epoch"

    def test_one_side_alone_is_shown_and_not_compared(self) -> None:
        found = verdict(BASE, runs(61, 62, rate=None))
        assert (found.throughput_before, found.throughput_after) == (pytest.approx(5), None)
        assert found.throughput_ratio is None


class TestWork:
    """Busy seconds a step: utilisation over step rate."""

    @pytest.mark.parametrize(
        ("after", "rate", "expected"),
        [
            ((56, 56), 10.0, Result.PASS),
            ((61, 62), 11.0, Result.PASS),
            ((28, 28), 10.0, Result.PASS),
            ((90, 90, 90, 90), 5.5, Result.FAIL),
            ((40, 40), 6.0, Result.UNKNOWN),
        ],
    )
    def test_is_conserved_where_a_stall_goes(
        self, after: tuple[float, ...], rate: float, expected: Result
    ) -> None:
        assert result("work_conserved", BASE, runs(*after, rate=rate)) is expected

    def test_is_unknown_without_a_rate_whatever_the_throughput_wanted(self) -> None:
        assert result("work_conserved", BASE, runs(61, rate=None), throughput="any") is Result.UNKNOWN

    @pytest.mark.parametrize("level", [0, 0.4])
    def test_an_idle_baseline_has_none(self, level: float) -> None:
        found = gate(verdict(runs(*[level] * 4), GOOD), "work_conserved")
        assert (found.result, found.note) == (
            Result.SKIPPED,
            "an idle device has no busy time to compare",
        )


def batches(size: str, *utilisations: float, rate: float, **more: Any) -> list[Evidence]:
    """Runs of a command with a batch of this size; its flag tells the samples."""
    facts = {"batch_flags": {"batch_size": size}, "samples_per_s": float(size) * rate, "samples_by": "flags"}
    return runs(*utilisations, rate=rate, **{**facts, **more})


class TestBatch:
    """Where the batch differs, a step is another thing: samples are compared."""

    BEFORE = batches("8", 28, 27, 29, 28, rate=5.0)

    def test_half_a_batch_at_twice_the_steps_is_no_gain(self) -> None:
        found = verdict(self.BEFORE, batches("4", 61, 62, 61, 62, rate=8.0))
        assert (found.status, found.hollow) == (Status.REJECTED, True)
        assert gate(found, "throughput").result is Result.FAIL
        assert gate(found, "throughput").value.startswith("0.80x")
        assert found.throughput_unit == "samples"
        assert (found.throughput_before, found.throughput_after) == pytest.approx((40, 32), rel=1e-5)

    def test_busy_time_is_that_of_a_sample(self) -> None:
        found = gate(verdict(self.BEFORE, batches("4", *[60] * 4, rate=10.0)), "work_conserved")
        assert found.threshold == "busy time a sample at most 1.15x"
        assert found.value.startswith("2.14x")
        assert found.result is Result.FAIL

    def test_a_larger_batch_at_fewer_steps_may_be_a_gain(self) -> None:
        found = verdict(self.BEFORE, batches("32", 61, 62, rate=2.75))
        assert found.status is Status.VALIDATED
        assert gate(found, "throughput").value.startswith("2.20x")

    def test_the_same_batch_is_compared_in_steps(self) -> None:
        found = verdict(self.BEFORE, batches("8", 61, 62, rate=11.0))
        assert (found.throughput_unit, found.throughput_before) == ("step", pytest.approx(5))

    def test_the_printed_size_tells_of_a_change_that_no_flag_shows(self) -> None:
        printed = {"batch_flags": {}, "samples_by": "batch"}
        before = batches("8", 28, 27, 29, 28, rate=5.0, **printed, batch_size=8.0)
        after = batches("4", *[61] * 4, rate=10.0, **printed, batch_size=4.0)
        assert verdict(before, after).hollow

    @pytest.mark.parametrize(
        ("after", "setting", "says"),
        [
            (
                {"batch_flags": {"batch_size": "4"}},
                TrialSetting(),
                "the batch differs (batch_size=8, then batch_size=4)",
            ),
            ({"batch_flags": {}}, TrialSetting(), "the batch differs (batch_size=8, then not set)"),
            ({"batch_size": 4.0}, TrialSetting(), "the batch differs (8, then 4)"),
            ({}, TrialSetting(batch=True), "the change names the batch"),
        ],
    )
    def test_where_samples_are_not_known_nobody_can_tell(
        self, after: dict[str, Any], setting: TrialSetting, says: str
    ) -> None:
        before = {"batch_flags": {"batch_size": "8"}, "batch_size": 8.0 if "batch_size" in after else None}
        trial = runs(61, 62, rate=11.0, **{"batch_flags": {"batch_size": "8"}, **after})
        found = verdict(runs(28, 27, 29, 28, **before), trial, setting)
        assert found.status is Status.INCONCLUSIVE
        assert (gate(found, "throughput").result, gate(found, "throughput").value) == (
            Result.UNKNOWN,
            "unknown",
        )
        assert (gate(found, "throughput").note or "").startswith(says)
        assert gate(found, "work_conserved").result is Result.UNKNOWN

    def test_a_log_that_counts_samples_needs_no_batch(self) -> None:
        before = batches("8", 28, 27, 29, 28, rate=40.0, unit="samples")
        after = batches("4", 61, 62, rate=88.0, unit="samples")
        found = verdict(before, after)
        assert (found.status, found.throughput_ratio is not None) == (Status.VALIDATED, True)

    @pytest.mark.parametrize("throughput", ["any", "not_worse", "better"])
    def test_faster_steps_of_half_a_batch_are_hollow_whatever_is_wished(self, throughput: str) -> None:
        terms = {"metric": "steps_per_s", "success": 1.2, "failure": 1.05, "throughput": throughput}
        found = verdict(self.BEFORE, batches("4", *[28] * 4, rate=7.0), **terms)
        assert gate(found, "delta").result is Result.PASS
        assert (found.status, found.hollow) == (Status.REJECTED, True)
        assert found.why.startswith("hollow: steps_per_s is better, throughput 0.70x")


class TestRates:
    """The metric is a rate or a time itself."""

    TERMS: ClassVar = {"success": 1.2, "failure": 1.05}

    def test_a_rate_is_not_judged_twice(self) -> None:
        found = verdict(BASE, runs(40, 40, 40, rate=7.5), metric="steps_per_s", **self.TERMS)
        assert found.status is Status.VALIDATED
        assert gate(found, "throughput").result is Result.SKIPPED
        assert gate(found, "throughput").note == "the metric is the throughput: delta has judged it"
        assert gate(found, "throughput").value.startswith("1.50x")
        assert not found.notes

    def test_samples_are_judged_beside_steps(self) -> None:
        before = batches("8", 28, 28, 28, 28, rate=5.0)
        found = verdict(before, batches("8", 40, 40, 40, rate=7.5), metric="samples_per_s", **self.TERMS)
        assert (found.status, gate(found, "throughput").result) == (Status.VALIDATED, Result.PASS)
        found = verdict(before, batches("16", 40, 40, 40, rate=3.75), metric="samples_per_s", **self.TERMS)
        assert (found.status, gate(found, "throughput").result) == (Status.VALIDATED, Result.SKIPPED)

    def test_a_faster_step_at_the_price_of_more_work_is_hollow(self) -> None:
        found = verdict(BASE, runs(*[90] * 4, rate=7.5), metric="steps_per_s", **self.TERMS)
        assert found.why.startswith("hollow: steps_per_s is better, work conserved 2.14x")
        assert "at the price of more work" in found.notes[0]

    def test_a_latency_that_falls_while_less_gets_done_is_hollow(self) -> None:
        before = [run(28, 5.0, latency_p50_s=0.010)] * 4
        after = [run(20, 3.0, latency_p50_s=0.005)] * 4
        found = verdict(before, after, metric="latency_p50", direction="lower", **self.TERMS)
        assert found.why.startswith("hollow: latency_p50 is better, throughput 0.60x")
        assert found.notes == ("hollow gain: latency_p50 is better without getting more done",)

    def test_a_program_that_counts_nothing_is_judged_by_its_latency(self) -> None:
        before = [run(28, None, unit=None, latency_p50_s=0.010)] * 4
        after = [run(28, None, unit=None, latency_p50_s=0.005)] * 4
        found = verdict(before, after, metric="latency_p50", direction="lower", **self.TERMS)
        assert found.status is Status.VALIDATED
        skipped = {g.name for g in found.gates if g.result is Result.SKIPPED}
        assert {"throughput", "work_conserved"} <= skipped

    def test_a_rate_without_utilisation_is_judged(self) -> None:
        before, after = [run(None, 5.0)] * 4, [run(None, 9.0)] * 3
        found = verdict(before, after, metric="steps_per_s", **self.TERMS)
        assert (found.status, gate(found, "work_conserved").result) == (Status.VALIDATED, Result.SKIPPED)


BEFORE = side(40, 5.0, 340.0, 341.0, 342.0, 340.0)


@pytest.mark.parametrize(
    ("after", "result", "status"),
    [
        (side(90, 3.5, 200.0, 201.0), Result.FAIL, Status.REJECTED),
        (side(90, 11.0, 500.0, 501.0), Result.PASS, Status.VALIDATED),
        (side(90, 11.0, 300.0, 301.0), Result.PASS, Status.VALIDATED),
    ],
)
def test_busier_without_more_work_is_hollow(after: list[Evidence], result: Result, status: Status) -> None:
    found = verdict(BEFORE, after)
    assert gate(found, "working_share").result is result
    assert found.status is status
    assert found.hollow is (result is Result.FAIL)


def test_it_is_hollow_where_throughput_is_not_judged() -> None:
    found = verdict(BEFORE, side(90, 3.5, 200.0, 201.0), throughput="any")
    assert gate(found, "throughput").result is Result.SKIPPED
    assert (found.status, found.hollow) == (Status.REJECTED, True)
    assert gate(found, "working_share").value == "50% to 13% of the time"


SLIGHTLY = side(65, 5.35, 317.0, 318.0)


def test_it_is_open_while_throughput_is_undecided() -> None:
    """1.07x within noise: neither hollow nor a gain, and more runs decide it."""
    found = verdict(BEFORE, SLIGHTLY)
    assert {gate(found, name).result for name in ("throughput", "working_share")} == {Result.UNKNOWN}
    assert (found.status, found.hollow) == (Status.INCONCLUSIVE, False)
    assert following(BEFORE, SLIGHTLY) is NextRun.TRIAL


def test_more_runs_of_it_are_made_where_throughput_is_not_judged() -> None:
    """Nothing else is open: the rate that is 1.07x may yet turn out to be a gain."""
    assert following(BEFORE, SLIGHTLY, throughput="any", success=15) is NextRun.TRIAL


def test_no_run_tells_work_that_is_not_counted() -> None:
    after = side(65, None, 317.0, 318.0)
    found = verdict(BEFORE, after, throughput="any")
    assert gate(found, "working_share").result is Result.UNKNOWN
    assert following(BEFORE, after, throughput="any") is NextRun.DONE


def test_it_is_never_validated_if_work_is_unknown() -> None:
    found = verdict(BEFORE, side(90, None, 200.0, 201.0), throughput="any")
    assert gate(found, "working_share").result is Result.UNKNOWN
    assert found.status is not Status.VALIDATED


@pytest.mark.parametrize("lacking", [{"scale": None}, {}])
def test_it_is_skipped_where_power_is_missing(lacking: dict[str, Any]) -> None:
    after = side(90, 11.0, 500.0, **lacking) if lacking else [run(90, 11.0)]
    found = gate(verdict(BEFORE, after), "working_share")
    assert found.result is Result.SKIPPED
    assert found.note is not None
