"""Where a campaign stands, line by line: what runs bear out, what is out of date, what waits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.support.campaigns import Campaign

from gpudebug.core.progress import harmless, parse
from gpudebug.engine.brief import state
from gpudebug.engine.campaign.campaign import CampaignBaseline, Loaded
from gpudebug.engine.campaign.load import load
from gpudebug.engine.campaign.verdicts import Judged


@pytest.fixture(scope="module")
def known(original_told: Campaign) -> Loaded:
    return load(original_told.folder)


def say(text: str) -> str:
    return harmless(text, limit=1000)


def lines(loaded: Loaded, number: int | None = None) -> dict[str, str]:
    entry = loaded.entries.document.hypothesis(number) if number else None
    return dict(line.split(": ", 1) for line in state.lines(loaded, entry, say))


def test_a_measured_campaign(known: Loaded) -> None:
    told = lines(known)
    assert list(told) == [
        "Baseline workload",
        "Noise from run to run",
        "Proposed already, not yours",
    ]
    assert told["Baseline workload"].startswith("gpu_util 20.0% (95% CI ")
    assert "throughput 10 steps/s, loss CONVERGING" in told["Baseline workload"]
    assert "gpu_util " in told["Noise from run to run"] and "pp to pass" in told["Noise from run to run"]
    assert told["Proposed already, not yours"] == 'h2 UNTESTED "Waiting"'


def with_baseline(loaded: Loaded, baseline: CampaignBaseline) -> Loaded:
    return replace(loaded, history=replace(loaded.history, baselines={"workload": baseline}))


def test_ones_own_hypothesis_is_not_among_the_others(known: Loaded) -> None:
    assert "Proposed already, not yours" not in lines(known, 2)


def test_where_a_step_spends_its_time_is_told(known: Loaded) -> None:
    baseline = known.history.baselines["workload"]
    evidence = tuple({**e, "data_s": 0.12, "update_s": 0.031} for e in baseline.evidence)
    loaded = with_baseline(known, replace(baseline, evidence=evidence))
    assert lines(loaded)["Baseline workload"].endswith("; of a step: data loading 0.12 s, update 0.031 s")


def test_what_no_longer_holds_says_so(known: Loaded) -> None:
    baseline = known.history.baselines["workload"]
    stale = with_baseline(known, replace(baseline, why="tree changed since it was recorded"))
    told = lines(stale)
    assert told["Baseline workload"].endswith("; OUT OF DATE: tree changed since it was recorded")
    assert "Noise from run to run" not in told
    unborn = replace(known, entries=replace(known.entries, document=parse(b"", "p.md"), trials={}))
    assert lines(unborn)["Baseline workload"] in ("unknown", "not recorded yet")


def test_figures_without_runs_are_quoted_claims(known: Loaded) -> None:
    baseline = replace(known.history.baselines["workload"], unverified=True)
    told = state.lines(with_baseline(known, baseline), None, say)[0]
    assert told.startswith('Baseline workload, UNVERIFIED: "gpu_util 20.0%')


def test_many_that_wait_are_counted(known: Loaded) -> None:
    data = known.entries.document.data + b"".join(
        b"\n### Hypothesis %d: w\n- **Status**: UNTESTED\n" % n for n in range(3, 40)
    )
    trials = {**known.entries.trials, **{n: Judged(None, False) for n in range(3, 40)}}
    entries = replace(known.entries, document=parse(data, "p.md"), trials=trials)
    loaded = replace(known, entries=entries)
    assert lines(loaded)["Proposed already, not yours"].endswith('h39 UNTESTED "w", 33 more')
