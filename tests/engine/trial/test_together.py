from __future__ import annotations

import json
import shutil
from collections.abc import Callable

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
    assert (len(made.runs_before), len(made.runs_after)) == (3, 1)
    assert made.why is None and made.notes == ()


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


def test_a_run_that_is_gone_makes_it_unknown(adopted: Campaign) -> None:
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
    if part == "code":
        (adopted.folder / "train.py").write_text("# mine\n" + (adopted.folder / "train.py").read_text())
        commit_all(adopted.folder)
        said = "the checkout's own code has changed in between"
    else:
        adopted.config.write_text(adopted.config.read_text().replace("--work=0.2", "--work=0.2 --new=1"))
        said = "the command in gpudebug.yaml has changed in between"
    (note,) = found(adopted).notes
    assert note.startswith(said)
