"""`propose --none`: who may say so when, what it ends, and what continues the campaign."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import Campaign, contents
from tests.support.tampering import substitute

from gpudebug.core.errors import StoreError
from gpudebug.core.progress.nothing import read
from gpudebug.core.progress.parser import parse
from gpudebug.edges import store
from gpudebug.engine.cycle.nothing import SomethingLeft, propose_nothing

WHY = "each likely cause was tested"


def none(campaign: Campaign, session: str | None = None, why: str = WHY, status: int = 7) -> Any:
    env = {"GPUDEBUG_SESSION": session} if session else None
    return campaign.json("propose", "--none", why, status=status, env=env)


def said(campaign: Campaign) -> list[str | None]:
    return [each.session for each in read(parse(campaign.progress.read_bytes(), "p.md"))]


def test_two_sessions_in_a_row_end_the_campaign_and_a_proposal_continues_it(recorded: Campaign) -> None:
    first = none(recorded, "a")
    assert (first["action"], first["session_done"], first["hypothesis"]) == ("stop", True, None)
    assert recorded.json("next", status=7, env={"GPUDEBUG_SESSION": "a"})["session_done"]
    assert none(recorded, "a") == first
    assert said(recorded) == ["a"]
    assert recorded.json("next", status=5)["action"] == "propose"
    second = none(recorded, "b", status=4)
    assert "sessions a, b" in second["why"]
    for session in ("a", "b", "c"):
        assert recorded.json("next", status=4, env={"GPUDEBUG_SESSION": session})["why"] == second["why"]
    assert recorded.json("status")["next"]["action"] == "stop"
    before = contents(recorded.folder)
    assert none(recorded, "c", status=4)["why"] == second["why"]
    assert contents(recorded.folder) == before
    recorded.propose("--code")
    assert recorded.json("status")["next"]["action"] == "implement"
    assert recorded.json("verify")["ok"]


def test_a_person_ends_it_alone(recorded: Campaign) -> None:
    answer = none(recorded, status=4)
    assert (answer["action"], "a person" in answer["why"]) == ("stop", True)
    assert recorded.run("next").expect(4).out.startswith("Stop: nothing left to propose")
    assert recorded.json("next", status=4, env={"GPUDEBUG_SESSION": "a"})["why"] == answer["why"]


def test_both_ends_tell_what_can_be_handed_on(told: Campaign) -> None:
    text = told.progress.read_text()
    told.progress.write_text(text[: text.index("### Hypothesis 2")])
    ended = none(told, "a")["tell"]
    assert ended.startswith(
        f"This session proposes nothing more: {WHY}. 1 hypothesis is tested: hypothesis 1"
    )
    assert "is VALIDATED" in ended and "(95% CI +" in ended and "`gpudebug accept 1`" in ended
    assert "Your checkout and gpudebug.yaml are as they were." in ended
    again = told.run("next", env={"GPUDEBUG_SESSION": "a"}).expect(7).out
    assert f"Tell the user:\n{ended}" in again
    over = none(told, "b", status=4)["tell"]
    assert over.startswith("The campaign has ended (nothing left to propose, by the word of sessions a, b")
    assert "with 1 hypothesis tested. Hypothesis 1" in over and "`gpudebug accept 1`" in over
    assert told.json("next", status=4)["tell"] == over


def test_a_verdict_in_between_makes_it_a_new_row(recorded: Campaign) -> None:
    none(recorded, "a")
    recorded.add("\n### Hypothesis 1: By hand\n- **Status**: REJECTED\n")
    assert recorded.json("next", status=5)["action"] == "propose"
    assert none(recorded, "b")["session_done"]
    assert none(recorded, "a", status=4)["action"] == "stop"
    assert said(recorded) == ["a", "b", "a"]


def test_what_is_left_to_do_comes_first(recorded: Campaign) -> None:
    recorded.propose("--code")
    for session in ("a", None):
        error = none(recorded, session, status=1)["error"]
        assert error["code"] == "something_left"
        assert error["next"] == "gpudebug next"
    recorded.json("next", status=5, env={"GPUDEBUG_SESSION": "a"})
    assert "gpudebug release 1" in none(recorded, "a", status=1)["error"]["next"]
    assert "a session holds" in none(recorded, status=1)["error"]["message"]
    # Another session may end: while one is tested, two of them do not end the campaign.
    assert none(recorded, "b")["session_done"]
    assert none(recorded, "c")["session_done"]
    assert recorded.json("next", status=5, env={"GPUDEBUG_SESSION": "d"})["action"] == "propose"


def test_a_reason_is_asked_for_and_nothing_else_taken(recorded: Campaign) -> None:
    before = contents(recorded.folder)
    assert "needs a reason" in none(recorded, why=" \n", status=2)["error"]["message"]
    done = recorded.run("propose", "--none", WHY, "--set", "--lr=0.2")
    assert "leave the other options out" in done.expect(2).err
    assert contents(recorded.folder) == before


def test_before_the_baseline_nothing_is_known(campaign: Campaign) -> None:
    assert "baseline workload" in none(campaign, status=1)["error"]["message"]


def test_a_write_that_fails_leaves_nothing_said_and_can_be_repeated(
    recorded: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = recorded.progress.read_bytes()
    replace_file = store.replace_file

    def fails(*_: Any, **__: Any) -> None:
        raise StoreError("disk full")

    def dies_afterwards(path: Path, *args: Any, **more: Any) -> None:
        replace_file(path, *args, **more)
        raise KeyboardInterrupt

    monkeypatch.setattr(store, "replace_file", fails)
    with pytest.raises(StoreError):
        propose_nothing(recorded.folder, WHY, "a")
    assert recorded.progress.read_bytes() == before
    monkeypatch.setattr(store, "replace_file", dies_afterwards)
    with pytest.raises(KeyboardInterrupt):
        propose_nothing(recorded.folder, WHY, "a")
    monkeypatch.setattr(store, "replace_file", replace_file)
    after = recorded.progress.read_bytes()
    assert propose_nothing(recorded.folder, WHY, "a").action == "stop"
    assert recorded.progress.read_bytes() == after
    assert said(recorded) == ["a"]


def test_a_kill_between_record_and_line_said_nothing(
    recorded: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_file = store.replace_file

    def dies(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(store, "replace_file", dies)
    with pytest.raises(KeyboardInterrupt):
        propose_nothing(recorded.folder, WHY)
    assert len(list((recorded.folder / ".git/gpudebug/said").glob("*/nothing.json"))) == 1
    monkeypatch.setattr(store, "replace_file", replace_file)
    assert recorded.json("next", status=5)["action"] == "propose"
    assert recorded.json("verify")["ok"]
    assert none(recorded, "a")["session_done"]
    assert said(recorded) == ["a"]
    assert recorded.json("verify")["ok"]


@pytest.mark.parametrize("other", ["a person,", "session b,"])
def test_a_line_that_was_edited_ends_nothing(recorded: Campaign, other: str) -> None:
    none(recorded, "a")
    substitute(recorded.progress, "session a,", other)
    assert recorded.json("next", status=5)["action"] == "propose"
    assert none(recorded, "b")["session_done"]
    assert recorded.json("next", status=5)["action"] == "propose"


def test_one_who_proposes_at_the_same_moment_is_not_overruled(
    recorded: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = store.locked

    def late(path: Path) -> Any:
        monkeypatch.setattr(store, "locked", locked)
        recorded.add("\n### Hypothesis 1: Meanwhile\n- **Status**: UNTESTED\n")
        return locked(path)

    monkeypatch.setattr(store, "locked", late)
    with pytest.raises(SomethingLeft, match="in the meantime"):
        propose_nothing(recorded.folder, WHY, "a")
    assert said(recorded) == []
