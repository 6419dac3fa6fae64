"""Where git works is found once and named from then on; folders on the way are opened without links."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.support.campaigns import git, make_repository

from gpudebug.core.errors import GitError, StoreError
from gpudebug.edges.git import grounds
from gpudebug.edges.git.address import Address, find, find_at, looked
from gpudebug.edges.git.checkout import differs, identify


@pytest.fixture
def top(hostile: Path) -> Path:
    return make_repository(hostile / "repo", {"train.py": "1\n", "sub/x.py": "2\n"})


def test_it_is_found_from_any_folder_and_named_to_git(top: Path, tmp_path: Path) -> None:
    found, commit = find(top / "sub")
    assert found == Address(top, top / ".git", top / ".git")
    assert commit == git(top, "rev-parse", "HEAD").strip()
    assert looked(found, "rev-parse", "--show-toplevel", "--show-prefix") == os.fsencode(top) + b"\n\n"
    second = tmp_path / "second"
    git(top, "worktree", "add", "--quiet", "--detach", str(second))
    assert find(second).at == Address(second, top / ".git" / "worktrees" / "second", top / ".git")


def damaged(tmp_path: Path, command: str) -> GitError:
    top = make_repository(tmp_path / "repo", {"train.py": "1\n", "sub/x.py": "2\n"})
    subprocess.run(command, shell=True, cwd=top, check=True)
    with pytest.raises(GitError) as caught:
        identify(top / "sub" if "sub" in command else top)
    return caught.value


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (": > .git/HEAD", "does not see a repository"),
        ("echo junk > .git/HEAD", "does not see a repository"),
        ("echo junk > .git/HEAD; cd sub", "does not see a repository"),
        (": > .git/index", "index file smaller"),
        ("head -c 200 /dev/urandom > .git/index", "bad signature"),
    ],
)
def test_what_is_said_of_a_damaged_repository_mends_it(tmp_path: Path, damage: str, says: str) -> None:
    error = damaged(tmp_path, damage)
    assert says in str(error)
    top = tmp_path / "repo"
    subprocess.run((error.next or "").partition(": ")[2], shell=True, cwd=top, check=True)
    assert git(top, "status", "--porcelain") == ""
    assert identify(top).commit == git(top, "rev-parse", "main").strip()


def test_a_git_folder_without_its_objects_is_not_mended_by_git_init(tmp_path: Path) -> None:
    error = damaged(tmp_path, "rm -rf .git/objects")
    assert error.file == str(tmp_path / "repo" / ".git")
    assert "move" in (error.next or "") and "&&" not in (error.next or "")


def test_a_work_tree_that_is_set_elsewhere_is_named(tmp_path: Path) -> None:
    error = damaged(tmp_path, "git config core.worktree /usr")
    assert "core.worktree is set to /usr" in error.message
    subprocess.run((error.next or "").partition(",")[0], shell=True, cwd=tmp_path / "repo", check=True)
    assert identify(tmp_path / "repo").commit


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a repository of another user, which only root may")
def test_a_repository_of_another_owner_is_named_with_what_trusts_it(tmp_path: Path) -> None:
    error = damaged(tmp_path, "chown 65534 . .git; cd sub")
    assert error.next == f"git config --global --add safe.directory {tmp_path / 'repo'}"


def test_looking_leaves_the_index_of_a_worktree_as_it_is(tmp_path: Path) -> None:
    """Whose times are older than its files': `git diff` would write them anew."""
    top = make_repository(tmp_path / "repo", {"train.py": "1\n"})
    index = top / ".git" / "index"
    os.utime(top / "train.py", (1, 1))
    before = index.read_bytes(), index.stat().st_ino
    assert not differs(find(top).at, "HEAD")
    assert (index.read_bytes(), index.stat().st_ino) == before
    for change in (
        "chmod +x train.py",
        "chmod -x train.py; echo 2 > train.py",
        "git checkout -q . ; touch new",
    ):
        subprocess.run(change, shell=True, cwd=top, check=True)
        assert differs(find(top).at, "HEAD")


def test_a_repository_around_it_is_not_taken_for_it(tmp_path: Path) -> None:
    make_repository(tmp_path / "outer", {"a": "b"})
    inner = make_repository(tmp_path / "outer" / "inner", {"c": "d"})
    assert find_at(inner).at.top == inner
    (inner / ".git").rename(inner / "gone")
    with pytest.raises(GitError, match="another repository") as caught:
        find_at(inner)
    assert caught.value.next


@pytest.mark.parametrize("configured", [True, False])
def test_a_bare_repository_in_a_folder_is_data(tmp_path: Path, configured: bool) -> None:
    outer = make_repository(tmp_path / "outer", {"a": "b"})
    git(outer, "init", "--quiet", "--bare", "inner")
    if configured:
        git(outer / "inner", "config", "core.bare", "false")
        git(outer / "inner", "config", "core.worktree", str(outer / "inner"))
    with pytest.raises(GitError, match="bare"):
        find(outer / "inner")


def test_git_works_in_the_open_folder_whatever_its_path_becomes(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "repo", {"train.py": "1\n"})
    descriptor = os.open(top, os.O_RDONLY)
    try:
        moved = tmp_path / "moved"
        top.rename(moved)
        top.mkdir()
        at = Address(top, moved / ".git", moved / ".git", descriptor)
        assert looked(at, "rev-parse", "--show-toplevel") == os.fsencode(moved) + b"\n"
        assert looked(at, "ls-files", "--modified", "--deleted") == b""
    finally:
        os.close(descriptor)


def test_a_submodule_whose_git_folder_is_not_the_repositorys_is_not_asked(tmp_path: Path) -> None:
    lib = make_repository(tmp_path / "lib", {"x.py": "1\n"})
    top = make_repository(tmp_path / "repo", {"train.py": "1\n"})
    git(top, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(lib), "lib")
    git(top, "commit", "--quiet", "--message", "x")
    before = identify(top).tree
    fake, ran = make_repository(tmp_path / "fake", {"x.py": "1\n"}), tmp_path / "ran"
    git(fake, "config", "filter.evil.clean", f"touch {ran}; cat")
    (fake / ".git" / "info" / "attributes").write_text("* filter=evil\n")
    genuine = (top / "lib" / ".git").read_text()
    (top / "lib" / ".git").write_text(f"gitdir: {fake / '.git'}\n")
    (top / "lib" / "x.py").write_text("2\n")
    with pytest.raises(GitError, match="not part of the repository") as caught:
        identify(top)
    assert "absorbgitdirs" in (caught.value.next or "")
    assert not ran.exists()
    (top / "lib" / ".git").write_text(genuine)
    (top / "lib" / "x.py").write_text("1\n")
    assert identify(top).tree == before


def test_a_folder_is_opened_only_where_no_link_leads(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "runs").symlink_to("elsewhere")
    with pytest.raises(StoreError, match="link"), grounds.folder_of(tmp_path, tmp_path / "runs" / "x" / "h1"):
        pass
    with (
        pytest.raises(StoreError, match="link"),
        grounds.folder_of(tmp_path, tmp_path / "runs" / "x" / "h1", make=True),
    ):
        pass
    with pytest.raises(GitError, match="outside"), grounds.folder_of(tmp_path / "runs", tmp_path / "h1"):
        pass
    assert os.listdir(tmp_path / "elsewhere") == []


def test_a_file_of_its_own_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = os.write
    monkeypatch.setattr("os.write", lambda descriptor, data: short(descriptor, data[:3]))
    with grounds.private(tmp_path, "x") as folder:
        grounds.replace_file(folder, "a", b"one and two")
        assert grounds.read_file(folder, "a") == b"one and two"
        grounds.replace_file(folder, "a", b"three")
        assert grounds.read_file(folder, "a") == b"three"
        assert grounds.read_file(folder, "b") is None
    assert os.listdir(tmp_path / "gpudebug" / "x") == ["a"]
