"""`gpudebug verify`: what a user is told, of a campaign that is sound and of every way in which it is not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.campaigns import (
    PROGRESS,
    Campaign,
    contents,
    copied,
    make_campaign,
    make_replay_campaign,
    record,
)
from tests.support.tampering import reseal, rewrite, substitute
from tests.support.verifying import answer, problems

from gpudebug.engine.campaign.files import REPLAYED_NOTE

SECRET = "correcthorsebattery"
LEAK = f"""\
step 1/100 loss 2.0
Traceback (most recent call last):
  File 'train.py', line 1
ValueError: login with {SECRET} failed
"""
BY_HAND = "UNVERIFIED: written by hand, without a run"


def test_what_gpudebug_wrote_follows_from_its_runs(told: Campaign) -> None:
    before = contents(told.folder)
    found = told.json("verify")
    assert (found["ok"], found["problems"], found["absent"]) == (True, [], [])
    checked = found["checked"]
    assert (checked["baselines"], checked["hypotheses"]) == (["workload"], [1])
    assert set(checked["runs"]) == set(told.runs())
    assert told.run("verify").expect(0).out.startswith(f"note: {REPLAYED_NOTE}\nOK: 1 baseline, 1 verdict, ")
    assert contents(told.folder) == before


def test_a_digit_edited_by_hand_is_named_with_its_line(told: Campaign) -> None:
    shown = next(text for text in told.text.splitlines() if "Improvement" in text)
    substitute(told.progress, shown, shown.replace("+", "+9", 1))
    line = told.text.splitlines().index(shown.replace("+", "+9", 1)) + 1
    value = shown.partition(": ")[2]
    done = told.run("verify").expect(1)
    assert (
        f"{PROGRESS}:{line}: hypothesis 1: improvement: expected {value}, found +9{value[1:]}\n" in done.out
    )
    assert done.err == ""
    [problem] = told.json("verify", status=1)["problems"]
    assert problem == {
        "hypothesis": 1,
        "baseline": None,
        "run": None,
        "field": "improvement",
        "expected": value,
        "found": f"+9{value[1:]}",
        "why": None,
        "file": str(told.progress),
        "line": line,
    }


def test_of_one_hypothesis_only_that_is_checked(told: Campaign) -> None:
    substitute(told.progress, "GPU util**: 2", "GPU util**: 3")
    assert [p.field for p in problems(told)] == ["gpu util"]
    found = told.json("verify", "1")
    assert (found["ok"], found["checked"]["baselines"], found["checked"]["hypotheses"]) == (True, [], [1])


def test_a_number_that_is_none_is_refused(told: Campaign) -> None:
    done = told.run("verify", "7").expect(2)
    assert "there is no hypothesis 7: there are 1, 2" in done.err


def test_a_clone_without_runs_lacks_evidence_and_is_not_tampered_with(told: Campaign) -> None:
    listed = told.json("verify")["checked"]["runs"]
    shutil.rmtree(told.folder / "runs")
    found = told.json("verify")
    assert (found["ok"], found["problems"]) == (None, [])
    assert [(a["baseline"], a["hypothesis"]) for a in found["absent"]] == [("workload", None), (None, 1)]
    assert {run for a in found["absent"] for run in a["runs"]} <= set(listed)
    assert found["checked"] == {"baselines": [], "hypotheses": [], "runs": [], "files": 0}
    out = told.run("verify").expect(0).out
    assert "evidence absent: hypothesis 1: runs/0003-h1" in out
    assert out.splitlines()[-1].startswith("UNKNOWN: ")


def test_a_verdict_written_by_hand_is_named_even_in_a_clone(told: Campaign) -> None:
    substitute(told.progress, "UNTESTED", "VALIDATED")
    shutil.rmtree(told.folder / "runs")
    [problem] = problems(told)
    assert problem == (PROGRESS, "status", None, "VALIDATED", BY_HAND)
    assert told.run("verify").status == 1


def test_nothing_written_is_nothing_wrong(tmp_path: Path) -> None:
    campaign = make_campaign(tmp_path / "repo")
    assert campaign.json("verify")["ok"] is True


def test_git_need_not_work(told: Campaign) -> None:
    shutil.rmtree(told.folder / ".git")
    assert answer(told).ok is True


def test_a_hypothesis_to_be_tested_again_shows_its_earlier_test(told: Campaign) -> None:
    substitute(told.progress, "Status**: VALIDATED", "Status**: UNTESTED")
    found = answer(told)
    assert found.ok is True
    assert [n for n in found.notes if n != REPLAYED_NOTE] == [
        "hypothesis 1 is UNTESTED: its Result is of an earlier test and does not count"
    ]
    substitute(told.progress, "Improvement: +", "Improvement: +9")
    [problem] = problems(told)
    assert (problem.field, problem.found[:14]) == ("result", "improvement: +9"[:14])


def test_numbers_of_a_baseline_without_runs_are_named(told: Campaign) -> None:
    told.progress.write_text(
        "### Baseline: workload\n- GPU util: 27.4%\n\n"
        "### Baseline: reference\n- Notes: to be recorded\n\n"
        "### Baseline: my old machine\n- GPU util: 11%\n"
    )
    other = "no baseline of gpudebug: it records those of workload and reference"
    assert problems(told) == [
        (PROGRESS, "gpu util", None, "27.4%", BY_HAND),
        (PROGRESS, "baseline", None, "Baseline: my old machine", other),
    ]


def test_other_criteria_than_those_of_the_test_are_told(told: Campaign) -> None:
    with told.config.open("a") as f:
        f.write("criteria: {success: 15, failure: 5}\n")
    found = answer(told)
    assert found.ok is True
    [note] = [n for n in found.notes if n != REPLAYED_NOTE]
    assert "criteria.success 20.0, now 15.0; criteria.failure 10.0, now 5.0" in note


def test_an_imported_baseline_follows_from_what_was_imported(tmp_path: Path, recordings: Path) -> None:
    campaign = make_replay_campaign(tmp_path / "repo", recordings)
    run = recordings / "0001-baseline-workload"
    campaign.json("baseline", "--import", str(run / "samples.csv"), "--log", str(run / "train.log"))
    found = answer(campaign)
    assert found.ok is True
    [note] = [n for n in found.notes if n != REPLAYED_NOTE]
    assert "0001-baseline-workload is imported from samples.csv" in note


def test_a_secret_that_only_the_test_knew_is_no_difference_and_is_not_shown(tmp_path: Path) -> None:
    recordings = tmp_path / "recordings"
    record(recordings, "0001-baseline-workload", util=20)
    record(recordings, "0003-h1", log=LEAK, seconds=3, exit_status=1)
    campaign = make_replay_campaign(tmp_path / "repo", recordings)
    campaign.json("next")
    campaign.propose("--set --lr=0.2")
    campaign.json("next", env={"MY_API_KEY": SECRET})
    assert "[redacted]" in campaign.text
    assert answer(campaign).ok is True
    run = campaign.folder / "runs" / "0003-h1"
    substitute(run / "evidence.json", "ValueError: login", "ValueError: logout")
    reseal(run)
    found = campaign.json("verify", status=1, env={"MY_API_KEY": SECRET})
    assert "failure.lines[" in found["problems"][0]["field"]


def other_format(name: str) -> Callable[[Path], None]:
    return lambda run: rewrite(run / name, format=2)


NOT_CHECKED: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "records of another format": (
        "first",
        other_format("run.json"),
        "run.json has format 2, this gpudebug reads 1",
    ),
    "a manifest of another format": ("first", other_format("manifest.json"), "manifest.json has format 2"),
    "a verdict of another format": ("last", other_format("verdict.json"), "verdict.json has format 2"),
    "a verdict by another rule": (
        "last",
        lambda run: rewrite(run / "verdict.json", rule="0"),
        "recorded by an older rule (0; ",
    ),
    "a verdict without terms": (
        "last",
        lambda run: rewrite(run / "verdict.json", terms=None),
        "keeps no terms",
    ),
}


@pytest.mark.parametrize(("which", "alter", "said"), NOT_CHECKED.values(), ids=NOT_CHECKED)
def test_what_another_gpudebug_wrote_is_said_and_not_called_tampered(
    told: Campaign, which: str, alter: Callable[[Path], None], said: str
) -> None:
    run = told.folder / "runs" / ("0003-h1" if which == "first" else told.runs()[-1])
    alter(run)
    reseal(run)
    found = answer(told)
    assert (found.ok, found.problems) == (None, ())
    [line] = found.unchecked
    assert said in line


def test_a_run_recorded_elsewhere_is_checked_as_any_other(told: Campaign, tmp_path: Path) -> None:
    moved = copied(told, tmp_path / "else where")
    for name in moved.runs():
        run = moved.folder / "runs" / name
        rewrite(run / "run.json", host="another", cwd="/nowhere")
        reseal(run)
    assert answer(moved).ok is True


def test_the_answer_is_one_json_document_whatever_is_broken(told: Campaign) -> None:
    for run in (told.folder / "runs").iterdir():
        for file in (p for p in run.iterdir() if p.is_file()) if run.is_dir() else ():
            file.write_bytes(b"\xff\x00garbage")
    found = json.loads(told.run("verify", "--json").expect(1).out)
    assert found["ok"] is False
    assert {p["why"] for p in found["problems"]} >= {"not readable as JSON"}
