"""Section reports side by side."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.section_reports import a_section

from gpudebug.core.answers.sections import SideSection
from gpudebug.core.compare.sections import compare
from gpudebug.core.inside.sections import Report, Section
from gpudebug.core.inside.sections.cost import MeasuredOn


def of(*sections: Section, seconds: float | None = 10.0, **more: Any) -> Report:
    """100 iterations in `seconds`; without these none are known."""
    known = {"iterations": 100, "enabled_s": seconds, "warmup": 5} if seconds else {}
    return Report(sections, **{**known, **more})


VERDICTS: dict[str, tuple[list[Report], list[Report], str, str | None]] = {
    "twice as fast": ([of()], [of(seconds=5.0)], "faster", "throughput"),
    "half as fast": ([of()], [of(seconds=20.0)], "slower", "throughput"),
    "alike": ([of()], [of(seconds=9.8)], "cannot_tell", "throughput"),
    "start-up in it": ([of(warmup=0)], [of(seconds=7.0, warmup=0)], "cannot_tell", "throughput"),
    "several agree": ([of()] * 3, [of(seconds=8.0)] * 3, "faster", "throughput"),
    "ranks are one run": (
        [of(rank=i) for i in range(8)],
        [of(seconds=9.2, rank=i) for i in range(8)],
        "cannot_tell",
        "throughput",
    ),
    "no iterations": (
        [of(a_section("step", mean=0.1), a_section("log"), seconds=None)],
        [of(a_section("step", mean=0.03), a_section("log"))],
        "faster",
        "step",
    ),
    "nothing in common": ([of(a_section("x"), seconds=None)], [of(a_section("y"))], "cannot_tell", None),
    "nothing at all": ([Report(())], [Report(())], "cannot_tell", None),
}


@pytest.mark.parametrize(("a", "b", "verdict", "figure"), VERDICTS.values(), ids=VERDICTS)
def test_the_verdict_is_of_b(a: list[Report], b: list[Report], verdict: str, figure: str | None) -> None:
    found = compare(a, b)
    assert (found.verdict, found.figure) == (verdict, figure)
    assert (found.ratio is None) == (figure is None) == (found.why is not None)
    if figure:
        assert found.ratio is not None and found.ratio_ci is not None
        low, high = found.ratio_ci
        assert low < found.ratio < high


def test_turned_around_it_says_the_contrary() -> None:
    there, back = (compare(x, y) for x, y in (([of()], [of(seconds=5.0)]), ([of(seconds=5.0)], [of()])))
    assert there.ratio == pytest.approx(1 / back.ratio)
    assert (there.verdict, back.verdict) == ("faster", "slower")


def test_each_section_has_its_figures_on_both_sides() -> None:
    a = of(a_section("step", mean=0.04), a_section("old", mean=0.01), a_section("never", mean=0.0))
    b = of(a_section("step", mean=0.02), a_section("new", mean=0.09), a_section("never", mean=0.0))
    rows = {r.name: r for r in compare([a], [b]).sections}
    assert list(rows) == ["new", "step", "old", "never"]
    assert rows["step"].ratio == 2.0
    assert rows["step"].b == SideSection(calls=100, total_s=2.0, mean_s=0.02, min_s=0.01, max_s=0.04)
    assert (rows["old"].b, rows["new"].a, rows["new"].ratio) == (None, None, None)
    assert rows["never"].ratio is None


def test_the_checklist_is_filled_in_by_what_is_known() -> None:
    a = of(a_section("policy_inference", mean=0.1), a_section("queue_merge", mean=0.02), sync=True)
    b = of(a_section("policy_inference", mean=0.2), a_section("queue_merge", mean=0.001), iterations=8)
    found = compare([a], [b]).checklist
    answers = [c.answer for c in found]
    assert answers == [
        "yes: 'policy_inference' 100 ms a call in A, 200 ms in B",
        "yes: 'queue_merge' 17% in A",
        "no: 100 in A (5 of warm-up left out), 8 in B (5 of warm-up left out)",
        "only in A: their times are not comparable",
        "yes",
        None,
        None,
        None,
    ]
    assert [c.concern for c in found] == [True, True, True, True, False, False, False, False]


def test_what_reports_do_not_tell_stays_open() -> None:
    found = {c.question: c.answer for c in compare([Report(())], [Report(())]).checklist}
    assert [answer for answer in found.values() if answer is not None] == [
        "no, in neither: on a GPU they time the host alone",
        "yes",
    ]
    assert len(found) == 8


def test_other_pythons_and_other_sections_are_a_concern() -> None:
    a = of(*(a_section(f"s{i}") for i in range(8)), python="3.11.4")
    found = {c.answer: c.concern for c in compare([a], [of(a_section("x"), python="3.12.1")]).checklist}
    assert found["no: Python 3.11.4 in A, 3.12.1 in B"]
    assert found["no: only in A: 's0', 's1', 's2', 's3', 's4' and 3 more; only in B: 'x'"]


def test_the_slower_one_is_advised_and_the_causes_are_named() -> None:
    def side(load: float, seconds: float, *more: Section) -> Report:
        return of(
            a_section("data_loading", mean=load), a_section("forward", mean=0.006), *more, seconds=seconds
        )

    a, b = side(0.020, 10.0), side(0.005, 4.0)
    (advice,) = compare([a], [b]).advice
    assert (advice.level, advice.section) == ("A", "data_loading")
    assert (
        "20 ms an iteration instead of 5 ms (100% of what A loses): give the loader more workers"
        in advice.text
    )
    (turned,) = compare([b], [a]).advice
    assert (turned.level, turned.section) == ("B", "data_loading")
    assert compare([a], [a]).advice == ()
    _, other = compare([b], [side(0.020, 12.0, a_section("odd", mean=0.004))]).advice
    assert "and the other has no such section" in other.text


def test_compile_hardware_and_horizon_are_answered() -> None:
    def side(compiled: bool | None = None, device: str | None = None, **settings: str) -> Report:
        return of(surroundings=MeasuredOn(device=device, cpus=8, compiled=compiled, settings=settings))

    def answers(a: Report, b: Report) -> list[tuple[str | None, bool]]:
        return [(c.answer, c.concern) for c in compare([a], [b]).checklist[-3:]]

    assert answers(side(True, "A100", horizon="20"), side(False, "H100", horizon="5")) == [
        ("no: device A100 in A, H100 in B", True),
        ("only in A", True),
        ("no: horizon 20 in A, 5 in B", True),
    ]
    assert answers(side(True, "A100", batch_size="8"), side(True, "A100", batch_size="8")) == [
        ("yes, as far as is known: device A100, cores 8", False),
        ("yes, in both", False),
        ("the same: batch_size 8", False),
    ]
    assert answers(side(horizon="4"), side(horizon="4")) == [
        (None, False),
        (None, False),
        ("no: horizon 4 in both, fewer than 10", True),
    ]
