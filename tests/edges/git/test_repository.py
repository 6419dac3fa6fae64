"""Git is run with nothing inherited and none of the user's programs; what fails is one line."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.campaigns import environment, git, make_repository
from tests.support.repositories import REF, address, change_in, repository, stored, users

from gpudebug.core.errors import GitError
from gpudebug.edges import git as snapshot
from gpudebug.edges.git import repository as module
from gpudebug.edges.git.address import Address, message_of
from gpudebug.edges.git.grounds import PRIVATE

HOOKS = """
    post-checkout pre-commit commit-msg post-commit reference-transaction post-index-change pre-auto-gc
    prepare-commit-msg applypatch-msg post-rewrite
"""
SETTINGS = {
    "user.useConfigOnly": "true",
    "commit.gpgSign": "true",
    "log.showSignature": "true",
    "color.ui": "always",
    "color.diff": "always",
    "diff.noprefix": "true",
    "diff.mnemonicPrefix": "true",
    "diff.renames": "copies",
    "diff.context": "0",
    "diff.suppressBlankEmpty": "true",
    "diff.ignoreSubmodules": "all",
    "diff.orderFile": "/nowhere",
    "diff.submodule": "log",
    "apply.whitespace": "fix",
    "apply.ignoreWhitespace": "change",
    "core.safecrlf": "true",
    "core.quotePath": "false",
    "core.untrackedCache": "true",
    "core.splitIndex": "true",
    "core.logAllRefUpdates": "always",
    "index.version": "4",
    "advice.detachedHead": "true",
    "worktree.guessRemote": "true",
    "checkout.guess": "false",
    "status.showUntrackedFiles": "no",
    "gc.auto": "1",
}


def at(top: Path) -> Address:
    return Address(top, top / ".git", top / ".git")


@pytest.fixture
def hostile_top(tmp_path: Path) -> tuple[Path, Path]:
    """A repository whose configuration runs a witness wherever it can; where the witness writes."""
    top = repository(tmp_path / "repo")
    witness = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho \"$0 $*\" >> '{witness}'\nexit 1\n")
    program.chmod(0o755)
    (top / ".git" / "hooks").mkdir(exist_ok=True)
    for hook in HOOKS.split():
        (top / ".git" / "hooks" / hook).write_text(program.read_text())
        (top / ".git" / "hooks" / hook).chmod(0o755)
    (top / ".gitattributes").write_text("*.py diff=witness\n")
    programs = ("core.fsmonitor", "diff.external", "gpg.program", "diff.witness.textconv", "core.pager")
    for name, value in {**SETTINGS, **dict.fromkeys(programs, str(program))}.items():
        git(top, "config", name, value)
    witness.unlink(missing_ok=True)
    return top, witness


def test_no_program_of_the_users_runs_and_no_setting_counts(
    hostile_top: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top, witness = hostile_top
    other = make_repository(tmp_path / "other", {"a": "b"})
    inherited = {
        "GIT_DIR": str(other / ".git"),
        "GIT_WORK_TREE": str(other),
        "GIT_INDEX_FILE": str(other / "index"),
        "GIT_OBJECT_DIRECTORY": str(other / "objects"),
        "GIT_EXTERNAL_DIFF": str(tmp_path / "program"),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.bare",
        "GIT_CONFIG_VALUE_0": "true",
        "GIT_PYTHON_TRACE": "full",
        "GIT_PYTHON_GIT_EXECUTABLE": str(tmp_path / "program"),
        "GIT_AUTHOR_DATE": "nonsense",
        "GIT_NAMESPACE": "elsewhere",
    }
    for name, value in inherited.items():
        monkeypatch.setenv(name, value)
    before, others = users(top), users(other)
    base = snapshot.snapshot(top, ref=REF, label="l")
    made = snapshot.add_worktree(top, top / "runs" / "worktrees" / "c" / "h1", base.commit)
    (made.path / "train.py").write_text("a = 1\n\nb = 21  \nc = 3\n")
    (made.path / "größe.py").write_text("x = 1\n")
    change = change_in(made.path, base.commit)
    changed = snapshot.with_patch(top, base.commit, change.patch, label="l", file="p", ref=f"{REF}-1")
    assert snapshot.difference(top, base.commit, changed.commit) == change.patch
    assert stored(top, f"{REF}-1") == changed
    snapshot.remove_worktree(top, made.path)
    snapshot.forget(top, REF)
    assert {name: os.environ[name] for name in inherited} == inherited
    for name in inherited:
        monkeypatch.delenv(name)
    assert not witness.exists()
    assert (users(top), users(other)) == (before, others)
    assert change.files == ("größe.py", "train.py")
    assert b"\x1b" not in change.patch
    assert b"--- a/train.py\n+++ b/train.py\n@@ -1,3 +1,4 @@\n a = 1\n-b = 20\n+\n+b = 21  \n" in change.patch
    assert b'"b/gr\\303\\266\\303\\237e.py"' in change.patch
    said = git(top, "cat-file", "commit", changed.commit)
    assert "\nauthor gpudebug <gpudebug@localhost> " in said
    assert "gpgsig" not in said


def python(code: str, folder: Path, **env: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**environment(), **env},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_looking_does_not_load_gitpython(tmp_path: Path) -> None:
    make_repository(tmp_path / "repo", {"train.py": "1\n"})
    code = f"""
import sys
from pathlib import Path
from gpudebug.edges import git
found = git.identify(Path("."))
git.stored(found.at, {REF!r}), git.began_with(found.at, found.top / "h1")
git.top_folder(found.top)
print("git" in sys.modules)
"""
    assert python(code, tmp_path / "repo") == "False"


def test_without_git_it_says_so_whether_gitpython_is_loaded_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = make_repository(tmp_path / "repo", {"train.py": "1\n"})
    code = """
from pathlib import Path
from gpudebug.core.errors import GitError
from gpudebug.edges.git.repository import Repository
from gpudebug.edges.git.address import Address
for _ in range(2):
    try:
        Repository(Address(*[Path(".")] * 3)).run("status")
    except GitError as e:
        print(e)
"""
    assert python(code, top, PATH="") == "\n".join(["git is not installed; next: install git"] * 2)
    loaded = module.Repository(address(top))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(GitError, match="git is not installed"):
        loaded.run("status")
    with pytest.raises(GitError, match="git is not installed"):
        snapshot.snapshot(top, ref=REF, label="l")


def test_a_git_that_does_not_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "bin" / "git").chmod(0o755)
    loaded = module.Repository(at(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setattr(module, "PATIENCE_S", 0.2)
    with pytest.raises(GitError, match=r"git status did not end within 0\.2 s") as caught:
        loaded.run("status")
    assert caught.value.next


def test_a_folder_that_is_gone_is_not_taken_for_the_current_one(tmp_path: Path) -> None:
    with pytest.raises(GitError, match="cannot change to"):
        module.Repository(at(tmp_path / "gone")).run("status")


def test_what_a_kill_left_of_a_temporary_index_goes_with_the_next_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    top = make_repository(tmp_path / "repo", {"train.py": "1\n"})
    (tmp_path / "gpudebug-index-mine").mkdir()
    (tmp_path / "gpudebug-index-mine" / "index").touch()
    os.utime(tmp_path / "gpudebug-index-mine", (1, 1))
    place = top / ".git" / "gpudebug" / "indexes"
    with module._temporary_index(top / ".git") as path:
        in_use = path.parent.name
        (place / "left").mkdir()
        (place / "left" / "index").touch()
        snapshot.snapshot(top, ref=REF, label="l")
        assert os.listdir(place) == [in_use]
    assert os.listdir(place) == []
    assert sorted(os.listdir(tmp_path)) == ["gpudebug-index-mine", "repo"]
    assert os.listdir(tmp_path / "gpudebug-index-mine") == ["index"]


SAID = {
    "error: a\nfatal: b\n": "a; b",
    "warning: w\nfatal: b": "b",
    "error: a\nerror: c\n": "a",
    "hook said\n": "hook said",
    "\n": "git failed",
}


@pytest.mark.parametrize("err, line", SAID.items())
def test_of_many_lines_the_one_that_says_it(err: str, line: str) -> None:
    assert message_of(err) == line


@pytest.mark.parametrize(
    "err, message, advice",
    [
        ("error: unable to write file x: No space left on device", "no space left", "free some space"),
        ("fatal: Out of diskspace", "no space left", "free some space"),
        ("fatal: .git/index: index file smaller than expected", "smaller", "&& git reset"),
        ("error: bad signature 0x6a756e6b\nfatal: index file corrupt", "bad signature", "&& git reset"),
        ("fatal: detected dubious ownership in repository at '/x'", "dubious", "safe.directory"),
        ("error: external filter 'git-lfs filter-process' failed", "git-lfs", "install git-lfs"),
        ("fatal: bad object", "bad object", "git fsck"),
    ],
)
def test_what_helps_is_said(tmp_path: Path, err: str, message: str, advice: str) -> None:
    error = module.Repository(at(tmp_path)).failure(err)
    assert message in error.message
    assert advice in (error.next or "")


def test_an_index_is_there_for_a_while_and_what_a_kill_left_goes_with_it(tmp_path: Path) -> None:
    common = make_repository(tmp_path / "repo", {"a.py": ""}) / ".git"
    place = common / PRIVATE / "indexes"
    with module._temporary_index(common) as first, module._temporary_index(common) as second:
        assert first != second
        assert first.parent.is_dir() and second.parent.is_dir()
        first.write_bytes(b"an index")
    assert list(place.iterdir()) == []
    left = place / "0123456789abcdef"
    left.mkdir()
    (left / "index").write_bytes(b"of a killed command")
    with module._temporary_index(common) as made:
        assert [path.name for path in place.iterdir()] == [made.parent.name]
    assert list(place.iterdir()) == []


def test_what_another_host_made_is_left_alone_for_longer_than_a_command_takes(tmp_path: Path) -> None:
    """NFS keeps the lock of a folder to its host, so that it looks free here."""
    common = make_repository(tmp_path / "repo", {"a.py": ""}) / ".git"
    with module._temporary_index(common) as index:
        mine = index.parent.name.rpartition(".")[0]
    place = common / PRIVATE / "indexes"
    at_work, left, own = place / "0-0.aa", place / "0-0.bb", place / f"{mine}.cc"
    for folder in (at_work, left, own):
        folder.mkdir()
    os.utime(left, (0, time.time() - 2 * 3600))
    with module._temporary_index(common):
        assert [at_work.exists(), left.exists(), own.exists()] == [True, False, False]
