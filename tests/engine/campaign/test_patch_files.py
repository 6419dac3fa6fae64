"""Patches of people: what no trial could test is refused when it is proposed, in one line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.engine.conftest import LOADER, PATCHES
from tests.support.campaigns import Campaign, contents, git
from tests.support.patches import write_patch

from gpudebug.core.answers.hypotheses import ProposeAnswer
from gpudebug.core.change.intervention import parse
from gpudebug.core.errors import GpudebugError
from gpudebug.engine.campaign.load import load
from gpudebug.engine.campaign.patch_files import effects, read, refuse_unusable
from gpudebug.engine.hypotheses.propose import propose

HEAD = "diff --git a/{0} b/{0}\nnew file mode {1}\n--- /dev/null\n+++ b/{0}\n@@ -0,0 +1 @@\n+{2}\n"
REFUSED = {
    "empty": ("", "the patch is empty"),
    "prose": ("Make it faster.\n", "names no file"),
    "git's own": (HEAD.format(".git/hooks/post-checkout", "100755", "x"), "is git's own"),
    "absolute": ("--- /dev/null\n+++ /etc/cron.d/x\n@@ -0,0 +1 @@\n+x\n", "is an absolute path"),
    "upwards": (HEAD.format("../x", "100644", "x"), "leaves the tree"),
    "link": (HEAD.format("x", "120000", "/etc"), "symbolic link"),
    "config": (HEAD.format("gpudebug.yaml", "100644", "x"), "is gpudebug's own"),
    "verdict": (HEAD.format("progress/test.md", "100644", "x"), "is gpudebug's own"),
    "comment": (
        "--- a/loader.py\n+++ b/loader.py\n@@ -1 +1 @@\n-workers = 1\n+workers = 1  # one\n",
        "comments",
    ),
    "stale": (
        "--- a/loader.py\n+++ b/loader.py\n@@ -1 +1 @@\n-workers = 7\n+workers = 8\n",
        "does not apply",
    ),
    "secret": (
        HEAD.format("x", "100644", "k = 'ghp_abcdefghijklmnopqrstuvwxyz0123456789'"),
        "holds a secret",
    ),
}


@pytest.fixture
def patched(recorded: Campaign) -> Campaign:
    (recorded.folder / "loader.py").write_text(LOADER)
    git(recorded.folder, "add", "loader.py")
    git(recorded.folder, "commit", "-qm", "Load")
    (recorded.folder / PATCHES).mkdir(parents=True)
    return recorded


def propose_patch(campaign: Campaign, name: str) -> ProposeAnswer:
    said = {"title": f"By {name}", "description": "", "method": ""}
    return propose(campaign.folder, **said, change=parse(f"--patch {PATCHES}/{name}"))


def test_what_cannot_be_tested_is_refused(patched: Campaign) -> None:
    for name, (text, said) in REFUSED.items():
        (patched.folder / PATCHES / "x.patch").write_text(text)
        before = contents(patched.folder)
        with pytest.raises(GpudebugError, match=said) as caught:
            propose_patch(patched, "x.patch")
        assert "\n" not in str(caught.value) and caught.value.next, name
        assert contents(patched.folder) == before, name


def test_where_a_patch_may_lie(patched: Campaign, tmp_path: Path) -> None:
    folder = patched.folder / PATCHES
    write_patch(patched, f"{PATCHES}/good.patch", {"loader.py": LOADER.replace("1", "2")})
    (tmp_path / "outside.patch").write_bytes((folder / "good.patch").read_bytes())
    (folder / "out.patch").symlink_to(tmp_path / "outside.patch")
    (folder / "config.patch").symlink_to(patched.config)
    (folder / "in.patch").symlink_to("good.patch")
    (folder / "folder.patch").mkdir()
    os.mkfifo(folder / "pipe.patch")
    workspace = load(patched.folder).setup.workspace
    for name, said in {
        "none.patch": "the patch is missing",
        "out.patch": "leads out of",
        "config.patch": "leads out of",
        "folder.patch": "not a regular file",
        "pipe.patch": "not a regular file",
    }.items():
        with pytest.raises(GpudebugError, match=said):
            propose_patch(patched, name)
    assert read(workspace, f"{PATCHES}/in.patch") == (folder / "good.patch").read_bytes()
    assert propose_patch(patched, "in.patch").intervention == f"--patch {PATCHES}/in.patch"


def test_a_patch_is_tried_on_the_code_as_it_is_and_the_base_stays(patched: Campaign) -> None:
    (patched.folder / "loader.py").write_text(LOADER.replace("1", "3"))
    write_patch(patched, f"{PATCHES}/x.patch", {"loader.py": LOADER.replace("1", "4")})
    before = contents(patched.folder)
    with pytest.raises(GpudebugError, match=r"does not apply to loader\.py at line 1"):
        loaded = load(patched.folder)
        refuse_unusable(loaded.setup, loaded.code, f"{PATCHES}/x.patch")
    assert contents(patched.folder) == before


def test_patches_of_one_effect_are_alike(patched: Campaign) -> None:
    write_patch(patched, f"{PATCHES}/a.patch", {"loader.py": LOADER.replace("1", "2")})
    text = LOADER.replace("workers = 1", "workers  =  2  # more")
    write_patch(patched, f"{PATCHES}/b.patch", {"loader.py": text})
    write_patch(patched, f"{PATCHES}/c.patch", {"loader.py": LOADER.replace("1", "3")})
    (patched.folder / PATCHES / "d.patch").write_text("prose\n")
    written = [f"--patch {PATCHES}/{name}.patch" for name in "abcd"]
    found = effects(load(patched.folder).setup.workspace, [*written, "--set --a=1", None, "--nonsense"])
    a, b, c = (found[f"{PATCHES}/{name}.patch"] for name in "abc")
    assert a == b != c
    assert f"{PATCHES}/d.patch" not in found
    propose_patch(patched, "a.patch")
    with pytest.raises(GpudebugError, match="the same change is hypothesis 1 already"):
        propose_patch(patched, "b.patch")
    propose_patch(patched, "c.patch")
