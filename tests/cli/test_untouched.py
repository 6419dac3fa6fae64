"""Bad input around agents' work: one clear line, and tree, HEAD, index, refs and stash stay."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.campaigns import Campaign, copied, git, make_replay_campaign, record
from tests.support.repositories import users

PATCH = "hypotheses/patches/x.patch"
NEW = "diff --git a/{0} b/{0}\nnew file mode {1}\n--- /dev/null\n+++ b/{0}\n@@ -0,0 +1 @@\n+{2}\n"
AGENT = {"GPUDEBUG_SESSION": "agent-1"}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """A baseline, code to be written, and a checkout as dirty as they come."""
    folder = tmp_path_factory.mktemp("original")
    record(folder / "recordings", "0001-baseline-workload", util=20, rate=10)
    record(folder / "recordings", "0002-h1", util=60, rate=30)
    files = {"data.py": "READERS = 1\n", "other.py": "x = 1\n"}
    made = make_replay_campaign(folder / "repo", folder / "recordings", files=files)
    (made.folder / "other.py").write_text("x = 2\n")
    git(made.folder, "stash", "--quiet")
    (made.folder / "other.py").write_text("x = 3\n")
    git(made.folder, "add", "other.py")
    (made.folder / "other.py").write_text("x = 4\n")
    (made.folder / "notes.txt").write_text("mine\n")
    made.json("next")
    made.propose("--code", "The loader reads one file at a time")
    (made.folder / PATCH).parent.mkdir(parents=True)
    return made


@pytest.fixture
def dirty(original: Campaign, tmp_path: Path) -> Iterator[Campaign]:
    """The campaign; whatever the test does through gpudebug leaves all that is the user's as it was."""
    campaign = copied(original, tmp_path / "repo")
    git(campaign.folder, "status")
    yield campaign


def mine(campaign: Campaign) -> dict[str, object]:
    """All that is the user's, but for the progress file, which commands are there to write."""
    return {k: v for k, v in users(campaign.folder).items() if not k.startswith(("progress", "hypotheses"))}


def refused(campaign: Campaign, *words: str, says: tuple[str, ...]) -> None:
    """One clear line; nothing of the user's is different."""
    before, text = mine(campaign), campaign.text
    done = campaign.run(*words, env=AGENT).expect(1)
    (line,) = done.err.splitlines()
    assert done.out == "" and line.startswith("gpudebug: ") and "; next: " in line
    for said in says:
        assert said in line
    assert (mine(campaign), campaign.text) == (before, text)


def begin(campaign: Campaign) -> Path:
    return Path(campaign.json("next", status=5, env=AGENT)["worktree"])


PATCHES = {
    "git's own": (NEW.format(".git/hooks/post-checkout", "100755", "touch pwned"), "is git's own"),
    "absolute": ("--- /dev/null\n+++ /etc/cron.d/x\n@@ -0,0 +1 @@\n+x\n", "is an absolute path"),
    "a link out": (NEW.format("x", "120000", "../../etc/passwd"), "leads out of the tree"),
}


@pytest.mark.parametrize(("text", "said"), PATCHES.values(), ids=PATCHES)
def test_a_patch_that_leaves_the_tree(dirty: Campaign, text: str, said: str) -> None:
    (dirty.folder / PATCH).write_text(text)
    refused(dirty, "propose", "--title", "A patch", "--patch", PATCH, says=(said, f"{PATCH}:"))
    # Written into the progress file by hand it is refused before it runs.
    dirty.progress.write_text(dirty.text.replace("--code", f"--patch {PATCH}"))
    refused(dirty, "next", says=(said, PATCH))


def link_out(worktree: Path) -> None:
    os.symlink("/etc", worktree / "data")
    (worktree / "data.py").write_text("READERS = 8\n")


def link_over(worktree: Path) -> None:
    (worktree / "data.py").unlink()
    (worktree / "data.py").symlink_to("../../../../../outside.py")


def module(worktree: Path) -> None:
    (worktree / ".gitmodules").write_text('[submodule "x"]\n\tpath = x\n\turl = /x\n')


WRITTEN = {
    "a link out": (link_out, "leads out of the tree"),
    "a link in place of a file": (link_over, "leads out of the tree"),
    "submodules": (module, ".gitmodules"),
}


@pytest.mark.parametrize(("write", "said"), WRITTEN.values(), ids=WRITTEN)
def test_a_change_in_a_worktree_that_leaves_the_tree(
    dirty: Campaign, write: Callable[[Path], None], said: str
) -> None:
    write(begin(dirty))
    refused(dirty, "next", says=(said,))
    assert not list((dirty.folder / PATCH).parent.iterdir())


@pytest.mark.parametrize(
    "led",
    ["{0}/.git", pytest.param("{0}/../elsewhere", marks=pytest.mark.slow)],
    ids=["the checkout's", "nowhere"],
)
def test_a_worktree_whose_git_leads_elsewhere(dirty: Campaign, led: str) -> None:
    worktree = begin(dirty)
    (worktree / "data.py").write_text("READERS = 8\n")
    shutil.rmtree(worktree / ".git")
    (worktree / ".git").write_text(f"gitdir: {led.format(dirty.folder)}\n")
    before = mine(dirty)
    assert dirty.json("status", env=AGENT)["next"]["hypothesis"] == 1
    # It is not read, only made again: what is in the worktree counts.
    answer = dirty.json("next", env=AGENT)
    assert answer["verdict"] == "VALIDATED"
    assert "h1: its own git repository was gone or led elsewhere; it is made again" in answer["notes"]
    assert mine(dirty) == before


@pytest.mark.slow
def test_a_worktree_or_a_base_that_is_gone_is_made_again(dirty: Campaign) -> None:
    before = mine(dirty)
    shutil.rmtree(begin(dirty))
    assert (begin(dirty) / "other.py").read_text() == "x = 4\n"
    shutil.rmtree(dirty.folder / "runs" / "worktrees")
    git(dirty.folder, "worktree", "prune")
    for ref in git(dirty.folder, "for-each-ref", "--format=%(refname)", "refs/gpudebug").split():
        git(dirty.folder, "update-ref", "-d", ref)
    git(dirty.folder, "-c", "gc.reflogExpire=never", "gc", "--quiet", "--prune=now")
    before = mine(dirty)
    (begin(dirty) / "data.py").write_text("READERS = 8\n")
    assert dirty.json("next", env=AGENT)["verdict"] == "VALIDATED"
    assert mine(dirty) == before


@pytest.mark.parametrize("ahead_s", [10 * 3600.0, -1e9], ids=["from the future", "1995"])
def test_a_clock_that_jumped_ends_a_claim_and_loses_no_work(dirty: Campaign, ahead_s: float) -> None:
    worktree, before = begin(dirty), mine(dirty)
    (worktree / "data.py").write_text("READERS = 8\n")
    lease = dirty.folder / "runs" / ".leases" / "test" / "h1.json"
    said = json.loads(lease.read_text())
    lease.write_text(json.dumps({**said, **{key: said[key] + ahead_s for key in ("boottime_s", "wall_s")}}))
    other = {"GPUDEBUG_SESSION": "agent-2"}
    assert dirty.json("next", env=other)["action"] == "recovered"
    answer = dirty.json("next", status=5, env=other)
    assert (answer["action"], answer["hypothesis"]) == ("implement", 1)
    assert (Path(answer["worktree"]) / "data.py").read_text() == "READERS = 8\n"
    assert "held by session agent-2" in dirty.run("release", "1", env=AGENT).expect(6).err
    assert mine(dirty) == before


def test_what_another_agent_holds_is_not_ones_own(dirty: Campaign) -> None:
    begin(dirty)
    other = {"GPUDEBUG_SESSION": "agent-2"}
    error = dirty.json("release", "1", status=6, env=other)["error"]
    assert "agent-1" in error["message"]
    assert dirty.json("next", status=5, env=other)["action"] == "propose"
    assert "TESTING - session agent-1" in dirty.text


def bare(campaign: Campaign) -> None:
    git(campaign.folder, "config", "core.bare", "true")


def unborn(campaign: Campaign) -> None:
    git(campaign.folder, "checkout", "--quiet", "--orphan", "empty")


def no_repository(campaign: Campaign) -> None:
    (campaign.folder / ".git").rename(campaign.folder.parent / "elsewhere")


PLACES = {"bare": (bare, "bare"), "unborn": (unborn, "no commit"), "none": (no_repository, "git repository")}


@pytest.mark.parametrize(("spoil", "said"), PLACES.values(), ids=PLACES)
def test_where_no_worktree_can_be(dirty: Campaign, spoil: Callable[[Campaign], None], said: str) -> None:
    spoil(dirty)
    refused(dirty, "next", says=(said,))


@pytest.mark.slow
def test_a_shallow_clone_and_a_repository_with_pointers_work(dirty: Campaign, tmp_path: Path) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "a" * 64 + "\nsize 12\n"
    (dirty.folder / "weights.bin").write_text(pointer)
    git(dirty.folder, "add", "weights.bin")
    git(dirty.folder, "commit", "--quiet", "--message", "Second")
    clone = Campaign(tmp_path / "clone")
    subprocess.run(
        ["git", "clone", "--quiet", "--depth=1", f"file://{dirty.folder}", clone.folder], check=True
    )
    clone.json("next")
    clone.propose("--code", "The loader reads one file at a time")
    before = mine(clone)
    (begin(clone) / "data.py").write_text("READERS = 8\n")
    assert clone.json("next", env=AGENT)["verdict"] == "VALIDATED"
    assert mine(clone) == before


def test_a_disk_that_fills_in_the_middle_of_a_snapshot(dirty: Campaign) -> None:
    """A limit on the size of files stands in for the disk: git may write no object of this size."""
    import resource

    (dirty.folder / "big.py").write_bytes(os.urandom(900_000))
    before, text = mine(dirty), dirty.text

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

    done = dirty.run("baseline", "workload", preexec_fn=limit)
    assert "Traceback" not in done.err
    assert "could not be kept" in done.out + done.err
    changed = {k for k, v in mine(dirty).items() if before.get(k) != v}
    assert not changed and text.split("### Baseline")[0] == dirty.text.split("### Baseline")[0]
