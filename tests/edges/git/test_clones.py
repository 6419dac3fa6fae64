"""The repository that a worktree has of its own, and Git LFS: contents that are here are there too."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from tests.support.campaigns import commit_all, git, make_repository
from tests.support.repositories import REF, change_in, left_over, users

from gpudebug.core.errors import GitError
from gpudebug.edges import git as snapshot

# What git-lfs does with one file at a time: the store, the pointer, and never a download.
STAND_IN = """\
#!/bin/sh
store="$(git rev-parse --git-common-dir)/$(git config lfs.storage || echo lfs)"
mkdir -p "$store"
case "$1" in
clean)
    cat > "$store/new.$$"
    oid=$(sha256sum "$store/new.$$" | cut -d' ' -f1)
    size=$(stat -c %s "$store/new.$$")
    mv "$store/new.$$" "$store/$oid"
    printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:%s\\nsize %s\\n' "$oid" "$size" ;;
smudge)
    pointer=$(cat)
    oid=$(printf '%s' "$pointer" | sed -n 's/^oid sha256://p')
    if [ -n "$GIT_LFS_SKIP_SMUDGE" ]; then printf '%s\\n' "$pointer"; else cat "$store/$oid"; fi ;;
checkout)
    git ls-files ':(attr:filter=lfs)' | while read -r path; do
        oid=$(sed -n 's/^oid sha256://p' "$path")
        if [ -n "$oid" ] && [ -f "$store/$oid" ]; then cat "$store/$oid" > "$path"; fi
    done ;;
esac
"""
CONTENT = b"\0weights" * 1000


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two large files, of which one's content is not here."""
    program = tmp_path / "bin" / "git-lfs"
    program.parent.mkdir()
    program.write_text(STAND_IN)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    top = make_repository(tmp_path / "repo", {".gitattributes": "*.bin filter=lfs -text\n"})
    for name in ("clean", "smudge"):
        git(top, "config", f"filter.lfs.{name}", f"git-lfs {name} %f")
    git(top, "config", "filter.lfs.required", "true")
    (top / "here.bin").write_bytes(CONTENT)
    (top / "not here.bin").write_bytes(b"lost")
    commit_all(top)
    (top / ".git" / "lfs" / hashlib.sha256(b"lost").hexdigest()).unlink()
    (top / "not here.bin").write_text(git(top, "show", "HEAD:not here.bin"))
    return top


def place(top: Path) -> Path:
    return top / "runs" / "worktrees" / "campaign" / "h1"


def test_contents_come_along_and_what_is_not_here_is_named(top: Path) -> None:
    (top / "here.bin").write_bytes(CONTENT * 2)
    before = users(top)
    commit = snapshot.snapshot(top, ref=REF, label="l").commit
    assert git(top, "show", f"{commit}:here.bin").startswith("version https://git-lfs")
    made = snapshot.add_worktree(top, place(top), commit)
    assert (made.path / "here.bin").read_bytes() == CONTENT * 2
    assert (made.path / "not here.bin").read_bytes().startswith(b"version https://git-lfs")
    assert made.notes == ("git-lfs has only pointers of not here.bin: git lfs pull fetches the contents",)
    assert change_in(made.path, commit) == snapshot.WorktreeChange(b"", (), ())
    (made.path / "here.bin").write_bytes(CONTENT * 3)
    change = change_in(made.path, commit)
    assert change.files == ("here.bin",)
    assert len(change.patch) < 1000
    snapshot.remove_worktree(top, made.path)
    files = {k: v for k, v in users(top).items() if not k.startswith(".git/lfs/")}
    assert files == {k: v for k, v in before.items() if not k.startswith(".git/lfs/")}


def test_where_git_lfs_is_configured_and_not_installed(
    top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = snapshot.snapshot(top, ref=REF, label="l").commit
    (tmp_path / "bin" / "git-lfs").unlink()
    with pytest.raises(GitError, match="lfs") as caught:
        snapshot.add_worktree(top, place(top), commit)
    assert "install git-lfs" in str(caught.value.next)
    assert left_over(top) == []


def test_where_it_is_not_configured_pointers_are_files(top: Path) -> None:
    git(top, "config", "--remove-section", "filter.lfs")
    (top / "here.bin").write_text(git(top, "show", "HEAD:here.bin"))
    commit = snapshot.snapshot(top, ref=REF, label="l").commit
    made = snapshot.add_worktree(top, place(top), commit)
    assert made.notes == ()
    assert (made.path / "here.bin").read_bytes() == (top / "here.bin").read_bytes()
