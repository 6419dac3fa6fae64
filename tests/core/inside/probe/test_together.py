"""The runs of one side as if they were one."""

from __future__ import annotations

from typing import Any

import pytest

from gpudebug.core.answers.answer import plain
from gpudebug.core.answers.probe import ProbeSide
from gpudebug.core.inside.probe.together import MOST_SITES, side, together
from gpudebug.core.records import ProbedCopies, ProbeEvidence, ReadSite


def told(**more: Any) -> dict[str, Any]:
    return ProbeEvidence(pid=1, steps=100, **more).model_dump(mode="json")


def site(name: str, count: int, seconds: float) -> ReadSite:
    return ReadSite(site=name, kind="item", device="cpu", count=count, seconds=seconds)


def test_means_of_what_is_known_and_the_largest_of_peaks() -> None:
    found = together(
        [
            told(steps_per_s=10.0, data_wait_share=0.6, peak_host_mb=800.0, facts={"device": "cpu"}),
            told(steps_per_s=12.0, peak_host_mb=900.0, facts={"device": "cuda:0"}, notes=("a", "b")),
            told(steps_per_s=14.0, data_wait_share=0.4, notes=("b",)),
        ]
    )
    assert found is not None
    assert (found.steps_per_s, found.data_wait_share, found.peak_host_mb) == (12, 0.5, 900)
    assert (found.gc_share, found.h2d, found.facts, found.notes) == (None, None, {}, ("a", "b"))


def test_one_run_is_as_it_was_told() -> None:
    run = told(
        steps_per_s=10.0, h2d=ProbedCopies(count=2, mb=3.0, seconds=0.1, pinned_share=0.5), span_steps=7
    )
    found = together([run])
    assert found is not None
    shown = plain(found)
    assert {**run, **shown} == {**run, "sites": []}


def test_sites_of_a_mean_run_by_their_time() -> None:
    many = tuple(site(f"{n}.py:1", 10, 0.01 * n) for n in range(9))
    found = together([told(sites=(site("a.py:1", 100, 1.0), *many)), told(sites=(site("a.py:1", 50, 0.5),))])
    assert found is not None
    assert len(found.sites) == MOST_SITES
    first = found.sites[0]
    assert (first.site, first.count, first.seconds) == ("a.py:1", 75, pytest.approx(0.75))


def test_a_side_whose_runs_tell_nothing_says_why() -> None:
    silent = {"run": "0001-x", "probe": None, "probe_reason": "no"}
    assert side("trial", [silent]) == ProbeSide(part="trial", runs=("0001-x",), figures=None, reason="no")
    assert side("baseline", [{"run": "0001-x"}]).reason is None
    mixed = side("trial", [silent, {"run": "0002-x", "probe": told(steps_per_s=3.0)}])
    assert (mixed.figures and mixed.figures.steps_per_s, mixed.reason) == (3, None)
