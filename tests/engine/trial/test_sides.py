"""What the trainings of baseline and trial told of themselves, as `show` and `next` put it side by side."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.support.answers import read
from tests.support.campaigns import Campaign
from tests.support.probe_lines import training
from tests.support.tampering import reseal, rewrite

from gpudebug.core.answers.show import ProbeSide
from gpudebug.core.inside.probe import evidence_of, read_probe
from gpudebug.core.records import Evidence
from gpudebug.engine.campaign.load import load
from gpudebug.engine.trial.sides import of_runs, of_trial


def tell(campaign: Campaign, name: str, wait: float) -> None:
    """Put what a training would have told into a run's evidence."""
    run = campaign.folder / "runs" / name
    found = evidence_of(read_probe(training(per_step={"data_s": wait})), None)
    assert found is not None
    rewrite(run / "evidence.json", probe=found.model_dump(mode="json"), probe_reason=None)
    reseal(run)


@pytest.fixture
def inside(told: Campaign) -> Campaign:
    """A judged hypothesis, an untested one, and what their trainings would have told."""
    for name in told.runs():
        tell(told, name, 0.01 if name.endswith("-h1") else 0.06)
    return told


def shares(sides: Sequence[ProbeSide]) -> list[tuple[str, float | None]]:
    shown = [(one.part, one.figures.data_wait_share if one.figures else None) for one in sides]
    return [(part, share and round(share, 3)) for part, share in shown]


def sides(campaign: Campaign, number: int, *, judged: bool = True) -> list[tuple[str, float | None]]:
    loaded = load(campaign.folder)
    entry = next(h for h in loaded.entries.document.hypotheses if h.number == number)
    verdict = loaded.entries.trials[number].verdict if judged else None
    return shares(of_trial(loaded.setup.workspace, loaded.history.baselines, number, entry.runs, verdict)[0])


def test_a_trial_stands_beside_the_baseline_it_was_judged_against(inside: Campaign) -> None:
    assert sides(inside, 1) == [("baseline", 0.6), ("trial", 0.1)]
    assert sides(inside, 1, judged=False) == [("baseline", 0.6), ("trial", 0.1)]


def test_before_it_has_run_there_is_nothing_to_show(inside: Campaign) -> None:
    assert sides(inside, 2) == []


def test_runs_whose_folder_is_gone_are_left_out(inside: Campaign) -> None:
    loaded = load(inside.folder)
    assert of_trial(
        loaded.setup.workspace, loaded.history.baselines, 1, ["0099-h1"], loaded.entries.trials[1].verdict
    ) == ((), ())


def test_of_evidence_at_hand(inside: Campaign) -> None:
    name = next(run for run in inside.runs() if run.endswith("-h1"))
    record = json.loads((inside.folder / "runs" / name / "evidence.json").read_text())
    assert shares([of_runs("trial", [Evidence.model_validate(record)])]) == [("trial", 0.1)]


def test_show_prints_both(inside: Campaign) -> None:
    answer = inside.json("show", "1")
    assert shares([read(ProbeSide, one) for one in answer["probe"]]) == [("baseline", 0.6), ("trial", 0.1)]
    text = inside.run("show", "1").expect(0).out
    assert [line.split()[-2:] for line in text.splitlines() if "waiting for data" in line] == [
        ["60.0%", "10.0%"]
    ]
    assert inside.json("show", "2")["probe"] == []


def test_next_says_why_there_is_nothing(campaign: Campaign) -> None:
    answer = campaign.json("next")
    assert answer["probe"] == [
        {
            "part": "workload",
            "runs": campaign.runs(),
            "figures": None,
            "reason": "the command ran no PyTorch training step",
        }
    ]
    assert Path(answer["files"][0]).name == campaign.runs()[0]
