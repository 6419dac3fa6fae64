"""Whether more got done, and whether busy time did the same work."""

from __future__ import annotations

import pytest
from tests.support.trials import BASE, GOOD, gate, result, run, runs, verdict

from gpudebug.core.words import Result


class TestThroughput:
    @pytest.mark.parametrize(
        ("rates", "better", "not_worse"),
        [
            ((11.0, 11.0), Result.PASS, Result.PASS),
            ((5.0, 5.0), Result.UNKNOWN, Result.PASS),
            ((5.1,), Result.UNKNOWN, Result.PASS),
            ((4.5, 4.5, 4.5, 4.5), Result.FAIL, Result.FAIL),
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

    def test_any_unit_will_do_where_it_is_the_same(self) -> None:
        found = verdict(runs(28, 29, rate=0.5, unit="epoch"), runs(61, 62, rate=1.0, unit="epoch"))
        assert found.throughput_ratio is not None
        assert found.throughput_ratio.value == pytest.approx(2)
        assert (found.throughput_before, found.throughput_after, found.throughput_unit) == (0.5, 1.0, "epoch")

    def test_one_side_alone_is_shown_and_not_compared(self) -> None:
        found = verdict(BASE, runs(61, 62, rate=None))
        assert (found.throughput_before, found.throughput_after) == (5.0, None)
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
