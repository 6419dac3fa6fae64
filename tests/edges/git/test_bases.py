"""Bases and patches on top of them: kept, found again, made the same, and no more than they say."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.campaigns import commit_all, environment, git, make_repository
from tests.support.repositories import REF, change_in, lies, repository, stored, touched, users

from gpudebug.core.change import patches
from gpudebug.core.errors import GitError, InterventionError
from gpudebug.edges import git as snapshot


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo")


def taken(top: Path, ref: str = REF) -> snapshot.Base:
    return snapshot.snapshot(top, ref=ref, label="a digest\nof two lines")


def diff(old: str, new: str, path: str = "train.py", context: str = " b = 2\n c = 3\n") -> bytes:
    """A change of a file's first of three lines."""
    return f"--- a/{path}\n+++ b/{path}\n@@ -1,3 +1,3 @@\n-{old}\n+{new}\n{context}".encode()


DIRTY = " b = 20\n c = 3\n"
LAST = b"--- a/train.py\n+++ b/train.py\n@@ -2,2 +2,2 @@\n b = 2\n-zz\n+y\n"
NEW = b"--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+x\n"
ONE_LINE = b"--- x\n+++ x\n@@ -1 +1 @@\n-1\n+2\n"


class TestStored:
    def test_it_is_found_with_all_that_was_said(self, top: Path) -> None:
        (top / os.fsdecode(b"\xff \xe9")).write_bytes(bytes(2**20 + 1))
        base = taken(top)
        assert base.tree == "a digest\nof two lines"
        found = stored(top, REF)
        assert found is not None
        assert (found.commit, found.left_out) == (base.commit, base.left_out)
        assert found.tree == "a digest of two lines"

    def test_collecting_garbage_does_not_lose_it(self, top: Path) -> None:
        base = taken(top)
        made = snapshot.with_patch(
            top, base.commit, diff("a = 1", "a = 7", context=DIRTY), ref=f"{REF}-1", label="l", file="p"
        )
        git(top, "reflog", "expire", "--expire=now", "--all")
        git(top, "gc", "--quiet", "--prune=now")
        assert stored(top, REF) is not None
        assert stored(top, f"{REF}-1") == made
        snapshot.forget(top, REF)
        git(top, "gc", "--quiet", "--prune=now")
        assert stored(top, REF) is None
        assert stored(top, f"{REF}-1") == made

    def test_where_it_or_a_part_of_it_is_gone_there_is_none(self, top: Path) -> None:
        assert stored(top, REF) is None
        base = taken(top)
        for name in ("new.py", "", "commit"):
            spec = base.commit if name == "commit" else f"{base.commit}:{name}"
            part = git(top, "rev-parse", spec).strip()
            file = top / ".git" / "objects" / part[:2] / part[2:]
            kept = file.read_bytes()
            file.unlink()
            assert stored(top, REF) is None
            assert taken(top) == base
            assert file.read_bytes() == kept

    def test_a_ref_that_is_none_of_ours_is_none(self, top: Path) -> None:
        git(top, "update-ref", REF, "HEAD")
        assert stored(top, REF) is None
        with pytest.raises(ValueError, match="refs/gpudebug"):
            snapshot.forget(top, "refs/heads/main")

    def test_the_same_tree_makes_the_same_commit(self, top: Path) -> None:
        first, second = taken(top), taken(top, f"{REF}2")
        assert first.commit == second.commit
        (top / "train.py").write_text("other\n")
        assert taken(top).commit != first.commit
        assert git(top, "rev-parse", f"{REF}^").strip() == git(top, "rev-parse", "HEAD").strip()

    def test_keep_puts_a_commit_under_a_ref(self, top: Path) -> None:
        base = taken(top)
        snapshot.keep(top, f"{REF}-kept", base.commit)
        snapshot.forget(top, REF)
        assert git(top, "for-each-ref", "--format=%(refname)", "refs/gpudebug").split() == [f"{REF}-kept"]


class TestForget:
    def test_only_what_is_below_goes(self, top: Path) -> None:
        for name in ("one/base", "one/h1", "one2/base"):
            taken(top, f"refs/gpudebug/{name}")
        before = users(top)
        snapshot.forget(top, "refs/gpudebug/one")
        snapshot.forget(top, "refs/gpudebug/none")
        left = git(top, "for-each-ref", "--format=%(refname)", "refs/gpudebug").split()
        assert left == ["refs/gpudebug/one2/base"]
        assert users(top) == before


class TestPatch:
    def test_it_is_committed_on_the_base(self, top: Path) -> None:
        base, before = taken(top), users(top)
        patch = diff("a = 1", "a = 7", context=DIRTY)
        made = snapshot.with_patch(top, base.commit, patch, label="l", file="p")
        assert git(top, "show", f"{made.commit}:train.py").startswith("a = 7\nb = 20\n")
        assert git(top, "rev-parse", f"{made.commit}^").strip() == base.commit
        assert users(top) == before
        assert snapshot.already_there(top, made.commit, patch)
        assert not snapshot.already_there(top, base.commit, patch)
        with pytest.raises(GitError, match="there already"):
            snapshot.with_patch(top, made.commit, patch, label="l", file="p")

    def test_how_many_of_a_stack_are_there(self, top: Path) -> None:
        base = taken(top)
        stack = [diff("a = 1", "a = 7", context=DIRTY), diff("a = 7", "a = 8", context=DIRTY)]
        first = snapshot.with_patch(top, base.commit, stack[0], label="l", file="p")
        both = snapshot.with_patch(top, first.commit, stack[1], label="l", file="p")
        found = [snapshot.first_there(top, made.commit, stack) for made in (base, first, both)]
        assert (found, snapshot.first_there(top, base.commit, [])) == ([0, 1, 2], 0)
        assert not snapshot.already_there(top, both.commit, stack[0])

    REFUSED = (
        (diff("a = 2", "a = 7"), "does not apply to train.py at line 1", 3),
        (diff("a = 1", "a = 7") + LAST, "does not apply to train.py at line 2", 10),
        (diff("a = 1", "a = 7", "nowhere.py"), "nowhere.py: does not exist in index", None),
        (diff("a = 1", "a = 1"), "changes nothing", None),
        (NEW, "new.py: already exists in index", None),
        (diff("a = 1", "a = 7").replace(b"-1,3", b"-1,9"), "ends within a hunk", 7),
        (b"prose\n", "is not a patch", None),
        (NEW.replace(b"new.py", b"../x"), "invalid path", None),
        (NEW.replace(b"new.py", b".git/hooks/x"), "invalid path", None),
        (
            b"diff --git a/s b/s\nnew file mode 120000\n--- /dev/null\n+++ b/s\n@@ -0,0 +1 @@\n+/etc\n",
            "leads out",
            None,
        ),
        (
            b"diff --git a/s b/s\nnew file mode 160000\n--- /dev/null\n+++ b/s\n"
            b"@@ -0,0 +1 @@\n+Subproject commit 1234567890123456789012345678901234567890\n",
            "is a submodule",
            None,
        ),
    )

    @pytest.mark.parametrize("patch, said, line", REFUSED)
    def test_one_that_does_not_apply_is_one_line(
        self, tmp_path: Path, patch: bytes, said: str, line: int | None
    ) -> None:
        top = make_repository(tmp_path / "repo", {"train.py": "a = 1\nb = 2\nc = 3\n", "new.py": "n\n"})
        commit = git(top, "rev-parse", "HEAD").strip()
        before = users(top)
        with pytest.raises((GitError, InterventionError), match=said) as caught:
            snapshot.with_patch(top, commit, patch, ref=REF, label="l", file="hypotheses/patches/p")
        assert (caught.value.file, caught.value.line) == ("hypotheses/patches/p", line)
        assert caught.value.next
        assert users(top) == before
        assert stored(top, REF) is None

    def test_a_file_that_no_header_names_is_refused(self, tmp_path: Path) -> None:
        """Git takes a name without a folder for a sign that no folder is to be stripped from the others."""
        top = make_repository(tmp_path / "repo", {"x": "1\n", "a/train.py": "1\n", "train.py": "1\n"})
        commit = git(top, "rev-parse", "HEAD").strip()
        patch = ONE_LINE + ONE_LINE.replace(b"x", b"a/train.py")
        with pytest.raises(InterventionError, match=r"a/train\.py.*no header"):
            snapshot.with_patch(top, commit, patch, label="l", file="p")

    def test_a_link_that_is_moved_is_looked_at_where_it_lands(self, tmp_path: Path) -> None:
        top = make_repository(tmp_path / "repo", {"a/x": "1\n"})
        (top / "a" / "link").symlink_to("../a/x")
        commit_all(top)
        text = b"diff --git a/a/link b/l\nsimilarity index 100%\nrename from a/link\nrename to l\n"
        commit = git(top, "rev-parse", "HEAD").strip()
        with pytest.raises(InterventionError, match="leads out"):
            snapshot.with_patch(top, commit, text, label="l", file="p")


def test_a_difference_applies_in_a_fresh_clone(tmp_path: Path) -> None:
    """Binary files, kinds, names of any bytes and line ends, through `git apply` with nothing of ours."""
    top = make_repository(
        tmp_path / "repo",
        {"bin": bytes(range(256)), "crlf.txt": b"a\r\nb\r\n", "no_end": b"x", "old name.py": "1\n" * 9},
    )
    (top / "link").symlink_to("bin")
    commit_all(top)
    git(tmp_path, "clone", "--quiet", str(top), "clone")
    (top / "bin").write_bytes(bytes(range(255, -1, -1)) * 3)
    (top / "crlf.txt").write_bytes(b"a\r\nc\n")
    (top / "no_end").write_bytes(b"y")
    (top / "old name.py").rename(top / "nä\tme.py")
    (top / "nä\tme.py").chmod(0o755)
    (top / "link").unlink()
    (top / "link").symlink_to("crlf.txt")
    (top / os.fsdecode(b"\xff.py")).write_bytes(b"\xff\n")
    (top / "empty").touch()
    base = taken(top)
    patch = snapshot.difference(top, "HEAD", base.commit)
    (tmp_path / "p").write_bytes(patch)
    subprocess.run(["git", "apply", "../p"], cwd=tmp_path / "clone", env=environment(), check=True)
    assert lies(tmp_path / "clone") == lies(top)
    assert snapshot.difference(top, base.commit, base.commit) == b""
    made = snapshot.with_patch(top, "HEAD", patch, label="l", file="p")
    assert snapshot.difference(top, made.commit, base.commit) == b""


@pytest.fixture
def commit(top: Path) -> str:
    return snapshot.snapshot(top, ref=REF, label="l").commit


@pytest.fixture
def worktree(top: Path, commit: str) -> Path:
    path = top / "runs" / "worktrees" / "campaign" / "h1"
    return snapshot.add_worktree(top, path, commit, links=[".venv"], checkout=top).path


def write(worktree: Path) -> None:
    (worktree / "train.py").write_text("a = 1\nb = 20\nc = 4\n")
    (worktree / "pkg" / "model.py").unlink()
    (worktree / "fresh.py").write_text("f = 1\n")


FILES = ("fresh.py", "pkg/model.py", "train.py")


def staged(worktree: Path) -> None:
    git(worktree, "add", "--all")


def committed(worktree: Path) -> None:
    commit_all(worktree, "Fix")
    (worktree / "train.py").write_text((worktree / "train.py").read_text())


def on_a_branch(worktree: Path) -> None:
    git(worktree, "checkout", "--quiet", "-b", "fix")
    commit_all(worktree)


def out_of_the_index(worktree: Path) -> None:
    git(worktree, "rm", "-r", "--quiet", "--cached", ".")


def without_index(worktree: Path) -> None:
    (worktree / ".git" / "index").unlink()


def broken_index(worktree: Path) -> None:
    (worktree / ".git" / "index").write_bytes(b"DIRC nonsense")


def link_replaced(worktree: Path) -> None:
    (worktree / ".venv").unlink()
    (worktree / ".venv").mkdir()
    (worktree / ".venv" / "x.py").write_text("x")


def test_its_own_repository_is_not_read(worktree: Path, commit: str, tmp_path: Path) -> None:
    """Written anew it could lead to the checkout's own index, or to a folder whose filters run programs."""
    shutil.rmtree(worktree / ".git")
    assert change_in(worktree, commit).files == ()
    (worktree / "train.py").write_text("changed\n")
    assert change_in(worktree, commit).files == ("train.py",)
    git(tmp_path, "init", "--quiet", "fake")
    git(tmp_path / "fake", "config", "filter.evil.clean", f"touch {tmp_path / 'ran'}; cat")
    (tmp_path / "fake" / ".git" / "info" / "attributes").write_text("* filter=evil\n")
    (worktree / ".git").write_text(f"gitdir: {tmp_path / 'fake' / '.git'}\n")
    assert change_in(worktree, commit).files == ("train.py",)
    assert touched(worktree)
    assert not (tmp_path / "ran").exists()


def test_without_its_record_nothing_is_told(worktree: Path, commit: str) -> None:
    shutil.rmtree(worktree.parents[3] / ".git" / "gpudebug")
    with pytest.raises(GitError, match="not a git worktree") as caught:
        change_in(worktree, commit)
    assert caught.value.next
    assert not touched(worktree)


@pytest.mark.parametrize(
    "then",
    [
        lambda worktree: None,
        staged,
        committed,
        on_a_branch,
        out_of_the_index,
        without_index,
        broken_index,
        link_replaced,
    ],
)
def test_the_files_count_as_they_lie(
    top: Path, worktree: Path, commit: str, then: Callable[[Path], None]
) -> None:
    write(worktree)
    then(worktree)
    before = users(worktree), lies(top)
    change = change_in(worktree, commit)
    assert (users(worktree), lies(top)) == before
    assert change.files == FILES
    assert [each.path for each in change.left_out] == ([".venv"] if then is link_replaced else [])
    assert patches.read(change.patch, "p").paths == FILES
    made = snapshot.with_patch(top, commit, change.patch, label="l", file="p")
    assert snapshot.difference(top, commit, made.commit) == change.patch
    other = snapshot.add_worktree(top, worktree.with_name("h1-trial"), made.commit).path
    expected = {k: v for k, v in lies(worktree).items() if not k.startswith(".venv")}
    assert lies(other) == expected


def test_nothing_changed_is_no_patch(worktree: Path, commit: str) -> None:
    os.utime(worktree / "train.py", (1, 1))
    (worktree / ".venv" / "bin" / "new").write_text("in the checkout, really")
    assert change_in(worktree, commit) == snapshot.WorktreeChange(b"", (), ())


def test_what_is_not_part_of_it_is_named(worktree: Path, commit: str) -> None:
    (worktree / "out.log").write_text("ignored")
    (worktree / "big.bin").write_bytes(bytes(2**20 + 1))
    (worktree / "hf_token").write_text("hf_x")
    (worktree / "pkg" / "__pycache__").mkdir()
    (worktree / "pkg" / "__pycache__" / "model.log").write_text("x")
    (worktree / ".pytest_cache").mkdir()
    (worktree / ".pytest_cache" / "x.log").write_text("x")
    change = change_in(worktree, commit)
    assert dict(change.left_out) == {
        "big.bin": "larger than 1 MB (1.0 MB)",
        "hf_token": "by its name it holds a secret",
        "out.log": "git ignores it",
    }
    assert change.files == ()


def test_against_another_base_it_is_the_whole_difference(top: Path, worktree: Path) -> None:
    """The worktree began at the base with the user's changes; against HEAD these are in it too."""
    change = change_in(worktree, git(top, "rev-parse", "HEAD").strip())
    assert change.files == ("new.py", "pkg/old.py", "pkg/staged.py", "train.py")


def test_a_copied_repository_minds_its_own_worktrees(top: Path, worktree: Path, commit: str) -> None:
    """git's files hold absolute paths: what is done in the copy must not reach into the original. What was
    copied is not the folder that gpudebug made: it stays, and the next worktree has another name."""
    copy = top.with_name("copy")
    shutil.copytree(top, copy, symlinks=True)
    path = copy / worktree.relative_to(top)
    (path / "train.py").write_text("in the copy\n")
    assert change_in(path, commit).files == ("train.py",)
    assert change_in(worktree, commit).files == ()
    told = snapshot.repair(copy, path.parent, written=lambda name: True)
    assert told == [
        f"h1: {path} is not the folder that gpudebug made (device, inode or birth differ): it stays"
    ]
    assert snapshot.repair(copy, path.parent, written=lambda name: True) == []
    made = snapshot.add_worktree(copy, path, commit)
    assert made.path == path.with_name("h1-2")
    snapshot.remove_worktree(copy, path)
    assert not made.path.exists()
    assert (path / "train.py").read_text() == "in the copy\n"
    assert (worktree / "train.py").exists()
    assert snapshot.repair(top, worktree.parent) == []
