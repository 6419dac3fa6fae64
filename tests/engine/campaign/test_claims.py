"""Claims, sessions and changes of code, as their callers see them: through the command line."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import (
    GPUDEBUG,
    SPEED,
    Campaign,
    contents,
    copied,
    environment,
    git,
    make_replay_campaign,
    record,
)
from tests.support.repositories import left_over

TITLE = "The loader reads one file at a time"


def session(name: str) -> dict[str, Any]:
    return {"env": {"GPUDEBUG_SESSION": name}}


@pytest.fixture(scope="module")
def original_code(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    folder = tmp_path_factory.mktemp("code")
    recordings = folder / "recordings"
    record(recordings, "0001-baseline-workload", util=20, rate=10)
    record(recordings, "0002-h1", util=60, rate=30)
    record(recordings, "0003-h2", util=20, rate=10)
    record(recordings, "0004-h3", util=20, rate=10)
    made = make_replay_campaign(folder / "repo", recordings, files={"data.py": "READERS = 1\n"})
    made.json("next")
    made.propose("--code", TITLE)
    return made


@pytest.fixture
def code(original_code: Campaign, tmp_path: Path) -> Campaign:
    """A campaign with its baseline and a hypothesis whose change is still to be written."""
    return copied(original_code, tmp_path / "code")


def begin(campaign: Campaign, name: str = "a") -> Path:
    answer = campaign.json("next", status=5, **session(name))
    assert (answer["action"], answer["hypothesis"]) == ("implement", 1)
    return Path(answer["worktree"])


def test_code_becomes_a_patch_that_is_tested_and_reviewed(code: Campaign) -> None:
    (code.folder / "notes.txt").write_text("mine\n")
    (code.folder / "data.py").write_text("READERS = 1\n# a person's edit\n")
    code.json("next")  # a person's edit is the base from now on
    before = contents(code.folder)
    worktree = begin(code)
    assert worktree.is_relative_to(code.folder / "runs")
    assert (worktree / "data.py").read_text() == "READERS = 1\n# a person's edit\n"
    assert "TESTING - session a, since" in code.text
    (worktree / "data.py").write_text("READERS = 8\n")
    (worktree / "new.py").write_text("x = 1\n")
    answer = code.json("next", **session("a"))
    assert (answer["action"], answer["hypothesis"], answer["verdict"]) == ("tested", 1, "VALIDATED")
    change = next((code.folder / "hypotheses" / "patches").iterdir())
    assert change.name == "h1-the-loader-reads-one-file-at-a-time.patch"
    assert f"--patch hypotheses/patches/{change.name}" in code.text
    run = code.folder / "runs" / code.json("show", "1")["runs"][0]
    assert (run / "change.patch").read_bytes() == change.read_bytes()
    assert json.loads((run / "run.json").read_text())["session"] == "a"
    assert left_over(code.folder) == []
    assert not list((code.folder / "runs" / "worktrees").rglob("data.py"))
    after = contents(code.folder)
    touched = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert {name.split("/")[0] for name in touched if not name.startswith(".git")} <= {
        "runs",
        "progress",
        "hypotheses",
    }
    assert {name for name in touched if name.startswith(".git/") and "refs/gpudebug" not in name} == set()
    git(code.folder, "checkout", "--quiet", "--", "data.py")
    git(code.folder, "apply", "--check", "--reverse", "--exclude=*", str(change))
    assert code.json("verify")["ok"] is True


def test_a_session_has_one_hypothesis(code: Campaign) -> None:
    (begin(code) / "data.py").write_text("READERS = 8\n")
    code.json("next", **session("a"))
    code.propose("--set --lr=0.2", "Another cause")
    for _ in range(3):
        answer = code.json("next", status=7, **session("a"))
        assert (answer["action"], answer["verdict"]) == ("stop", "VALIDATED")
        assert answer["why"].startswith(
            "session a has had its hypothesis, stop here; hypothesis 1 is VALIDATED"
        )
    assert code.json("next", **session("b"))["hypothesis"] == 2


def test_a_claim_is_one_sessions(code: Campaign) -> None:
    worktree = begin(code)
    held = code.json("status")["hypotheses"][0]
    assert (held["status"], held["claim"]["session"]) == ("TESTING", "a")
    other = code.json("next", status=5, **session("b"))
    assert (other["action"], other["hypothesis"]) == ("propose", None)
    assert begin(code) == worktree
    refused = code.json("release", "1", status=6, **session("b"))["error"]
    assert "held by session a since" in refused["message"]
    released = code.json("release", "1", **session("a"))
    assert (released["action"], released["kept"]) == ("released", None)
    assert code.statuses() == ["UNTESTED"]
    assert left_over(code.folder) == []


def test_released_work_is_kept_as_a_patch(code: Campaign) -> None:
    (begin(code) / "data.py").write_text("READERS = 2\n")
    kept = code.json("release", "1", **session("a"))["kept"]
    assert "+READERS = 2" in (code.folder / kept).read_text()
    assert not (begin(code, "b") / "data.py").read_text().startswith("READERS = 2")


def test_work_with_a_secret_in_it_stays_where_it_is(code: Campaign) -> None:
    worktree = begin(code)
    (worktree / "data.py").write_text('READERS = 8\nPASSWORD = "correct-horse"\n')
    refused = code.json("next", status=1, **session("a"))["error"]
    assert "holds a secret" in refused["message"] and "correct-horse" not in str(refused)
    answer = code.json("release", "1", **session("a"))
    assert Path(answer["kept"]) == worktree and "it stays in" in answer["why"]
    assert "- **Status**: UNTESTED" in code.text
    assert not (code.folder / "hypotheses" / "patches").exists()
    # Whoever takes it over finds it there; also the end of the campaign leaves it.
    assert begin(code, "b") == worktree
    code.json("release", "1", **session("b"))
    code.config.write_text(code.config.read_text() + "budget: {hypotheses: 1}\n")
    code.pin()
    code.propose("--set --lr=0.2")
    assert code.json("next")["hypothesis"] == 2
    assert code.json("next", status=4)["action"] == "stop"
    assert "correct-horse" in (worktree / "data.py").read_text()


def test_an_edit_of_the_checkout_is_no_base_of_a_session(code: Campaign) -> None:
    worktree = begin(code)
    (code.folder / "data.py").write_text("READERS = 8\n")
    answer = code.json("next", status=5, **session("a"))
    assert answer["action"] == "implement"
    assert "files changed in the checkout, which is not measured" in answer["brief"]
    (worktree / "data.py").write_text("READERS = 8\n")
    tested = code.json("next", **session("a"))
    assert tested["verdict"] == "VALIDATED"
    assert "tree changed" in code.json("status")["baselines"]["workload"]["why"]


def test_a_dead_claim_is_taken_over_with_its_work(code: Campaign) -> None:
    worktree = begin(code)
    (worktree / "data.py").write_text("READERS = 8\n")
    lease = code.folder / "runs" / ".leases" / "test" / "h1.json"
    said = json.loads(lease.read_text())
    lease.write_text(
        json.dumps(said | {"boottime_s": said["boottime_s"] - 3700, "wall_s": said["wall_s"] + 9e6})
    )
    recovered = code.json("next", **session("b"))
    assert (recovered["action"], recovered["hypothesis"]) == ("recovered", 1)
    assert begin(code, "b") == worktree
    assert (worktree / "data.py").read_text() == "READERS = 8\n"
    assert code.json("next", **session("b"))["verdict"] == "VALIDATED"


@pytest.mark.parametrize("words", [("--json",), ()], ids=["json", "text"])
def test_a_late_result_is_kept_and_is_no_verdict(code: Campaign, words: tuple[str, ...]) -> None:
    (begin(code) / "data.py").write_text("READERS = 8\n")
    process = code.start("next", *words, env={"GPUDEBUG_SESSION": "a"})
    while not list((code.folder / "runs").glob("*-h1")):
        assert process.poll() is None
    code.progress.write_text(code.text.replace("session a, since 2", "session b, since 3"))
    out, _ = process.communicate(timeout=60)
    if words:
        answer = json.loads(out)
        assert (answer["verdict"], answer["late"]) == (None, True)
    else:
        assert b"\nNo verdict: not recorded: the claim on hypothesis 1 was released or taken over" in out
    assert len(list((code.folder / "runs").glob("*/late.json"))) == 1
    assert list((code.folder / "runs").glob("*/verdict.json")) == []
    assert "TESTING - session b" in code.text
    assert code.json("next", status=7, **session("a"))["why"].endswith("was too late to be a verdict")


def test_a_worktree_deleted_by_hand_is_made_again(code: Campaign) -> None:
    worktree = begin(code)
    shutil.rmtree(worktree)
    again = begin(code)
    assert (again / "data.py").read_text() == "READERS = 1\n"
    (again / "data.py").write_text("READERS = 8\n")
    assert code.json("next", **session("a"))["verdict"] == "VALIDATED"


def test_a_base_that_was_garbage_collected_is_made_again(code: Campaign) -> None:
    for ref in git(code.folder, "for-each-ref", "--format=%(refname)", "refs/gpudebug").split():
        git(code.folder, "update-ref", "-d", ref)
    git(code.folder, "gc", "--quiet", "--prune=now")
    (begin(code) / "data.py").write_text("READERS = 8\n")
    assert code.json("next", **session("a"))["verdict"] == "VALIDATED"


@pytest.mark.parametrize(
    ("path", "content", "said"),
    [
        ("gpudebug.yaml", "campaign: other\n", "gpudebug.yaml"),
        ("progress/test.md", "# other\n", "progress/test.md"),
        ("link", None, "link"),
    ],
)
def test_a_change_of_what_is_not_the_agents_is_refused(
    code: Campaign, path: str, content: str | None, said: str
) -> None:
    worktree = begin(code)
    if content is None:
        os.symlink("/etc/passwd", worktree / path)
    else:
        (worktree / path).parent.mkdir(exist_ok=True)
        (worktree / path).write_text(content)
    refused = code.json("next", status=1, **session("a"))["error"]
    assert said in refused["message"]
    assert code.json("status")["hypotheses"][0]["status"] == "TESTING"


def test_gpudebug_called_inside_a_worktree_finds_its_campaign(code: Campaign) -> None:
    worktree = begin(code)
    (worktree / "data.py").write_text("READERS = 8\n")
    inside = Campaign(worktree)
    assert inside.json("next", **session("a"))["verdict"] == "VALIDATED"
    assert "VALIDATED" in code.text
    assert not worktree.exists()


def test_an_agent_that_stays_in_its_worktree_is_still_answered(code: Campaign) -> None:
    worktree = begin(code)
    (worktree / "data.py").write_text("READERS = 8\n")
    words = shlex.join([*GPUDEBUG, "next"])
    asked = f"cd {shlex.quote(str(worktree))} && {words} && {words}; echo exit status $?"
    env = environment({"GPUDEBUG_SESSION": "a"})
    done = subprocess.run(["sh", "-c", asked], env=env, capture_output=True, text=True, check=False)
    assert "Hypothesis 1" in done.stdout
    assert "has had its hypothesis" in done.stdout
    assert done.stdout.endswith("exit status 7\n")


def test_the_end_of_a_campaign_leaves_nothing_in_git(code: Campaign) -> None:
    code.config.write_text(code.config.read_text() + "target: 50\n")
    code.pin()
    (begin(code) / "data.py").write_text("READERS = 8\n")
    code.json("next", **session("a"))
    assert code.json("next", status=4)["action"] == "stop"
    assert git(code.folder, "for-each-ref", "refs/gpudebug") == ""


def test_what_was_changed_in_a_linked_folder_is_named(code: Campaign) -> None:
    (code.folder / ".gitignore").write_text("runs/\ncache/\n")
    (code.folder / "cache").mkdir()
    (code.folder / "cache" / "index").write_text("1\n")
    code.config.write_text(code.config.read_text() + "worktree: {link: [cache]}\n")
    code.pin()
    worktree = begin(code)
    (worktree / "data.py").write_text("READERS = 8\n")
    (worktree / "cache" / "index").write_text("2 3\n")
    answer = code.json("next", **session("a"))
    assert answer["verdict"] == "VALIDATED"
    named = [n for n in answer["notes"] if n.startswith("changed in a linked folder")]
    assert named == ["changed in a linked folder, and no part of the change: cache/index"]
    assert (code.folder / "cache" / "index").read_text() == "2 3\n"
    assert "cache" not in next((code.folder / "hypotheses" / "patches").iterdir()).read_text()


def test_code_that_was_tested_under_another_name_is_not_tested_again(code: Campaign) -> None:
    (begin(code) / "data.py").write_text("READERS = 8\n")
    code.json("next", **session("a"))
    code.propose("--code", "Something else entirely")
    worktree = Path(code.json("next", status=5, **session("b"))["worktree"])
    (worktree / "data.py").write_text("READERS  =  8  # eight of them\n")
    refused = code.json("next", status=1, **session("b"))["error"]
    assert refused["message"].startswith("the change of hypothesis 2 is that of hypothesis 1, VALIDATED")
    (worktree / "data.py").write_text("READERS = 9\n")
    assert code.json("next", **session("b"))["action"] == "tested"


def test_a_comment_is_no_change(code: Campaign) -> None:
    (begin(code) / "data.py").write_text("READERS = 1  # one\n")
    code.propose("--set --lr=0.2", "Another cause")
    refused = code.json("next", status=1, **session("a"))["error"]
    assert "nothing but comments" in refused["message"]
    assert code.statuses() == ["TESTING", "UNTESTED"]


def test_a_claim_to_implement_is_given_back_while_another_run_goes_on(code: Campaign) -> None:
    begin(code)
    code.config.write_text(code.config.read_text().replace(f"@{SPEED}x", "@20x"))
    code.pin()
    assert code.json("next", "--detach", **session("b"))["action"] == "running"
    code.run("release", "1").expect(0)
    assert code.statuses() == ["UNTESTED"]
    assert code.json("wait", **session("b"))["action"] == "recorded_baseline"


@pytest.mark.parametrize("gone", [False, True])
def test_what_was_written_is_kept_where_somebody_else_ends_the_hypothesis(code: Campaign, gone: bool) -> None:
    (begin(code) / "data.py").write_text("READERS = 8\n")
    head, _, entry = code.text.partition("### Hypothesis 1")
    code.progress.write_text(
        head if gone else head + "### Hypothesis 1" + re.sub("TESTING.*", "REJECTED", entry)
    )
    assert code.json("next", status=5)["action"] == "propose"
    (patch,) = (code.folder / "hypotheses" / "patches").iterdir()
    assert "+READERS = 8" in patch.read_text()
    assert left_over(code.folder) == []


def test_a_change_that_the_new_base_does_not_take_is_given_back(code: Campaign) -> None:
    (begin(code) / "data.py").write_text("READERS = 8\n")
    (code.folder / "data.py").write_text("READERS = 2\n")
    code.json("baseline")
    error = code.json("next", status=1, **session("a"))["error"]
    assert "does not apply to data.py" in error["message"]
    assert error["next"].startswith("gpudebug release 1 ")
    code.run("release", "1", **session("a")).expect(0)
    (begin(code) / "data.py").write_text("READERS = 9\n")
    assert code.json("next", **session("a"))["verdict"] == "VALIDATED"


def test_what_cannot_be_tested_keeps_nobody_from_testing_another(code: Campaign) -> None:
    folder = code.folder / "hypotheses" / "patches"
    folder.mkdir(parents=True)
    patch = "--- a/data.py\n+++ b/data.py\n@@ -1 +1 @@\n-READERS = 1\n+READERS = 4\n"
    (folder / "four.patch").write_text(patch)
    code.propose("--patch hypotheses/patches/four.patch", "Four readers")
    (folder / "four.patch").write_text(patch.replace("READERS = 1", "READERS = 3"))
    refused = code.json("next", status=1)["error"]
    assert "does not apply" in refused["message"]
    code.propose("--set --lr=0.2", "Another cause")
    answer = code.json("next")
    assert (answer["hypothesis"], len(answer["unready"])) == (3, 1)
    assert "does not apply" in answer["unready"][0]
    (folder / "four.patch").unlink()
    assert "the patch is missing" in code.json("next", status=1)["error"]["message"]
