"""Entries of the progress file beside what follows from their runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.campaigns import PROGRESS, Campaign, make_replay_campaign, record
from tests.support.tampering import substitute
from tests.support.verifying import answer, problems

EDITED: dict[str, tuple[str, str, str]] = {
    "a baseline's utilisation": ("GPU util**: 2", "GPU util**: 3", "gpu util"),
    "a baseline's throughput": ("Throughput**: 10", "Throughput**: 12", "throughput"),
    "a baseline's loss": ("Loss**: CONVERGING", "Loss**: DIVERGING", "loss"),
    "a baseline's command": ("--lr=0.1", "--lr=0.9", "command"),
    "before": ("util before: 2", "util before: 1", "gpu util before"),
    "after": ("util after: ", "util after: 1", "gpu util after"),
    "a bound": ("(95% CI +", "(95% CI +3", "improvement"),
    "training": ("  - Training: SUCCESS", "  - Training: FAILED", "training"),
    "loss": ("  - Loss: CONVERGING", "  - Loss: PLATEAU", "loss"),
    "throughput": ("to 30 steps/s", "to 50 steps/s", "throughput"),
    "the notes": ("all gates pass", "all goats pass", "notes"),
    "the status": ("Status**: VALIDATED", "Status**: REJECTED", "status"),
    "the change": ("Intervention**: --set --lr=0.2", "Intervention**: --set --lr=0.25", "intervention"),
    "a value that is gone": ("  - Throughput: 10 to 30 steps/s\n", "", "throughput"),
}


@pytest.mark.parametrize(("old", "new", "field"), EDITED.values(), ids=EDITED)
def test_an_edited_value_is_named(told: Campaign, old: str, new: str, field: str) -> None:
    substitute(told.progress, old, new)
    [problem] = problems(told)
    assert (problem.file, problem.field, problem.why) == (PROGRESS, field, None)


REWRITTEN = {
    "by a formatter": ("- **Status**: VALIDATED", "* Status: ✅ validated"),
    "with other spaces": ("  - Improvement: +", "  -   Improvement:   +"),
    "with a remark in the notes": ("all gates pass", "all gates pass; tried twice by hand"),
    "with a bullet of one's own": ("  - Training: SUCCESS", "  - Mood: good\n  - Training: SUCCESS"),
}


@pytest.mark.parametrize(("old", "new"), REWRITTEN.values(), ids=REWRITTEN)
def test_what_says_the_same_is_no_problem(told: Campaign, old: str, new: str) -> None:
    substitute(told.progress, old, new)
    assert answer(told).ok is True


def test_runs_that_are_not_all_of_the_verdict_are_named(told: Campaign) -> None:
    line = next(text for text in reversed(told.text.splitlines()) if "- Runs: " in text)
    last = line.rpartition(" ")[2]
    substitute(told.progress, line, f"  - Runs: {last}")
    [problem] = problems(told)
    assert problem.field == "runs"
    assert problem.expected.endswith(f", {problem.found}")


def test_the_runs_of_another_hypothesis_prove_nothing(told: Campaign) -> None:
    line = next(text for text in reversed(told.text.splitlines()) if "- Runs: " in text)
    substitute(told.progress, "Status**: UNTESTED", f"Status**: VALIDATED\n- **Result**: fine\n{line}")
    found = problems(told)
    assert "runs/0004-h1, of hypothesis 1" in [p.found for p in found]
    assert "the verdict is on another hypothesis" in [p.why for p in found]
    assert ("intervention", "--set --lr=0.2", "--set --lr=0.3") in [p[1:4] for p in found]


def test_a_trials_run_is_no_run_of_a_baseline(told: Campaign) -> None:
    substitute(told.progress, "**Runs**: runs/0001-baseline-workload", "**Runs**: runs/0003-h1")
    [wrong] = [p for p in problems(told) if p.field == "runs"]
    assert (wrong.expected, wrong.found) == (
        "completed runs of baseline-workload",
        "runs/0003-h1: h1, COMPLETED",
    )


@pytest.mark.parametrize(
    ("settings", "work"),
    [
        ("work: samples\n", "samples, which not all runs count (set)"),
        ("metric: work_per_s\nwork: optimizer steps\n", "optimizer steps, from the log's steps (set), "),
        ("metric: work_per_s\n", "tokens, from num_tokens, "),
    ],
)
def test_a_baseline_is_by_the_unit_that_was_set_then(tmp_path: Path, settings: str, work: str) -> None:
    printed = lambda share: f"{2 - share:.3f} num_tokens={round(30720 * share)}"  # noqa: E731
    record(tmp_path / "recordings", "0001-baseline-workload", losses=printed)
    campaign = make_replay_campaign(tmp_path / "repo", tmp_path / "recordings", config=settings)
    campaign.json("next")
    assert f"- **Work**: {work}" in campaign.text
    campaign.config.write_text(campaign.config.read_text().replace(settings, ""))
    assert answer(campaign).ok is True
    assert campaign.json("status")["baselines"]["workload"]["verified"] is True


@pytest.mark.parametrize(
    ("settings", "loss"),
    [
        ("", "CONVERGING, judged by reward ep_rew_mean, from the log, higher is better"),
        ("criteria: {learning: loss}\n", "CONVERGING"),
        (
            "criteria: {learning: {metric: reward, direction: lower}}\n",
            "DIVERGING, judged by reward ep_rew_mean, from the log, lower is better (set)",
        ),
        ("criteria: {loss: any}\n", "CONVERGING"),
    ],
)
def test_a_baselines_trend_is_of_what_learning_was_judged_by_then(
    tmp_path: Path, settings: str, loss: str
) -> None:
    printed = lambda share: f"{2 - share:.3f} ep_rew_mean={10 + 90 * share:.1f}"  # noqa: E731
    record(tmp_path / "recordings", "0001-baseline-workload", losses=printed)
    campaign = make_replay_campaign(tmp_path / "repo", tmp_path / "recordings", config=settings)
    trend, _, judged = loss.partition(", judged by ")
    assert campaign.json("next")["loss"] == trend
    assert f"- **Loss**: {loss}\n" in campaign.text
    campaign.config.write_text(campaign.config.read_text().replace(settings, ""))
    assert answer(campaign).ok is True
    assert campaign.json("status")["baselines"]["workload"]["loss"] == trend
    # As an earlier gpudebug wrote it: the trend of the log's loss alone.
    substitute(campaign.progress, f"**Loss**: {loss}", "**Loss**: CONVERGING")
    assert answer(campaign).ok is True
    if judged:
        substitute(campaign.progress, "**Loss**: CONVERGING", f"**Loss**: PLATEAU, judged by {judged}")
        assert [p.field for p in problems(campaign)] == ["loss"]
