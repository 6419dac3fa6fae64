"""Throughput by sections, where a run reports nothing else."""

from __future__ import annotations

import pytest
from tests.support.comparisons import run

from gpudebug.core.compare.compared_run import ComparedRun
from gpudebug.core.compare.faster import SpeedAnswer, compare
from gpudebug.core.compare.timed_sections import rates
from gpudebug.core.records import SectionFigures, SectionsEvidence


def figures(name: str, mean: float, calls: int = 100, share: float = 1.0) -> SectionFigures:
    total = mean * calls
    return SectionFigures(
        name=name, calls=calls, total_s=total, self_s=total, mean_s=mean, min_s=mean, max_s=mean, share=share
    )


def timed(*sections: SectionFigures, **more: object) -> ComparedRun:
    return run(rate=None, sections=SectionsEvidence(count=1, profiled_s=1.0, sections=sections), **more)


def test_the_section_with_the_most_time_of_both_is_the_iteration() -> None:
    a = [timed(figures("loop", 0.1), figures("load", 0.08, share=0.8), figures("setup", 5.0, calls=1))]
    b = [timed(figures("loop", 0.05), figures("load", 0.03, share=0.6))]
    found = rates([r.evidence for r in a], [r.evidence for r in b])
    assert found is not None
    assert (found.section, found.a, found.b) == ("loop", (pytest.approx(10),), (pytest.approx(20),))


def test_it_decides_where_there_is_no_other_rate() -> None:
    found = compare([timed(figures("loop", 0.1))] * 3, [timed(figures("loop", 0.02))] * 3)
    assert (found.figure.name, found.figure.unit) == ("throughput", "calls of 'loop'")
    assert found.answer is SpeedAnswer.FASTER
    assert found.ratio.value == pytest.approx(5)


def test_a_rate_of_the_log_is_more() -> None:
    both = SectionsEvidence(count=1, profiled_s=1.0, sections=(figures("loop", 0.1),))
    found = compare([run(rate=10.0, sections=both)], [run(rate=11.0, sections=both)])
    assert found.figure.unit != "calls of 'loop'"


def test_nothing_in_common_tells_nothing() -> None:
    one, other = timed(figures("x", 0.1)).evidence, timed(figures("y", 0.1)).evidence
    assert rates([one], [other]) is None
    assert rates([one], [timed().evidence]) is None
    assert rates([timed(figures("x", 0.1, calls=9)).evidence], [one]) is None
