"""Where runs happen: the checkout while it is the base, else worktrees that nobody else's edit reaches."""

from __future__ import annotations

import difflib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.campaigns import Campaign, commit_all, git

from gpudebug.core.campaign.accepted_changes import AcceptedChange
from gpudebug.core.change.intervention import parse
from gpudebug.core.errors import GitError
from gpudebug.edges import git as snapshot
from gpudebug.engine.campaign.campaign import MeasuredCode
from gpudebug.engine.campaign.load import load
from gpudebug.engine.campaign.worktrees import _accepted_as, base, in_checkout, place_of_base, refs


def lose(campaign: Campaign) -> None:
    """Delete the campaign's commits, as a clone or a clean-up would."""
    for ref in git(campaign.folder, "for-each-ref", "--format=%(refname)", "refs/gpudebug").split():
        git(campaign.folder, "update-ref", "-d", ref)


def cwd_of(campaign: Campaign, run: str) -> Path:
    return Path(json.loads((campaign.folder / "runs" / run / "run.json").read_text())["cwd"])


def test_flags_run_in_the_checkout(told: Campaign) -> None:
    run = told.json("show", "1")["runs"][0]
    assert "worktrees" not in cwd_of(told, run).parts
    assert cwd_of(told, run).name == "repo"


def test_a_session_measures_the_base_while_the_checkout_is_another_tree(recorded: Campaign) -> None:
    recorded.propose("--set --lr=0.2")
    (recorded.folder / "train.py").write_text("print('edited')\n")
    agent = {"GPUDEBUG_SESSION": "a"}
    answer = recorded.json("next", env=agent)
    assert (answer["action"], answer["hypothesis"]) == ("tested", 1)
    assert cwd_of(recorded, recorded.json("show", "1", env=agent)["runs"][0]).name == "base"
    assert list((recorded.folder / "runs" / "worktrees" / "test").iterdir()) == []
    person = recorded.json("next")
    assert (person["action"], person["why"]) == (
        "recorded_baseline",
        "baseline workload: tree changed since it was recorded",
    )


def test_no_session_moves_the_base_by_recording_a_baseline(recorded: Campaign) -> None:
    before = git(recorded.folder, "for-each-ref", "refs/gpudebug")
    (recorded.folder / "helper.py").write_text("y = 2\n")
    answer = recorded.json("baseline", env={"GPUDEBUG_SESSION": "a"})
    assert cwd_of(recorded, Path(answer["files"][0]).name).name == "base"
    assert git(recorded.folder, "for-each-ref", "refs/gpudebug") == before
    recorded.json("baseline")
    assert git(recorded.folder, "for-each-ref", "refs/gpudebug") != before


@pytest.mark.parametrize("session", [None, "a"])
def test_what_stands_in_the_place_of_the_base(recorded: Campaign, session: str | None) -> None:
    before = (recorded.folder / "helper.py").read_text()
    (recorded.folder / "helper.py").write_text("y = 2\n")
    loaded = load(recorded.folder, session)
    assert in_checkout(loaded.setup.workspace, loaded.code) is (session is None)
    with place_of_base(loaded.setup, loaded.code) as place:
        assert (place.root / "helper.py").read_text() == (before if session else "y = 2\n")
        assert place.changed() == []
        (place.root / "helper.py").write_text("y = 3\n")
        assert place.changed() == ["helper.py"]


@pytest.mark.parametrize("session", [None, "a"])
def test_what_agents_are_told_is_no_code(recorded: Campaign, session: str | None) -> None:
    (recorded.folder / "AGENTS.md").write_text("Read this.\n")
    commit_all(recorded.folder)
    if session:
        (recorded.folder / "helper.py").write_text("y = 2\n")
    loaded = load(recorded.folder, session)
    with place_of_base(loaded.setup, loaded.code) as place:
        assert place.changed() == []
        (place.root / "AGENTS.md").write_text("Read that.\n")
        assert place.changed() == []
    recorded.propose("--set --lr=0.2")
    assert recorded.json("next", env={"GPUDEBUG_SESSION": session})["action"] == "tested"


def test_another_campaign_of_the_repository_is_no_code(recorded: Campaign) -> None:
    other = recorded.folder / "other"
    for name in ("gpudebug.yaml", "progress/x.md", "hypotheses/patches/h1.patch", "train.py"):
        (other / name).parent.mkdir(parents=True, exist_ok=True)
        (other / name).write_text("one\n")
    commit_all(recorded.folder)
    loaded = load(recorded.folder)
    with place_of_base(loaded.setup, loaded.code) as place:
        for name in ("gpudebug.yaml", "progress/x.md", "hypotheses/patches/h1.patch"):
            (other / name).write_text("two\n")
        assert place.changed() == []
        assert load(recorded.folder).setup.checkout.tree == loaded.setup.checkout.tree
        (other / "train.py").write_text("two\n")
        assert place.changed() == ["other/train.py"]


def test_the_base_is_made_again_the_same_where_it_was_lost(recorded: Campaign) -> None:
    loaded = load(recorded.folder)
    first = base(loaded.setup, loaded.code)
    lose(recorded)
    assert base(loaded.setup, loaded.code) == first


def test_no_session_makes_its_checkout_the_base_where_that_was_lost(recorded: Campaign) -> None:
    lose(recorded)
    recorded.propose("--set --lr=0.2")
    (recorded.folder / "helper.py").write_text("y = 2\n")
    error = recorded.json("next", status=1, env={"GPUDEBUG_SESSION": "a"})["error"]
    assert "base is lost" in error["message"]
    assert error["next"] == "run `gpudebug baseline` yourself: an agent session may not move the base"
    recorded.json("baseline")
    assert recorded.json("next", env={"GPUDEBUG_SESSION": "a"})["action"] == "tested"


def changing(before: str, after: str) -> bytes:
    lines = difflib.unified_diff([before], [after], "a/helper.py", "b/helper.py")
    return "".join(lines).encode()


def test_accepted_patches_that_the_user_applied_are_there(recorded: Campaign) -> None:
    stack = changing("y = 1\n", "y = 2\n"), changing("y = 2\n", "y = 3\n")
    for applied in (1, 2, 3):
        (recorded.folder / "helper.py").write_text(f"y = {applied}\n")
        loaded = load(recorded.folder)
        loaded = replace(loaded, code=MeasuredCode(loaded.code.tree, stack))
        assert (
            git(recorded.folder, "show", f"{base(loaded.setup, loaded.code).commit}:helper.py") == "y = 3\n"
        )


def test_a_base_that_lacks_an_accepted_patch_is_never_kept(recorded: Campaign) -> None:
    loaded = load(recorded.folder)
    stack = changing("y = 1\n", "y = 2\n"), changing("y = 7\n", "y = 8\n")
    loaded = replace(loaded, code=MeasuredCode(loaded.code.tree, stack))
    for _ in range(2):
        with pytest.raises(GitError, match="does not apply") as e:
            base(loaded.setup, loaded.code)
        assert "checkout" in str(e.value.next)


def test_an_accepted_patch_is_named_by_its_hypothesis_and_its_file() -> None:
    made = ((3, parse("--set --lr=0.2")), (5, parse("--patch hypotheses/patches/x.patch")))
    stack = [AcceptedChange(number, change, "p.md", 1) for number, change in made]
    assert _accepted_as(stack, 0) == "hypothesis 5, hypotheses/patches/x.patch"


def test_two_campaigns_of_one_repository_keep_their_commits_apart(tmp_path: Path) -> None:
    places = [(tmp_path, "a"), (tmp_path / "x", "a"), (tmp_path / "y", "a"), (tmp_path, "b")]
    at = snapshot.Address(tmp_path, tmp_path / ".git", tmp_path / ".git")
    assert len({refs(root, name, at) for root, name in places}) == 4
