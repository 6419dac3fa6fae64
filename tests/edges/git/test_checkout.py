"""Which code a run measured: what changes the digest, what does not, and that nothing is touched."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.campaigns import commit_all, contents, git, make_repository

from gpudebug.core.errors import GitError
from gpudebug.edges import git as snapshot

FILES = {
    "train.py": "print(1)\n",
    "pkg/model.py": "x = 1\n",
    "data/list.txt": "a\n",
    "progress/p.md": "# p\n",
    "gpudebug.yaml": "a: b\n",
    ".gitignore": "runs/\n*.log\n",
}


@pytest.fixture
def repo(hostile: Path) -> Path:
    return make_repository(hostile, FILES)


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repo", FILES)


def tree(folder: Path) -> str:
    excluded = [folder / name for name in ("gpudebug.yaml", "progress", "runs")]
    return snapshot.identify(folder, excluded).tree


def write(name: str, text: str = "changed\n") -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)

    return change


def executable(folder: Path) -> None:
    (folder / "train.py").chmod(0o755)


def linked(folder: Path) -> None:
    (folder / "train.py").unlink()
    (folder / "train.py").symlink_to("pkg/model.py")


def unwatched(mark: str) -> Callable[[Path], object]:
    """train.py changed after git was told not to look at it."""

    def change(folder: Path) -> None:
        git(folder, "update-index", mark, "train.py")
        (folder / "train.py").write_text("print(2)\n")

    return change


def set_back(folder: Path) -> None:
    """train.py changed with its old size and time, where git is told to believe these."""
    past = 1_700_000_000
    os.utime(folder / "train.py", (past, past))
    git(folder, "status")
    git(folder, "config", "core.trustctime", "false")
    git(folder, "config", "core.checkStat", "minimal")
    time.sleep(1.1)  # git compares whole seconds
    (folder / "train.py").write_text("print(2)\n")
    os.utime(folder / "train.py", (past, past))


CHANGES = {
    "a tracked file": write("train.py"),
    "a tracked file below": write("pkg/model.py"),
    "tracked data": write("data/list.txt"),
    "a module beside others": write("pkg/new.py"),
    "a module at the top": write("new.py"),
    "a file deleted": lambda f: (f / "pkg" / "model.py").unlink(),
    "a file became a link": linked,
    "a file assumed to be unchanged": unwatched("--assume-unchanged"),
    "a file of no work tree": unwatched("--skip-worktree"),
    "a file with its old time": set_back,
}
NO_CHANGES = {
    "outputs": write("outputs/a/train.py"),
    "an ignored file": write("train.log"),
    "a text file beside": write("notes.txt"),
    "the progress file": write("progress/p.md"),
    "the config": write("gpudebug.yaml"),
    "runs": write("runs/0001-x/run.json"),
    "a touch": lambda f: os.utime(f / "train.py", (1, 1)),
    "the same bytes": write("train.py", FILES["train.py"]),
}


def test_it_works_in_a_folder_of_any_name(repo: Path) -> None:
    assert snapshot.top_folder(repo / "pkg") == repo.resolve()
    before = tree(repo)
    write("train.py")(repo)
    assert tree(repo) != before
    assert snapshot.ignores(repo, "runs/0001-x/run.json")
    assert not snapshot.ignores(repo, "train.py")


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_of_the_code_is_seen(plain: Path, change: Callable[[Path], object]) -> None:
    before, files = tree(plain), None
    change(plain)
    files = contents(plain)
    after = tree(plain)
    assert after != before
    assert contents(plain) == files
    # Committing what was measured changes nothing of it.
    commit_all(plain)
    assert tree(plain) == after


@pytest.mark.parametrize("change", NO_CHANGES.values(), ids=NO_CHANGES)
def test_what_is_no_code_is_not(plain: Path, change: Callable[[Path], object]) -> None:
    before = tree(plain)
    change(plain)
    assert tree(plain) == before


@pytest.mark.parametrize("mark", ["--assume-unchanged", "--skip-worktree"])
def test_the_base_holds_what_git_was_told_not_to_look_at(plain: Path, mark: str) -> None:
    unwatched(mark)(plain)
    git(plain, "config", "core.checkStat", "minimal")
    base = snapshot.snapshot(plain, ref="refs/gpudebug/c/checkout", label="tree")
    assert git(plain, "show", f"{base.commit}:train.py") == "print(2)\n"
    assert git(plain, "ls-files", "-v", "train.py")[0] != "H"


def test_of_a_sparse_checkout_the_absent_files_count_as_the_index_has_them(plain: Path) -> None:
    before = tree(plain)
    git(plain, "sparse-checkout", "set", "pkg")
    assert not (plain / "data").exists()
    assert tree(plain) == before
    git(plain, "update-index", "--skip-worktree", "train.py")
    assert tree(plain) == before
    write("data/list.txt", "b\n")(plain)
    assert tree(plain) != before


def test_staged_or_not_the_files_count_as_they_lie_there(plain: Path) -> None:
    write("train.py", "print(2)\n")(plain)
    dirty = tree(plain)
    git(plain, "add", "train.py")
    assert tree(plain) == dirty
    write("train.py", FILES["train.py"])(plain)
    assert tree(plain) != dirty


def test_a_tracked_file_that_became_a_fifo_is_refused_at_once(plain: Path) -> None:
    (plain / "train.py").unlink()
    os.mkfifo(plain / "train.py")
    with pytest.raises(GitError, match="regular file"):
        tree(plain)


def test_no_repository_no_commit_bare_and_broken(tmp_path: Path, plain: Path) -> None:
    cases = {"none": "not in a git repository", "empty": "no commit", "bare": "bare", "broken": "."}
    for name, said in cases.items():
        folder = tmp_path / name
        folder.mkdir()
        if name != "none":
            git(folder, "init", "--quiet", *(["--bare"] if name == "bare" else []))
        if name == "broken":
            (folder / ".git" / "HEAD").write_text("nonsense")
        with pytest.raises(GitError, match=said) as caught:
            snapshot.identify(folder)
        assert caught.value.next


def test_variables_of_another_repository_are_ignored(
    plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_repository(tmp_path / "other", {"a": "b"})
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    assert snapshot.top_folder(plain) == plain.resolve()


def test_without_git_it_says_so(plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(GitError, match="git is not installed"):
        snapshot.identify(plain)


def test_hooks_and_monitors_of_the_repository_are_not_run(plain: Path) -> None:
    witness = plain / "ran"
    script = plain / ".git" / "monitor"
    script.write_text(f"#!/bin/sh\ntouch '{witness}'\n")
    script.chmod(0o755)
    git(plain, "config", "core.fsmonitor", str(script))
    tree(plain)
    assert not witness.exists()


def test_a_new_repository_has_everything_in_its_first_commit(tmp_path: Path) -> None:
    write("a.py")(tmp_path)
    snapshot.create(tmp_path, "Start")
    assert git(tmp_path, "log", "--format=%s") == "Start\n"
    assert git(tmp_path, "status", "--porcelain") == ""
    shutil.rmtree(tmp_path / ".git")


def test_a_commit_is_what_a_checkout_of_it_would_be(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "repo", {"a.py": "1\n", "b c/d.txt": "x", "run.sh": "#!/bin/sh\n"})
    (top / "run.sh").chmod(0o755)
    (top / "link").symlink_to("a.py")
    commit_all(top)
    before = snapshot.identify(top)
    (top / "a.py").write_text("2\n")
    commit_all(top)
    head = git(top, "rev-parse", "HEAD").strip()
    assert snapshot.base_of(top, head, patched=True) == before.entries
    assert snapshot.base_of(top, head, patched=False) == snapshot.identify(top).entries


@pytest.mark.parametrize("commit", ["", "0" * 40, "HEAD", "--help", "main"])
def test_what_is_no_commit_or_is_gone_is_unknown(tmp_path: Path, commit: str) -> None:
    top = make_repository(tmp_path / "repo", {"a.py": "1\n"})
    assert snapshot.base_of(top, commit, patched=True) is None
    assert snapshot.base_of(top, commit, patched=False) is None
    assert snapshot.base_of(top, git(top, "rev-parse", "HEAD").strip(), patched=True) is None


def test_a_tracked_file_that_became_a_huge_hole_is_named_and_not_read(plain: Path) -> None:
    os.truncate(plain / "data" / "list.txt", 1 << 40)
    with pytest.raises(GitError, match="a tracked file is huge by now") as told:
        tree(plain)
    assert told.value.file == str(plain / "data" / "list.txt")
