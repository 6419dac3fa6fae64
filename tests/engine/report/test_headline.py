from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support import reports

from gpudebug.engine.report import headline

HERE = Path("/campaign/runs")


def said(found: dict[str, Any]) -> str:
    return headline.plain(headline.headline(found))


def test_before_the_first_run() -> None:
    found = reports.nothing(HERE)
    assert said(found) == "Nothing has been measured yet."
    assert headline.command(found) == "gpudebug next"


def test_runs_without_a_valid_baseline() -> None:
    broken = {**reports.status(), "baselines": {"workload": {"gpu_util": None, "why": "its run CRASHED"}}}
    found = reports.data(HERE, gain=None, status=broken)
    assert said(found) == "The workload has no baseline to compare with yet: its run CRASHED."


def test_a_baseline_alone() -> None:
    assert said(reports.data(HERE)) == (
        "GPU utilisation was 30.0% (reference 88.0%, target 78.0%). No hypothesis has been tested yet."
    )


def test_nothing_validated() -> None:
    tried = [reports.hypothesis(1, status="REJECTED"), reports.untested(2)]
    assert said(reports.data(HERE, tried)).endswith("Of 1 tested hypothesis none was VALIDATED.")


def test_one_validated_and_not_accepted() -> None:
    assert said(
        reports.data(HERE, [reports.hypothesis(1), reports.hypothesis(2, status="REJECTED")])
    ).endswith(
        "Of 2 tested hypotheses 1 was VALIDATED: “The loader has no workers, part 1”, +33.6pp. "
        "No change has been accepted yet."
    )


def test_the_largest_of_several_that_were_accepted() -> None:
    kept = [reports.hypothesis(1, delta_pp=21.0, accepted=1), reports.hypothesis(2, accepted=2)]
    gained = reports.gain(
        accepted=[reports.accepted(1, 51.0), reports.accepted(2, 80.0)],
        now=80.0,
        gap=8.0,
        gap_text="8.0pp below the reference",
    )
    assert said(reports.data(HERE, kept, gain=gained)).endswith(
        "Of 2 tested hypotheses 2 were VALIDATED; the largest effect, +33.6pp, has “The loader has no "
        "workers, part 2”. With 2 accepted changes it is now 80.0%, 8.0pp below the reference."
    )


def test_accepted_and_not_measured_since() -> None:
    gained = reports.gain(accepted=[reports.accepted(1, 51.0)], now=None, gap=None)
    found = reports.data(HERE, [reports.hypothesis(1, accepted=1)], gain=gained)
    assert said(found).endswith("With 1 accepted change it has not been measured yet.")


def test_a_verdict_that_somebody_wrote_is_unverified() -> None:
    written = reports.hypothesis(1, verified=False, delta_pp=None, claimed="+50pp")
    assert said(reports.data(HERE, [written])).startswith(
        "GPU utilisation was 30.0% (reference 88.0%, target 78.0%). Of 1 tested hypothesis 1 was "
        "VALIDATED, UNVERIFIED: no run here backs it."
    )
    cloned = reports.nothing(HERE) | {"hypotheses": [written]}
    assert said(cloned) == "No run is here: the figures below are the progress file's, UNVERIFIED."


def test_another_metric_than_utilisation() -> None:
    gained = reports.gain(metric="steps_per_s", start=6.1, now=6.1, reference=None, target=None, gap=None)
    faster = reports.hypothesis(1, delta_pp=None, metric="steps_per_s", improvement=1.31)
    assert said(reports.data(HERE, [faster], gain=gained)) == (
        "steps_per_s was 6.1 steps/s. Of 1 tested hypothesis 1 was VALIDATED: “The loader has no "
        "workers, part 1”, 1.31x. No change has been accepted yet."
    )


def test_a_stand_in_is_never_called_a_gpu() -> None:
    found = reports.data(HERE)
    found["machine"]["devices"][0]["uuid"] = "CPU"
    assert said(found).startswith("Utilisation of the CPU stand-in was 30.0%")


def test_other_peoples_words_are_told_apart() -> None:
    found = reports.data(HERE, [reports.hypothesis(1, title=reports.HOSTILE)])
    assert [p.text for p in headline.headline(found) if p.own] == [reports.HOSTILE]


@pytest.mark.parametrize(
    ("action", "running", "command"),
    [
        ("propose", False, "gpudebug next"),
        ("test", True, "gpudebug status --watch"),
        ("stop", False, None),
    ],
)
def test_what_to_type_next(action: str, running: bool, command: str | None) -> None:
    said = {"action": action, "hypothesis": None, "role": None, "why": ""}
    status = reports.status(next=said, running=running)
    assert headline.command(reports.data(HERE, status=status)) == command
