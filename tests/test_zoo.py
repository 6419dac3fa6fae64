"""The zoo's folders: each is a campaign with its candidates, and the truth fits them. One is solved."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.support import zoo
from tests.support.campaigns import git
from tests.support.judged import judged
from tests.support.rank_jobs import look, named

from gpudebug.core import config, progress
from gpudebug.core.change import intervention
from gpudebug.core.command.launchers import launch
from gpudebug.core.diagnosis.ranks import TITLES
from gpudebug.core.words import Status

ROOT = Path(__file__).resolve().parent.parent
CATALOGUE = {path.stem for path in (ROOT / "hypotheses" / "catalogue").glob("*/*.yaml")}
MIN_CANDIDATES = 8
_OPTION = re.compile(r'\badd(?:_argument)?\(\s*"(--[\w.]+)"')
_CHOICES = re.compile(r'\badd(?:_argument)?\(\s*"(--[\w.]+)",\s*choices=[\[(]([^])]+)[\])]')

each = pytest.mark.parametrize("name", zoo.names())


def settings(name: str) -> config.Config:
    return config.load(zoo.files(name)["gpudebug.yaml"], "gpudebug.yaml")


def candidates(name: str) -> list[progress.HypothesisEntry]:
    return list(progress.parse(zoo.files(name)["progress.md"].encode(), "progress.md").hypotheses)


def program(name: str) -> str:
    return "\n".join(text for file, text in zoo.files(name).items() if file.endswith(".py"))


def flag(word: str) -> str:
    return word.partition("=")[0]


def test_there_are_programs_with_one_cause_with_two_and_with_none() -> None:
    truths = [zoo.truth(name) for name in zoo.names()]
    assert len(truths) >= 12
    assert any(t.healthy for t in truths)
    assert any(len(t.fix) > 1 for t in truths)


@each
def test_the_configuration_is_the_program_s(name: str) -> None:
    read = settings(name)
    assert read.campaign == name
    assert read.progress == "progress.md"
    assert read.device == {"cpu": "cpu:1", "cuda": "auto", "ranks": "cpu:1"}[zoo.truth(name).shows]
    assert read.workload.env["OMP_NUM_THREADS"] == "1"
    options = set(_OPTION.findall(program(name)))
    commands = [read.workload, *([read.reference] if read.reference else [])]
    for command in commands:
        argv = command.argv()
        own = argv.index("train.py") + 1
        assert own == 2 or zoo.truth(name).shows == "ranks"
        assert launch(argv).start == own
        assert {flag(word) for word in argv[own:]} <= options
        assert any(word.startswith(("--duration=", "--steps=")) for word in argv)
    assert {knob for knob in read.locked if knob.startswith("--")} <= options


@each
def test_every_candidate_can_be_tested_as_it_is_written(name: str) -> None:
    read, found = settings(name), candidates(name)
    assert [h.number for h in found] == list(range(1, len(found) + 1))
    assert len(found) >= MIN_CANDIDATES
    options, choices = set(_OPTION.findall(program(name))), dict(_CHOICES.findall(program(name)))
    for hypothesis in found:
        assert hypothesis.status is Status.UNTESTED
        assert hypothesis.description
        assert hypothesis.test_method
        change = intervention.parse(hypothesis.intervention or "")
        assert change.size == 1
        assert change.locked_by(read.locked, options) == []
        argv = list(read.workload.argv())
        # As a person opens them: some that change nothing steer no library.
        applied = change.apply(argv, read.workload.env, None)
        assert (list(applied.argv), applied.env) != (argv, read.workload.env)
        (part,) = change.changes
        if part.kind == "set":
            assert part.name in options
            assert part.name not in choices or f'"{part.value}"' in choices[part.name]


@each
def test_the_truth_fits_the_candidates_and_the_catalogue(name: str) -> None:
    said, numbers = zoo.truth(name), [h.number for h in candidates(name)]
    assert said.shows in ("cpu", "cuda", "ranks")
    assert (said.rank is None) == (said.straggler is None)
    assert said.straggler is None or said.straggler in (*TITLES, "late-start")
    assert said.why
    assert set(said.fix) <= set(numbers)
    assert said.healthy or set(said.cause) <= CATALOGUE
    assert said.healthy == (not said.fix)
    assert numbers[0] not in said.fix, "who tests in the order of the file would be right at once"


@each
def test_nothing_that_a_campaign_sees_names_a_cause(name: str, tmp_path: Path) -> None:
    campaign = zoo.make_zoo_campaign(tmp_path / "there", name)
    assert "truth.yaml" not in git(campaign.folder, "ls-files").split()
    ids = re.compile("|".join(rf"\b{re.escape(cause)}\b" for cause in CATALOGUE if "-" in cause))
    told = campaign.text + campaign.config.read_text() + (campaign.folder / "train.py").read_text()
    assert not ids.findall(told)
    assert "{python}" not in campaign.config.read_text()


@pytest.mark.heavy
@pytest.mark.timeout(900)
def test_a_campaign_of_the_zoo_is_solved(tmp_path: Path) -> None:
    """The simulators that are stepped one after the other, beside a candidate that changes nothing."""
    pytest.importorskip("torch")
    campaign = zoo.make_zoo_campaign(tmp_path / "gripper", "gripper_ppo")
    (fix,) = zoo.truth("gripper_ppo").fix
    campaign.keep_candidates(fix)
    assert campaign.json("next")["action"] == "recorded_baseline"
    tested = judged(campaign, fix)
    assert tested["verdict"] == "VALIDATED", tested["why"]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["crop_yield", pytest.param("soil_samples", marks=pytest.mark.heavy)])
def test_a_straggler_among_real_ranks_is_named_and_none_of_a_healthy_job(tmp_path: Path, name: str) -> None:
    """All eight: `pytest --run-heavy tests/heavy/test_ranks.py`."""
    pytest.importorskip("torch")
    truth = zoo.truth(name)
    assert named(look(tmp_path, name, 250)) == (truth.rank, truth.straggler)
