from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.support.campaigns import Campaign, commit_all

from gpudebug.core.answers.hypotheses import CombinedGain
from gpudebug.engine.campaign.campaign import Loaded
from gpudebug.engine.campaign.load import load
from gpudebug.engine.trial.together import together


def found(campaign: Campaign) -> CombinedGain:
    loaded = load(campaign.folder)
    return together(loaded, first(loaded))


def first(loaded: Loaded) -> dict[str, object]:
    verdict = loaded.trials[2].verdict
    assert verdict is not None
    return verdict


def test_the_baselines_of_before_and_now(adopted: Campaign) -> None:
    made = found(adopted)
    assert made.text is not None and made.text.startswith("GPU util 20.")
    assert " to 75." in made.text and "pp (95% CI +" in made.text
    assert made.throughput is not None and made.throughput.startswith("10 to 40 steps/s: 4.")
    assert (made.runs_before, made.runs_after) == (("0010-original",), ("0011-baseline-workload",))
    assert made.paired and made.why is None and made.notes == ()


def edit_record(campaign: Campaign, change: Callable[[dict[str, object]], object]) -> None:
    name = campaign.json("status")["baselines"]["workload"]["runs"][0]
    path = campaign.folder / "runs" / name / "run.json"
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))


def test_another_machine_makes_it_unknown(adopted: Campaign) -> None:
    edit_record(adopted, lambda record: record.update(host="elsewhere"))
    made = found(adopted)
    assert made.delta is None and made.text is None and made.throughput is None
    assert made.why is not None and "different surroundings: host " in made.why


def at_other_times(campaign: Campaign) -> None:
    """As an older version recorded it: without runs of the other side in turn."""
    edit_record(campaign, lambda record: record.update(paired=None))


def test_sides_that_were_not_run_in_turn_are_said_to_be_so(adopted: Campaign) -> None:
    at_other_times(adopted)
    made = found(adopted)
    assert made.text is not None and not made.paired and len(made.runs_before) == 3
    (note,) = made.notes
    assert note.startswith("both sides were measured at different times, not in turn")
    assert "gpudebug baseline workload runs them in turn, unless the checkout has an accepted patch" in note


def test_before_and_the_difference_make_after(adopted: Campaign) -> None:
    made = found(adopted)
    assert made.delta is not None and made.before is not None and made.after is not None
    assert made.before + made.delta.value == pytest.approx(made.after)


def test_what_was_accepted_since_is_not_measured_yet(adopted: Campaign) -> None:
    loaded = load(adopted.folder)
    older = replace(loaded.baselines["workload"], runs=("0002-h1",))
    loaded.baselines["workload"] = older
    why = together(loaded, first(loaded)).why
    assert why is not None and "not measured together yet: gpudebug next" in why


def test_a_run_that_is_gone_makes_it_unknown(adopted: Campaign) -> None:
    at_other_times(adopted)
    shutil.rmtree(adopted.folder / "runs" / "0001-baseline-workload")
    why = found(adopted).why
    assert why is not None and "runs/0001-baseline-workload" in why


def test_the_baseline_of_before_is_not_compared_with_itself(judged: Campaign) -> None:
    loaded = load(judged.folder)
    assert (
        together(loaded, first(loaded)).why == "the baseline of today is the one before the first acceptance"
    )


@pytest.mark.parametrize("part", ["code", "command"])
def test_what_else_changed_is_said(adopted: Campaign, part: str) -> None:
    at_other_times(adopted)
    if part == "code":
        (adopted.folder / "train.py").write_text("# mine\n" + (adopted.folder / "train.py").read_text())
        commit_all(adopted.folder)
        said = "the checkout's own code has changed in between"
    else:
        adopted.config.write_text(adopted.config.read_text().replace("--work=0.2", "--work=0.2 --new=1"))
        said = "the command in gpudebug.yaml has changed in between"
    _, note = found(adopted).notes
    assert note.startswith(said)
