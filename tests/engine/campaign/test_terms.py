"""A verdict beside what is pinned: the terms that it was judged by, and whether its runs were played back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.campaigns import Campaign
from tests.support.tampering import reseal, rewrite

from gpudebug.engine.campaign.load import load
from gpudebug.engine.campaign.pin_record import ComparedSettings, Pin
from gpudebug.engine.campaign.premises import standing_against
from gpudebug.engine.campaign.terms import doubts, played_back
from gpudebug.engine.verify import verify

NOWHERE = Path("/nowhere")
BAR = {"criteria.success": 20.0, "metric": "gpu_util", "direction": "higher", "locked": []}
TERMS = {"criteria": {"success": 20.0}, "metric": "gpu_util", "direction": "higher", "locked": []}


def of(verdict: Any, bar: dict[str, Any], tmp_path: Path, records: Any = None, replay: bool = False) -> Any:
    from gpudebug.edges import store

    settings = ComparedSettings(NOWHERE, (), {}, Pin(when="now", settings=bar, replay=replay))
    return doubts(settings, store.Workspace(tmp_path), verdict, records or {})


def test_weaker_terms_speak_against_a_verdict(tmp_path: Path) -> None:
    assert of({"terms": TERMS}, BAR, tmp_path).against == ()
    found = of({"terms": {**TERMS, "criteria": {"success": 1}}}, BAR, tmp_path)
    assert found.against == ("weaker terms: criteria.success is 1, pinned is 20 (weaker)",)


def test_stricter_terms_do_not(tmp_path: Path) -> None:
    assert of({"terms": {**TERMS, "criteria": {"success": 40}}}, BAR, tmp_path).against == ()


def test_recordings_speak_against_a_verdict_unless_they_were_the_device_from_the_start(
    tmp_path: Path,
) -> None:
    verdict = {"terms": TERMS, "runs": [{"name": "0001-h1"}]}
    records = {"0001-h1": {"replayed": True}}
    assert of(verdict, BAR, tmp_path, records).against[0].startswith("replayed: ")
    plays = {**BAR, "resolved.device": "replay rec"}
    assert of(verdict, plays, tmp_path, records).against[0].startswith("replayed: ")
    assert of(verdict, plays, tmp_path, records, replay=True).against == ()


def test_a_verdict_without_terms_or_of_another_shape_breaks_nothing(tmp_path: Path) -> None:
    for verdict in (
        None,
        [],
        {},
        {"terms": []},
        {"runs": {}},
        {"runs": [1, {"name": 2}]},
        {"terms": {"x": 1}},
    ):
        assert of(verdict, BAR, tmp_path).against == ()


def test_what_nothing_tells_is_unknown(tmp_path: Path) -> None:
    from gpudebug.edges import store

    workspace = store.Workspace(tmp_path)
    assert played_back(workspace, (), {}) is None
    assert played_back(workspace, ("a",), {"a": {}}) is None
    assert played_back(workspace, ("a", "b"), {"a": {}, "b": {"replayed": True}}) is True
    assert played_back(workspace, ("a",), {"a": {"replayed": False}}) is False


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
