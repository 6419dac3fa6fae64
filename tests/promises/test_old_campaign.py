"""A campaign that gpudebug 0.1.0 recorded and accepted is read, verified and continued."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.campaigns import contents, git
from tests.support.old_campaign import OldCampaign, answered, exported, restore, restore_as_it_was

from gpudebug.core.verdict.gates import RULE
from gpudebug.edges import store
from gpudebug.engine.hypotheses.export import export


@pytest.fixture
def old(tmp_path: Path) -> OldCampaign:
    return restore(tmp_path / "campaign")


def test_its_settings_that_are_gone_are_named_with_their_line(tmp_path: Path) -> None:
    old = restore_as_it_was(tmp_path / "campaign")
    before = contents(old.folder)
    for words in (("status",), ("next",), ("verify",)):
        (line,) = old.run(*words).expect(1).err.splitlines()
        assert line.startswith(f"gpudebug: {old.config}:14: ")
        assert line.endswith("; next: delete these keys: line 14")
        assert "protocol.min_window is gone: " in line and "protocol.baseline_runs is gone: " in line
    assert {name: what for name, what in contents(old.folder).items() if name in before} == before


def test_it_comes_with_its_history_its_references_and_its_runs(old: OldCampaign) -> None:
    assert "refs/gpudebug/campaign-f01d79cf/base" in git(old.folder, "for-each-ref")
    assert len(old.runs()) == 10


def test_its_verdicts_are_named_as_of_an_older_rule_and_all_else_follows_from_its_evidence(
    old: OldCampaign,
) -> None:
    before = contents(old.folder)
    found = old.json("verify")
    assert (found["ok"], found["problems"], found["absent"]) == (None, [], [])
    judged = ((1, "0004-baseline-workload"), (2, "0008-h2"), (2, "0005-h2"), (3, "0010-h3"))
    assert found["unchecked"] == [
        f"hypothesis {number}, runs/{run}: recorded by an older rule (3; this gpudebug has rule {RULE}), "
        "not derived again"
        for number, run in judged
    ]
    assert (found["checked"]["baselines"], found["checked"]["hypotheses"]) == (["workload"], [1, 2, 3])
    assert contents(old.folder) == before


# What depends on the clock, or is of a later version.
_TIMES = {"age_s", "next", "files", "running", "progress"}


def test_its_status_has_the_same_figures(old: OldCampaign) -> None:
    then, now = answered("status"), old.json("status")
    assert set(then) <= set(now)
    for key in ("campaign", "goal", "metric", "target", "shown", "budget"):
        assert now[key] == then[key], key
    for was, is_ in zip(then["hypotheses"], now["hypotheses"], strict=True):
        assert {k: is_[k] for k in was if k not in _TIMES} == {
            k: v for k, v in was.items() if k not in _TIMES
        }
    for key in ("gpu_util", "gpu_util_text", "throughput_text", "loss", "runs", "verified"):
        assert now["baselines"]["workload"][key] == then["baselines"]["workload"][key], key
    assert [h["accepted"] for h in now["hypotheses"]] == [1, None, None, None, None]


def test_it_shows_its_accepted_change_as_it_did(old: OldCampaign) -> None:
    then, now = answered("show_1"), old.json("show", "1")
    # Fields of a gate that 0.1.0 did not have.
    then["gates"] = [{**gate, "source": None, "unexplained": None} for gate in then["gates"]]
    for key in ("accepted", "verified", "figures", "gates", "notes", "runs", "delta_pp", "delta_ci", "why"):
        assert now[key] == then[key], key
    assert "accepted: its change is part of the workload" in old.run("status").expect(0).out


def test_it_is_reported(old: OldCampaign) -> None:
    done = old.run("report", "--markdown").expect(0)
    text = (old.folder / "runs" / "report.md").read_text() if "# " not in done.out else done.out
    assert "VALIDATED, accepted" in text


def test_reading_commands_write_nothing(old: OldCampaign) -> None:
    before = contents(old.folder)
    for words in (("status",), ("show", "1"), ("verify",)):
        old.run(*words).expect(0)
    assert contents(old.folder) == before
    assert not (old.folder / ".git" / "gpudebug").exists()


def test_diagnose_writes_the_order_for_status_and_nothing_else(old: OldCampaign) -> None:
    before = contents(old.folder)
    old.run("diagnose").expect(0)
    assert contents(old.folder) == before
    private = store.private_folder(old.folder.resolve())
    assert [p.name for p in private.rglob("*") if p.is_file()] == ["order.json"]


def test_with_its_own_interpreter_it_exports_what_it_did(
    old: OldCampaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = json.loads((old.folder / "runs/0006-baseline-workload/run.json").read_text())
    monkeypatch.setattr(
        "gpudebug.edges.host.interpreter_identity", lambda path: record["identity"]["interpreter"]
    )
    found = export(old.folder)
    # 0.1.0 did not run both sides in turn, and what the host did in between is in neither of them.
    assert found.combined.text is None and "both sides were not run in turn" in (found.combined.why or "")
    patch = old.folder / "runs" / "export" / found.patches[0]
    assert patch.read_bytes().split(b"\n---\n")[1] == exported().split(b"\n---\n")[1]


@pytest.mark.slow
def test_a_person_pins_it_and_goes_on_with_what_was_accepted(old: OldCampaign) -> None:
    refused = old.run("next", env={"GPUDEBUG_SESSION": "a"}).expect(1).err
    assert "no person has pinned the settings" in refused
    assert "gpudebug settings --accept" in refused
    done = old.run("next", "--json").expect(0)
    assert done.json["action"] == "recorded_baseline"
    assert "hypothesis 1: recorded as accepted" in done.err
    assert "pinned the settings of gpudebug.yaml" in done.err
    status = old.json("status")
    assert [h["number"] for h in status["hypotheses"] if h["accepted"]] == [1]
    assert old.json("verify")["problems"] == []
    assert old.json("settings")["differences"] == []
