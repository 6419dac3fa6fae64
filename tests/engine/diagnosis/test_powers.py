"""What judged hypotheses say of causes, from their entries and the evidence of their runs."""

from __future__ import annotations

import pytest
from tests.support.campaigns import Campaign
from tests.support.waiting import CAUSE, add_cause

from gpudebug.core.diagnosis.model import Tested as Said
from gpudebug.core.progress import HypothesisEntry
from gpudebug.engine.campaign.load import load
from gpudebug.engine.diagnosis.powers import tested as told
from gpudebug.engine.run import catalogue

ID = "too-little-work"


def said(campaign: Campaign, weight: float = 1.0) -> list[Said]:
    loaded = load(campaign.folder)

    def match(entry: HypothesisEntry) -> dict[str, float]:
        return {ID: weight, "py-gc": weight, "no-such-cause": 1.0}

    return [t for t in told(loaded, catalogue.load(campaign.folder), match) if ID in t.causes]


def by_hand(campaign: Campaign, number: int, change: str, status: str) -> None:
    campaign.add(
        f"\n### Hypothesis {number}: By hand\n- **Intervention**: {change}\n- **Status**: {status}\n"
    )


def test_without_runs_the_kind_of_change_counts(waiting: Campaign) -> None:
    add_cause(waiting)
    for number, (change, status) in enumerate(
        [
            ("--set --work=0.9", "REJECTED"),
            ("--code", "REJECTED"),
            ("none", "INCONCLUSIVE"),
            ("--patch hypotheses/patches/a.patch", "VALIDATED"),
            ("--set --work=0.8", "INVALID"),
            ("--set --work=0.7", "UNTESTED"),
            ("--set", "REJECTED"),
        ],
        1,
    ):
        by_hand(waiting, number, change, status)
    expected = [
        Said((ID, "py-gc"), "REJECTED", 0.6, 1),
        Said((ID, "py-gc"), "REJECTED", 0.9, 2),
        Said((ID, "py-gc"), "INCONCLUSIVE", 0.6, 3),
        Said((ID, "py-gc"), "VALIDATED", 0.9, 4),
        Said((ID, "py-gc"), "REJECTED", 0.6, 7),
    ]
    assert said(waiting) == expected
    assert [t.power for t in said(waiting, weight=0.5)] == [t.power / 2 for t in expected]


@pytest.mark.slow
def test_a_trial_says_as_much_as_its_change_showed(judged: Campaign) -> None:
    add_cause(judged)
    # Its own signal, gpu_util, rises in hypotheses 1, 2 and 4; 2 and 4 are patches.
    assert [(t.number, t.status, t.power) for t in said(judged)] == [
        (1, "VALIDATED", 0.6),
        (2, "VALIDATED", 0.9),
        (3, "REJECTED", 0.3),
        (4, "VALIDATED", 0.9),
    ]
    assert not any(t.before_accepting for t in said(judged))
    add_cause(judged, CAUSE.partition("own_signal")[0])
    assert [t.power for t in said(judged)] == [0.6, 0.9, 0.6, 0.9]


@pytest.mark.slow
def test_what_was_tested_before_an_acceptance_is_marked(adopted: Campaign) -> None:
    add_cause(adopted)
    by_hand(adopted, 7, "--code", "REJECTED")
    found = [(t.number, t.before_accepting) for t in said(adopted)]
    assert found == [(1, True), (2, True), (3, True), (4, True), (7, False)]
