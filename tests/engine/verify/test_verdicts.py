"""verdict.json that does not follow from the runs which it names, its manifest mended."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import PROGRESS, Campaign, make_replay_campaign, record
from tests.support.tampering import reseal, rewrite, substitute
from tests.support.verifying import answer, problems

Change = Callable[[dict[str, Any]], object]


@pytest.fixture
def run(told: Campaign) -> Path:
    """The run that holds the verdict on hypothesis 1."""
    return next(path.parent for path in sorted((told.folder / "runs").glob("*/verdict.json")))


def change(run: Path, edit: Change) -> None:
    verdict = json.loads((run / "verdict.json").read_text())
    edit(verdict)
    rewrite(run / "verdict.json", **verdict)
    reseal(run)


def gate(verdict: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(g for g in verdict["gates"] if g["name"] == name)
    return found


EDITED: dict[str, tuple[Change, str]] = {
    "a digit": (lambda v: v["delta"].update(value=v["delta"]["value"] + 9), "delta.value"),
    "a bound": (lambda v: v["delta"].update(low=1.0), "delta.low"),
    "the status": (lambda v: v.update(status="REJECTED"), "status"),
    "the reason": (lambda v: v.update(why="it felt faster"), "why"),
    "a gate's result": (lambda v: gate(v, "loss").update(result="unknown"), "gates[loss].result"),
    "a gate's value": (lambda v: gate(v, "delta").update(value="+99.0pp"), "gates[delta].value"),
    "a gate's threshold": (lambda v: gate(v, "delta").update(threshold="any"), "gates[delta].threshold"),
    "a gate that is gone": (lambda v: v["gates"].pop(0), "gates[outcome]"),
    "the mean before": (lambda v: v.update(before=1.5), "before"),
    "the throughput": (lambda v: v.update(throughput_after=99.0), "throughput_after"),
    "a note": (lambda v: v.update(notes=["excellent"]), "notes"),
    "the change": (lambda v: v.update(change_digest="0" * 16), "change_digest"),
}


@pytest.mark.parametrize(("edit", "field"), EDITED.values(), ids=EDITED)
def test_an_edited_field_is_named(told: Campaign, run: Path, edit: Change, field: str) -> None:
    change(run, edit)
    [problem] = problems(told)
    assert (problem.file, problem.field) == (f"runs/{run.name}/verdict.json", field)
    assert problem.expected != problem.found


def test_terms_that_were_loosened_give_another_verdict(told: Campaign, run: Path) -> None:
    change(run, lambda v: v["terms"]["criteria"].update(success=90.0))
    found = problems(told)
    assert any(p.field == "gates[delta].threshold" and "20pp" in p.found for p in found)
    assert any(p[:2] == (PROGRESS, "status") for p in found)


REFUSED: dict[str, tuple[Change, str, str]] = {
    "another hypothesis's": (
        lambda v: v.update(hypothesis=2),
        "hypothesis",
        "the verdict is on another hypothesis",
    ),
    "no verdict at all": (lambda v: v.update(gates="all"), "verdict.json", "is not what gpudebug writes"),
    "terms that are none": (
        lambda v: v["terms"]["criteria"].update(success="much"),
        "terms",
        "nothing can be judged by these",
    ),
    "no run of the trial": (
        lambda v: v.update(runs=[r for r in v["runs"] if r["part"] == "baseline" and not r["fresh"]]),
        "runs",
        "it names no run of the baseline, or none of the trial",
    ),
    "a run that leads out": (
        lambda v: v["runs"][0].update(name="../../elsewhere"),
        "verdict.json",
        "is not what gpudebug writes",
    ),
    "other evidence": (
        lambda v: v["runs"][0].update(evidence_sha256="0" * 64),
        "evidence.json",
        "the verdict was reached by other evidence of this run",
    ),
}


@pytest.mark.parametrize(("edit", "field", "why"), REFUSED.values(), ids=REFUSED)
def test_a_verdict_that_cannot_be_one_is_named(
    told: Campaign, run: Path, edit: Change, field: str, why: str
) -> None:
    change(run, edit)
    assert (field, why) in [(p.field, p.why) for p in problems(told)]


def test_a_verdict_that_is_gone_leaves_its_entry_unverified(told: Campaign, run: Path) -> None:
    (run / "verdict.json").unlink()
    reseal(run)
    [problem] = problems(told)
    assert (problem.file, problem.field, problem.found) == (PROGRESS, "status", "VALIDATED")
    assert problem.why == "UNVERIFIED: none of its runs holds a verdict"


def test_a_verdict_by_another_rule_is_shown_and_not_derived_again(told: Campaign, run: Path) -> None:
    change(run, lambda v: v.update(rule="0"))
    found = answer(told)
    assert (found.ok, found.problems) == (None, ())
    assert found.unchecked[0].startswith(
        f"hypothesis 1, runs/{run.name}: recorded by an older rule (0; this "
    )
    assert found.unchecked[0].endswith("not derived again")
    # Its entry shows what it says.
    change(run, lambda v: v.update(before=1.5))
    assert [p.field for p in problems(told)] == ["gpu util before"]


def older(campaign: Campaign, run: Path, edit: Change) -> None:
    """Leave the campaign as another version would have, with its own words in its verdict."""
    for name in campaign.runs():
        rewrite(campaign.folder / "runs" / name / "run.json", gpudebug="0.1.0")
        reseal(campaign.folder / "runs" / name)
    change(run, edit)


def other_words(v: dict[str, Any]) -> None:
    v.update(why=f"all gates are passed: delta is {gate(v, 'delta')['value']}")
    gate(v, "loss").update(value=f"it is {gate(v, 'loss')['value']} in the end")
    gate(v, "throughput").update(note="as it was worded then")


def test_of_an_older_version_figures_are_compared_and_not_prose(told: Campaign, run: Path) -> None:
    before = json.loads((run / "verdict.json").read_text())
    older(told, run, other_words)
    substitute(told.progress, before["why"], json.loads((run / "verdict.json").read_text())["why"])
    found = answer(told)
    assert (found.ok, found.problems, found.unchecked) == (True, (), ())


def test_the_prose_of_an_older_entry_is_that_of_its_verdict(told: Campaign, run: Path) -> None:
    older(told, run, other_words)
    assert [p[:2] for p in problems(told)] == [(PROGRESS, "notes")]


FIGURES: dict[str, tuple[Change, str]] = {
    "in a reason": (lambda v: v.update(why=v["why"].replace("+", "+9", 1)), "why"),
    "its sign": (lambda v: v.update(why=v["why"].replace("+", "-")), "why"),
    "in a gate": (lambda v: gate(v, "delta").update(value="+99.0pp"), "gates[delta].value"),
    "a result": (lambda v: gate(v, "loss").update(result="unknown"), "gates[loss].result"),
    "an outcome": (lambda v: gate(v, "loss").update(value="DIVERGING"), "gates[loss].value"),
    "a note": (lambda v: v.update(notes=["excellent"]), "notes"),
    "the metric": (lambda v: v.update(throughput_unit="samples"), "throughput_unit"),
}


@pytest.mark.parametrize(("edit", "field"), FIGURES.values(), ids=FIGURES)
def test_another_figure_in_an_older_verdict_is_named(
    told: Campaign, run: Path, edit: Change, field: str
) -> None:
    older(told, run, edit)
    assert (f"runs/{run.name}/verdict.json", field) in [p[:2] for p in problems(told)]


def test_the_recorded_baseline_chooses_the_unit_and_no_run_beside_the_trial(tmp_path: Path) -> None:
    """The first runs are too short to count steps by, and print a rate; those beside the trial count them."""
    recordings = tmp_path / "recordings"

    def printed(rate: float) -> dict[str, Any]:
        return {"rate": rate, "losses": lambda share: f"{2 - share:.3f} {rate} steps/s"}

    for name in ("0001-baseline-workload", "0002-baseline-workload"):
        record(recordings, name, seconds=1.0, **printed(16.0))
    record(recordings, "0003-h1", **printed(32.0))
    record(recordings, "0004-baseline-workload", **printed(16.0))
    campaign = make_replay_campaign(
        tmp_path / "repo", recordings, config="probe: false\nmetric: steps_per_s\n"
    )
    campaign.json("next")
    campaign.propose("--set --lr=0.2")
    campaign.json("next")
    [file] = (campaign.folder / "runs").glob("*/verdict.json")
    unit = json.loads(file.read_text())["terms"]["work"]
    assert unit == {"unit": "optimizer steps", "source": "the printed step rate", "chosen": True}
    assert answer(campaign).ok is True


def test_a_unit_that_its_runs_do_not_show_is_named(told: Campaign, run: Path) -> None:
    change(run, lambda v: v["terms"]["work"].update(source="the probe"))
    assert [p[:4] for p in problems(told)] == [
        (f"runs/{run.name}/verdict.json", "terms.work.source", "the log's steps", "the probe")
    ]
