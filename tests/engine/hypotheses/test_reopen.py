from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.support.campaigns import Campaign, contents, copied, make_replay_campaign, record

from gpudebug.core.errors import GpudebugError, StoreError
from gpudebug.edges import store
from gpudebug.engine.campaign import progress_edit
from gpudebug.engine.cycle.next import go_on
from gpudebug.engine.hypotheses.reopen import reopen
from gpudebug.engine.run.prepare import claim_of

ENTRY = "\n### Hypothesis 7: By hand\n- **Intervention**: --set --work=0.9\n- **Status**: {}\n"


def test_a_rejected_hypothesis_is_tested_again_once_its_premises_changed(adopted: Campaign) -> None:
    runs = contents(adopted.folder / "runs")
    old = re.search(r"### Hypothesis 3.*?- \*\*Result\*\*:\n(.*?\n)\n### ", adopted.text, re.DOTALL)
    assert old is not None
    answer = adopted.json("reopen", "3")
    assert (answer["action"], answer["was"], answer["already"]) == ("reopened", "REJECTED", False)
    assert answer["why"] == "the workload's command and the code changed since it was measured"
    assert f"- **Status**: UNTESTED\n- **Earlier result (REJECTED)**:\n{old[1]}" in adopted.text
    again = adopted.json("next")
    assert (again["action"], again["hypothesis"], again["verdict"]) == ("tested", 3, "REJECTED")
    assert f"- **Earlier result (REJECTED)**:\n{old[1]}" in adopted.text
    shown = adopted.json("show", "3")
    assert shown["runs"] and not set(shown["runs"]) & set(answer["earlier_runs"])
    assert {run["run"] for run in shown["evidence"]} == set(shown["runs"])
    after = contents(adopted.folder / "runs")
    measured = [name for name in runs if "/" in name]
    assert {name: after[name] for name in measured} == {name: runs[name] for name in measured}
    assert "nothing has changed since it was measured" in adopted.run("reopen", "3").expect(1).err


REFUSED = [
    (1, "", 1, "hypothesis 1 is VALIDATED (delta ", "propose something else; accepting another"),
    (3, "", 1, "and nothing has changed since it was measured", "propose something else; accepting another"),
    (9, "", 2, "there is no hypothesis 9", "gpudebug status"),
    (
        7,
        "TESTING - session a, since 2026-11-21T10:00:00+00:00",
        6,
        "(session a, since 2026",
        "gpudebug status",
    ),
]


def test_what_is_decided_stays_decided(judged: Campaign) -> None:
    measured = judged.text
    for number, status, code, said, advice in REFUSED:
        text = measured + (ENTRY.format(status) if status else "")
        judged.progress.write_text(text)
        with pytest.raises(GpudebugError, match=re.escape(said)) as caught:
            reopen(judged.folder, number)
        assert caught.value.exit_code == code
        assert (caught.value.next or "").startswith(advice)
        assert judged.text == text


def test_what_is_undecided_or_written_by_hand_is_reopened_always(judged: Campaign) -> None:
    measured = judged.text
    for status in ("INCONCLUSIVE", "INVALID", "REJECTED", "VALIDATED"):
        judged.progress.write_text(measured + ENTRY.format(status))
        answer = reopen(judged.folder, 7)
        assert (answer.was, answer.earlier_runs) == (status, ())
        assert judged.text.endswith(f"- **Status**: UNTESTED\n- **Earlier result ({status})**:\n")
        text = judged.text
        again = reopen(judged.folder, 7)
        assert (again.already, again.was) == (True, "UNTESTED")
        assert judged.text == text


def test_an_earlier_result_is_not_adopted_for_the_new_trial(adopted: Campaign) -> None:
    """As after a kill between TESTING and the first run, with a verdict that says nothing of its claim."""
    answer = adopted.json("reopen", "3")
    for name in answer["earlier_runs"]:
        path = adopted.folder / "runs" / name / "verdict.json"
        if path.exists():
            verdict = json.loads(path.read_text())
            path.write_text(json.dumps({key: v for key, v in verdict.items() if key != "claim"}))
    adopted.progress.write_text(adopted.text.replace("- **Status**: UNTESTED", "- **Status**: TESTING"))
    recovered = adopted.json("next")
    assert recovered["action"] == "recovered"
    assert adopted.statuses() == ["VALIDATED", "VALIDATED", "UNTESTED", "VALIDATED"]


MINE = {"GPUDEBUG_SESSION": "a1"}


@pytest.fixture(scope="module")
def original_undecided(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    campaign = _waits(tmp_path_factory.mktemp("undecided"))
    assert campaign.json("next", env=MINE)["verdict"] == "INCONCLUSIVE"
    return campaign


def _waits(folder: Path) -> Campaign:
    """A campaign whose hypothesis two runs of a change leave open."""
    recordings = folder / "recordings"
    record(recordings, "0001-baseline-workload")
    record(recordings, "0002-h1", util=36.0, rate=18)
    campaign = make_replay_campaign(folder / "repo", recordings, max_runs=2)
    campaign.json("next")
    campaign.propose("--set --lr=0.2")
    return campaign


@pytest.fixture
def undecided(original_undecided: Campaign, tmp_path: Path) -> Campaign:
    """A campaign whose one hypothesis the runs of session a1 left INCONCLUSIVE."""
    return copied(original_undecided, tmp_path / "repo")


def _budget(campaign: Campaign, text: str) -> None:
    campaign.config.write_text(f"{campaign.config.read_text()}budget: {text}\n")
    campaign.run("settings", "--accept").expect(0)


def test_an_open_test_goes_on_from_all_its_runs(undecided: Campaign) -> None:
    """Of the session that made it, and of a person; a decided one does not."""
    campaign, mine, another = undecided, MINE, {"GPUDEBUG_SESSION": "b2"}
    before, first = campaign.text, campaign.json("show", "1")["runs"]
    refused = campaign.run("next", "--more", "1", env=another).expect(1)
    assert "hypothesis 1 was tested by session a1, and this is session b2" in refused.err
    assert "next: a person runs: gpudebug next --more 1" in refused.err
    assert campaign.text == before

    assert campaign.json("next", "--more", "1", env=mine)["hypothesis"] == 1
    runs = campaign.json("show", "1")["runs"]
    assert runs[: len(first)] == first
    assert [name[5:] for name in runs].count("h1") > 2
    verdict = json.loads((campaign.folder / "runs" / runs[-1] / "verdict.json").read_text())
    assert verdict["more"] == 1
    assert campaign.json("verify")["ok"] is True


def test_a_test_ends_before_a_run_that_would_end_too_late(tmp_path: Path) -> None:
    campaign = _waits(tmp_path)
    campaign.run("next", "--within", "soon").expect(2)
    answer = campaign.json("next", "--within", "0.1s")
    assert answer["verdict"] == "INCONCLUSIVE"
    assert [name[5:] for name in campaign.json("show", "1")["runs"]] == ["h1"]
    assert "no further run fits into --within 0 s: gpudebug next --more 1" in answer["notes"]
    assert campaign.json("verify")["ok"] is True
    assert campaign.json("next", "--more", "1")["hypothesis"] == 1


def test_a_decided_test_does_not_go_on(judged: Campaign) -> None:
    before = judged.text
    refused = judged.run("next", "--more", "1").expect(1)
    assert "hypothesis 1 is VALIDATED, and --more goes on with one that runs left INCONCLUSIVE" in refused.err
    assert judged.text == before


@pytest.mark.parametrize("env", [{}, MINE])
def test_out_of_budget_an_open_test_stays_as_it_is(undecided: Campaign, env: dict[str, str]) -> None:
    _budget(undecided, "{device_time: 0.1s}")
    before = contents(undecided.folder / "progress"), undecided.runs()
    for _ in range(2):
        assert "out of budget" in undecided.json("next", "--more", "1", env=env, status=4)["why"]
        assert (contents(undecided.folder / "progress"), undecided.runs()) == before


def test_it_does_not_count_against_the_hypotheses_it_is_one_of(undecided: Campaign) -> None:
    _budget(undecided, "{hypotheses: 1}")
    assert undecided.json("next", "--more", "1")["hypothesis"] == 1


def test_while_another_command_runs_an_open_test_stays_as_it_is(undecided: Campaign) -> None:
    before = undecided.text
    with claim_of(store.Workspace(undecided.folder), "gpudebug baseline"):
        assert "gpudebug baseline" in undecided.run("next", "--more", "1", env=MINE).expect(6).err
    assert undecided.text == before


def test_what_its_own_session_is_testing_goes_on(undecided: Campaign) -> None:
    """As after a kill between the claim and the first run."""
    assert go_on(undecided.folder, lambda _: None, "a1", 1) is None
    assert "- **Status**: TESTING - session a1, since 2" in undecided.text
    taken = undecided.text
    refused = undecided.run("next", "--more", "1", env={"GPUDEBUG_SESSION": "b2"}).expect(1)
    assert "hypothesis 1 is TESTING, and --more goes on" in refused.err
    assert undecided.text == taken
    assert undecided.json("next", "--more", "1", env=MINE)["hypothesis"] == 1
    assert undecided.json("verify")["ok"] is True


def test_what_cannot_be_saved_leaves_it_undecided(
    undecided: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The entry is written once: no other session finds it UNTESTED in between."""

    def full(*_: object, **__: object) -> None:
        raise StoreError("no space left", file="progress.md", next="make room")

    before = undecided.text
    with monkeypatch.context() as patched, pytest.raises(StoreError):
        patched.setattr(progress_edit.store, "replace_file", full)
        go_on(undecided.folder, lambda _: None, "a1", 1)
    assert undecided.text == before
    assert undecided.json("next", "--more", "1", env=MINE)["hypothesis"] == 1
