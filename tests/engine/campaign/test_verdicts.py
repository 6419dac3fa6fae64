"""Verdicts that the run folders hold: what counts, and what speaks against one."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import Campaign, commit_all, copied, git, make_replay_campaign, record
from tests.support.tampering import reseal, rewrite
from tests.support.verifying import answer, problems

from gpudebug.core.errors import GpudebugError
from gpudebug.edges.store.private import PrivateFolder
from gpudebug.engine.campaign.load import load
from gpudebug.engine.campaign.pin_record import ComparedSettings, Pin
from gpudebug.engine.campaign.premises import standing_against
from gpudebug.engine.campaign.verdicts import doubts, played_back
from gpudebug.engine.hypotheses.accept import accept
from gpudebug.engine.hypotheses.reopen import reopen
from gpudebug.engine.verify import verify

NOWHERE = PrivateFolder(Path("/nowhere"), ())
BAR = {"criteria.success": 20.0, "metric": "gpu_util", "direction": "higher", "locked": []}
TERMS = {"criteria": {"success": 20.0}, "metric": "gpu_util", "direction": "higher", "locked": []}


def of(verdict: Any, bar: dict[str, Any], records: Any = None, replay: bool = False) -> Any:
    settings = ComparedSettings(NOWHERE, {}, Pin(when="now", settings=bar, replay=replay))
    return doubts(settings, verdict, records or {})


def test_weaker_terms_speak_against_a_verdict() -> None:
    assert of({"terms": TERMS}, BAR).against == ()
    found = of({"terms": {**TERMS, "criteria": {"success": 1}}}, BAR)
    assert found.against == ("weaker terms: criteria.success is 1, pinned is 20 (weaker)",)


def test_stricter_terms_do_not() -> None:
    assert of({"terms": {**TERMS, "criteria": {"success": 40}}}, BAR).against == ()


def test_recordings_speak_against_a_verdict_unless_they_were_the_device_from_the_start() -> None:
    verdict = {"terms": TERMS, "runs": [{"name": "0001-h1"}]}
    records = {"0001-h1": {"replayed": True}}
    assert of(verdict, BAR, records).against[0].startswith("replayed: ")
    plays = {**BAR, "resolved.device": "replay rec"}
    assert of(verdict, plays, records).against[0].startswith("replayed: ")
    assert of(verdict, plays, records, replay=True).against == ()


def test_a_verdict_without_terms_or_of_another_shape_breaks_nothing() -> None:
    for verdict in (
        None,
        [],
        {},
        {"terms": []},
        {"runs": {}},
        {"runs": [1, {"name": 2}]},
        {"terms": {"x": 1}},
    ):
        assert of(verdict, BAR).against == ()


def test_what_nothing_tells_is_unknown() -> None:
    assert played_back((), {}) is None
    assert played_back(("a",), {"a": {}}) is None
    assert played_back(("a", "b"), {"a": {}, "b": {"replayed": True}}) is True
    assert played_back(("a",), {"a": {"replayed": False}}) is False


def test_a_campaign_of_recordings_has_no_doubts(told: Campaign) -> None:
    loaded = load(told.folder)
    assert loaded.entries.trials[1].doubts.replayed is True
    assert standing_against(loaded.setup, loaded.entries, 1) is None


def test_verify_compares_the_record_with_the_sampler_s(told: Campaign) -> None:
    run = next((told.folder / "runs").glob("*-h1"))
    rewrite(run / "run.json", replayed=False)
    reseal(run)
    problems = verify(told.folder, 1).problems
    assert [(p.field, p.expected, p.found) for p in problems] == [("replayed", True, False)]


def test_verify_names_a_trial_whose_runs_were_made_under_different_settings(told: Campaign) -> None:
    (path,) = (told.folder / "runs").glob("*/verdict.json")
    used = [r["name"] for r in json.loads(path.read_text())["runs"] if r["part"] == "trial" or r["fresh"]]
    assert len(used) > 1
    assert verify(told.folder, 1).ok is True
    run = told.folder / "runs" / used[0]
    rewrite(run / "run.json", settings="0" * 16)
    reseal(run)
    assert any("different pinned" in str(p.why) for p in verify(told.folder, 1).problems)


def test_what_0_1_0_did_not_record_is_no_problem(told: Campaign) -> None:
    for run in (told.folder / "runs").glob("0*"):
        record = json.loads((run / "run.json").read_text())
        del record["replayed"], record["settings"]
        (run / "run.json").write_text(json.dumps(record))
        reseal(run)
    (verdict,) = (told.folder / "runs").glob("*/verdict.json")
    rewrite(verdict, rule="3")
    reseal(verdict.parent)
    load(told.folder).setup.compared.file.unlink()
    assert [(p.field, p.why) for p in verify(told.folder).problems] == []
    status = told.json("status")
    assert status["hypotheses"][0]["replayed"] is True
    assert status["hypotheses"][0]["doubts"] == []
    done = told.run("next").expect(0)
    assert "pinned the settings of gpudebug.yaml" in done.err
    assert told.json("status")["hypotheses"][0]["doubts"] == []


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    folder = tmp_path_factory.mktemp("solved")
    record(folder / "recordings", "0001-baseline-workload", util=20, rate=10)
    record(folder / "recordings", "0002-h1", util=90, rate=45)
    made = make_replay_campaign(folder / "repo", folder / "recordings", config="target: 80\n")
    made.json("next")
    made.propose("--set --lr=0.2")
    assert made.json("next")["verdict"] == "VALIDATED"
    return made


@pytest.fixture
def pushed(solved: Campaign, tmp_path: Path) -> Campaign:
    """What somebody else pushed, with the runs of a verdict in it."""
    there = copied(solved, tmp_path / "there")
    git(there.folder, "add", "--force", "runs")
    commit_all(there.folder)
    return there


def test_a_clone_brings_no_verdict(pushed: Campaign, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", str(pushed.folder), "repo")
    clone = Campaign(tmp_path / "repo").pin()
    status = clone.json("status")
    (hypothesis,) = status["hypotheses"]
    assert (hypothesis["status"], hypothesis["verified"]) == ("VALIDATED", True)
    (doubt,) = hypothesis["doubts"]
    assert doubt.startswith(
        "brought along: git tracks runs/0001-baseline-workload, runs/0002-baseline-workload, "
    )
    assert "brought along" in clone.run("status").out
    assert "brought along" in status["baselines"]["workload"]["why"]
    assert status["next"]["action"] == "record_baseline"
    verified = clone.json("verify")
    assert verified["ok"] is None
    assert any("brought along" in line for line in verified["unchecked"])
    for words in (["accept", "1"], ["accept", "1", "--terms-differ"]):
        refused = clone.run(*words).expect(1).err
        assert "brought along" in refused
        assert "git rm -r --cached runs" in refused


def test_a_clone_brings_no_acceptance(pushed: Campaign, tmp_path: Path) -> None:
    """Without the record in git's folder its `Accepted` line is like one of a campaign of 0.1.0."""
    pushed.progress.write_text(
        pushed.text.replace("**Status**: VALIDATED\n", "**Status**: VALIDATED\n- **Accepted**: 1\n")
    )
    commit_all(pushed.folder)
    git(tmp_path, "clone", "--quiet", str(pushed.folder), "repo")
    clone = Campaign(tmp_path / "repo")
    found = load(clone.folder)
    assert found.entries.recorded != ()
    assert found.entries.accepted == ()
    assert found.setup.config.workload.argv() == load(pushed.folder).setup.config.workload.argv()
    clone.pin()
    assert load(clone.folder).entries.acceptances.entries == {}


def test_ones_own_count_again_when_git_tracks_them_no_more(pushed: Campaign) -> None:
    assert pushed.json("status")["hypotheses"][0]["doubts"] != []
    git(pushed.folder, "rm", "-r", "--quiet", "--cached", "runs")
    status = pushed.json("status")
    assert status["hypotheses"][0]["doubts"] == []
    assert status["next"]["action"] == "stop"
    assert pushed.json("verify")["ok"] is True


def test_a_link_that_a_clone_brings_is_brought_too(solved: Campaign, tmp_path: Path) -> None:
    campaign = copied(solved, tmp_path / "repo")
    run = campaign.folder / "runs" / "0003-h1"
    run.rename(campaign.folder / "data")
    run.symlink_to("../data")
    git(campaign.folder, "add", "--force", "runs/0003-h1", "data")
    assert (
        campaign.json("status")["hypotheses"][0]["doubts"]
        or not (campaign.json("status")["hypotheses"][0]["verified"])
    )


FIRST = "0003-h1"
UNTESTED = "- **Status**: UNTESTED\n"


def as_session(number: int) -> dict[str, str]:
    return {"GPUDEBUG_SESSION": f"agent-{number}"}


@pytest.fixture(scope="module")
def judged_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Campaign, str]:
    """Crashed, set back by hand, and VALIDATED in the second test: with the entry as it was before both."""
    folder = tmp_path_factory.mktemp("repeated")
    recordings = folder / "recordings"
    record(recordings, "0001-baseline-workload", util=20, rate=10)
    record(recordings, "0002-h1", log="ValueError: bad shape\n", seconds=3, exit_status=1)
    record(recordings, "0003-h1", util=62, rate=30)
    record(recordings, "0004-baseline-workload", util=20, rate=10)
    config = "target: 60\nbudget: {hypotheses: 3}\n"
    made = make_replay_campaign(folder / "repo", recordings, config=config)
    made.json("baseline")
    made.propose("--set --lr=0.2")
    text = made.text
    assert made.json("next", env=as_session(1))["verdict"] == "REJECTED"
    return made, text


@pytest.fixture(scope="module")
def original_repeated(
    judged_once: tuple[Campaign, str], tmp_path_factory: pytest.TempPathFactory
) -> Campaign:
    made = copied(judged_once[0], tmp_path_factory.mktemp("again") / "repo")
    made.progress.write_text(judged_once[1])
    assert made.json("next", env=as_session(2))["verdict"] == "VALIDATED"
    return made


@pytest.fixture
def rejected(judged_once: tuple[Campaign, str], tmp_path: Path) -> Campaign:
    return copied(judged_once[0], tmp_path / "rejected")


@pytest.fixture
def repeated(original_repeated: Campaign, tmp_path: Path) -> Campaign:
    return copied(original_repeated, tmp_path / "repeated")


def test_a_test_that_was_repeated_without_a_trace_is_named_and_counts_for_nothing(repeated: Campaign) -> None:
    [problem] = problems(repeated)
    assert (problem.field, problem.expected) == ("unlisted", f"runs/{FIRST}")
    status = repeated.json("status")
    assert status["budget"]["hypotheses_used"] == 2
    assert status["unlisted"] == [{"run": FIRST, "hypothesis": 1, "status": "REJECTED"}]
    assert "solved" not in status["next"]["why"]
    assert f"runs/{FIRST} has a verdict (REJECTED, hypothesis 1)" in " ".join(
        repeated.run("status").out.split()
    )
    for session in ("agent-9", None):
        with pytest.raises(GpudebugError, match=f"tested before: runs/{FIRST}") as caught:
            accept(repeated.folder, 1, session)
        assert "gpudebug accept 1 --terms-differ" in (caught.value.next or "")
    assert accept(repeated.folder, 1, terms_differ=True).already is False


def test_the_line_that_verify_says_makes_it_told(repeated: Campaign) -> None:
    [problem] = problems(repeated)
    lines = re.findall(r"`(.*?)`", problem.why or "")
    text = repeated.text.replace("- **Result**:", f"{lines[0]}\n{lines[1]}\n- **Result**:")
    repeated.progress.write_text(text)
    assert answer(repeated).ok is True
    assert "solved" in repeated.json("status")["next"]["why"]
    assert accept(repeated.folder, 1, "agent-9").already is False


def test_an_entry_that_is_gone_is_still_counted_and_nobody_is_accused(rejected: Campaign) -> None:
    rejected.progress.write_text(rejected.text.partition("### Hypothesis 1")[0])
    told = answer(rejected)
    assert (told.ok, told.problems) == (None, ())
    assert (
        f"runs/{FIRST} has a verdict (REJECTED, hypothesis 1) that the progress file does not mention"
        in told.unchecked
    )
    assert rejected.json("status")["budget"]["hypotheses_used"] == 1
    said = " ".join(rejected.run("status").out.split())
    assert f"runs/{FIRST} (hypothesis 1, REJECTED) is not in the progress file" in said
    # The same change under another number, spelled otherwise, is the same test.
    rejected.add("\n### Hypothesis 2: Anew\n- **Intervention**: --set lr=0.2\n" + UNTESTED)
    assert [p.field for p in problems(rejected)] == ["unlisted"]


def test_a_run_that_was_deleted_is_asked_for_by_nobody(rejected: Campaign) -> None:
    rejected.progress.write_text(rejected.text.partition("### Hypothesis 1")[0])
    shutil.rmtree(rejected.folder / "runs" / FIRST)
    assert answer(rejected).ok is True
    assert rejected.json("status")["budget"]["hypotheses_used"] == 0


def test_another_campaign_in_the_same_runs_is_its_own_business(repeated: Campaign) -> None:
    config = repeated.config.read_text().replace("campaign: test", "campaign: other")
    repeated.config.write_text(
        config.replace("campaign: other", "campaign: other\nprogress: progress/other.md")
    )
    assert answer(repeated).ok is True
    assert repeated.json("status")["budget"]["hypotheses_used"] == 0


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("- **Status**: REJECTED\n", "- **Status**: INCONCLUSIVE\n"),
        (f"  - Runs: runs/{FIRST}\n", ""),
    ],
    ids=["another status", "no runs"],
)
def test_what_stands_in_the_entry_reopens_nothing_for_a_session(
    rejected: Campaign, old: str, new: str
) -> None:
    assert old in rejected.text
    rejected.progress.write_text(rejected.text.replace(old, new))
    with pytest.raises(GpudebugError, match="nothing has changed since it was measured"):
        reopen(rejected.folder, 1, "agent-3")
    assert reopen(rejected.folder, 1).already is False


def test_other_code_reopens_it_whatever_stands_there(rejected: Campaign) -> None:
    rejected.progress.write_text(rejected.text.replace("REJECTED\n", "REJECTED\n- **Speedup**: 9x\n"))
    config = rejected.config.read_text().replace("--lr=0.1", "--lr=0.3")
    rejected.config.write_text(config)
    assert "command changed" in reopen(rejected.folder, 1, "agent-3").why
    assert load(rejected.folder).history.unlisted == ()
