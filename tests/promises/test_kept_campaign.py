"""A campaign that was recorded at 58a9b807 opens, shows, verifies and continues."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import contents
from tests.support.old_campaign import OldCampaign, kept_answer, kept_patch, restore_kept

from gpudebug.core.verdict.judge import RULE
from gpudebug.engine.hypotheses.export import export


@pytest.fixture
def kept(tmp_path: Path) -> OldCampaign:
    return restore_kept(tmp_path / "campaign")


# What depends on the clock, on the machine, or is of a later version.
_MOVED = {"age_s", "next", "files", "running", "progress", "claim"}


def known_then(then: Any, now: Any) -> Any:
    """Return what is said now under the keys of then: new ones may come, anywhere (docs/releases.md)."""
    if isinstance(then, dict) and isinstance(now, dict):
        return {key: known_then(then[key], value) for key, value in now.items() if key in then}
    if isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        return [known_then(*pair) for pair in zip(then, now, strict=True)]
    return now


def test_its_status_has_the_same_figures(kept: OldCampaign) -> None:
    then, now = kept_answer("status"), kept.json("status")
    assert set(then) <= set(now)
    for key in ("campaign", "goal", "metric", "target", "shown", "budget", "sweeps", "unlisted"):
        assert known_then(then[key], now[key]) == then[key], key
    for was, is_ in zip(then["hypotheses"], now["hypotheses"], strict=True):
        assert {k: is_[k] for k in was if k not in _MOVED} == {
            k: v for k, v in was.items() if k not in _MOVED
        }
    workload = now["baselines"]["workload"]
    for key in ("gpu_util", "gpu_util_text", "throughput_text", "work_text", "loss", "runs", "verified"):
        assert workload[key] == then["baselines"]["workload"][key], key


def test_it_shows_its_accepted_change_as_it_did(kept: OldCampaign) -> None:
    then, now = kept_answer("show_1"), kept.json("show", "1")
    for key in ("accepted", "verified", "figures", "gates", "notes", "runs", "delta_pp", "delta_ci", "why"):
        assert now[key] == then[key], key


def test_its_verdicts_are_named_as_of_an_older_rule_and_all_else_follows_from_its_evidence(
    kept: OldCampaign,
) -> None:
    before = contents(kept.folder)
    found = kept.json("verify")
    assert (found["ok"], found["problems"], found["absent"]) == (None, [], [])
    judged = ((1, "0006-baseline-workload"), (2, "0013-h2"), (2, "0007-h2"), (3, "0012-h3"))
    assert found["unchecked"] == [
        f"hypothesis {number}, runs/{run}: recorded by an older rule (5; this gpudebug has rule {RULE}), "
        "not derived again"
        for number, run in judged
    ]
    assert (found["checked"]["baselines"], found["checked"]["hypotheses"]) == (["workload"], [1, 2, 3])
    assert contents(kept.folder) == before


def test_an_edited_figure_of_it_is_found(kept: OldCampaign) -> None:
    kept.progress.write_text(kept.text.replace("+35.5pp (95%", "+45.5pp (95%", 1), encoding="utf-8")
    [problem] = kept.json("verify", status=1)["problems"]
    assert problem["hypothesis"] == 1


def test_with_its_own_interpreter_it_exports_what_it_did(
    kept: OldCampaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = json.loads((kept.folder / "runs/0008-baseline-workload/run.json").read_text("utf-8"))
    monkeypatch.setattr(
        "gpudebug.edges.host.interpreter_identity", lambda path: record["identity"]["interpreter"]
    )
    [patch] = export(kept.folder).patches
    written = kept.folder / "runs" / "export" / patch
    assert written.read_bytes().split(b"\n---\n")[1] == kept_patch().split(b"\n---\n")[1]


@pytest.mark.slow
def test_a_person_pins_this_machine_and_goes_on_with_what_was_accepted(kept: OldCampaign) -> None:
    assert "not what is pinned" in kept.run("next").expect(1).err
    kept.run("settings", "--accept").expect(0)
    # Whoever implements hypothesis 4 has not been heard of since: it is anybody's again.
    assert kept.json("next")["action"] == "recovered"
    assert kept.json("next")["action"] == "recorded_baseline"
    assert kept.json("verify")["problems"] == []
    status = kept.json("status")
    assert [h["number"] for h in status["hypotheses"] if h["accepted"]] == [1]
    assert [h["status"] for h in status["hypotheses"]][3:] == ["UNTESTED", "UNTESTED"]
