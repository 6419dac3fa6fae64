"""Worktrees of our own: made at a commit with links in, removed whole, and nobody else's touched."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from tests.support.campaigns import commit_all, git, make_repository, wait_for
from tests.support.processes import fork
from tests.support.repositories import (
    REF,
    address,
    began_with,
    change_in,
    left_over,
    lies,
    repository,
    stored,
    touched,
    users,
    worktrees,
)

from gpudebug.core.errors import BusyError, GitError, StoreError
from gpudebug.edges import git as snapshot
from gpudebug.edges.git import journal
from gpudebug.edges.removal import identity_of

MOMENTS = 25


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo")


def base_of(top: Path) -> str:
    return snapshot.snapshot(top, ref=REF, label="l").commit


def place(top: Path, name: str = "h1") -> Path:
    return top / "runs" / "worktrees" / "campaign" / name


def test_made_used_and_removed_under_any_name(hostile: Path) -> None:
    top = repository(hostile / "repo")
    commit, before = base_of(top), users(top)
    made = snapshot.add_worktree(top, place(top), commit, links=[".venv"], checkout=top)
    assert made == snapshot.Worktree(place(top), (), (".venv",))
    expected = {k: v for k, v in lies(top).items() if not k.startswith((".venv", "runs/", "train.log"))}
    assert lies(made.path) == {**expected, ".venv": ("link", str(top / ".venv"))}
    assert git(made.path, "status", "--porcelain") == ""
    assert git(made.path, "rev-parse", "--abbrev-ref", "HEAD") == "HEAD\n"
    assert began_with(made.path) == commit
    assert users(top) == before
    again = snapshot.add_worktree(top, place(top), commit, links=[".venv"], checkout=top)
    assert again == made
    snapshot.remove_worktree(top, made.path)
    assert users(top) == before
    assert left_over(top) == []
    assert (top / ".venv" / "bin" / "python").read_text() == "#!"
    snapshot.remove_worktree(top, made.path)
    assert began_with(made.path) is None


def test_touched_is_what_differs_and_is_not_linked(hostile: Path) -> None:
    top = repository(hostile / "repo")
    (top / "data set").mkdir()
    (top / "data set" / "x.bin").write_text("x")
    path = snapshot.add_worktree(top, place(top), base_of(top), links=[".venv", "data set"]).path
    assert not touched(path)
    (path / "new.txt").write_text("new\n")
    assert touched(path)
    git(path, "add", "new.txt")
    commit_all(path)
    assert touched(path)
    git(path, "reset", "--quiet", "--hard", "HEAD^")
    assert not touched(path)
    (path / "train.py").write_text("a = 7\n")
    assert touched(path)
    shutil.rmtree(path / ".git")
    (path / ".git").write_text("gitdir: nowhere\n")
    assert touched(path)
    assert not touched(place(top, "none"))


def test_git_knows_no_worktree_of_ours(top: Path, tmp_path: Path) -> None:
    """Two campaigns have an h1, and the user has a worktree of that name."""
    commit = base_of(top)
    git(top, "worktree", "add", "--quiet", "--detach", str(tmp_path / "h1"))
    for path in (place(top), top / "runs" / "worktrees" / "other" / "h1"):
        snapshot.add_worktree(top, path, commit)
        assert worktrees(top) == [str(tmp_path / "h1")]
        assert worktrees(path) == []
        snapshot.remove_worktree(top, path)
    assert (tmp_path / "h1" / "train.py").exists()


@pytest.mark.parametrize("linked", ["runs", "runs/worktrees", "runs/worktrees/campaign"])
def test_links_on_the_way_are_refused(top: Path, tmp_path: Path, linked: str) -> None:
    elsewhere = tmp_path / "elsewhere" / "worktrees" / "campaign" / "h1"
    elsewhere.mkdir(parents=True)
    (elsewhere / "mine.txt").write_text("mine")
    commit = base_of(top)
    (top / linked).parent.mkdir(parents=True, exist_ok=True)
    (top / linked).symlink_to(elsewhere.parents[2 - linked.count("/")])
    before = lies(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="is a link or a file") as caught:
        snapshot.add_worktree(top, place(top), commit)
    assert caught.value.file == str(top / linked)
    assert caught.value.next
    snapshot.remove_worktree(top, place(top))
    assert lies(tmp_path / "elsewhere") == before


def test_a_folder_that_was_made_a_link_afterwards_is_left(top: Path, tmp_path: Path) -> None:
    """Also where it is swapped while the lock of the worktree is waited for."""
    commit = base_of(top)
    made = snapshot.add_worktree(top, place(top), commit)
    (tmp_path / "victim" / "h1").mkdir(parents=True)
    (tmp_path / "victim" / "h1" / "thesis").write_text("mine")
    with ThreadPoolExecutor() as pool:
        with journal.held(top / ".git", place(top)):
            removing = pool.submit(snapshot.remove_worktree, top, place(top))
            time.sleep(0.2)
            made.path.parent.rename(top / "runs" / "aside")
            made.path.parent.symlink_to(tmp_path / "victim")
        assert isinstance(removing.exception(), StoreError)
    assert (tmp_path / "victim" / "h1" / "thesis").read_text() == "mine"
    made.path.parent.unlink()
    (tmp_path / "victim").rename(made.path.parent)
    left = snapshot.remove_worktree(top, place(top))
    assert left == [
        f"h1: {made.path} is not the folder that gpudebug made (device, inode or birth differ): it stays"
    ]
    assert (made.path / "thesis").read_text() == "mine"


class TestLinks:
    def test_a_link_out_of_the_repository_and_one_that_is_not_there(self, top: Path, tmp_path: Path) -> None:
        (tmp_path / "store" / "a").mkdir(parents=True)
        (top / "outside").symlink_to(tmp_path / "store")
        made = snapshot.add_worktree(
            top, place(top), base_of(top), links=["outside", "nowhere", ".venv/bin/"], checkout=top
        )
        assert made.notes == ("worktree.link: nowhere is missing, so it is not linked",)
        # The link to the store is untracked and small: it is in the base itself.
        assert made.linked == (".venv/bin",)
        assert (made.path / "outside" / "a").is_dir()

    def test_a_folder_that_git_tracks_in_part_is_filled_up(self, top: Path) -> None:
        (top / "data" / "big").mkdir()
        (top / "data" / "big" / "x").write_bytes(bytes(2**20 + 1))
        (top / "pkg" / "deep" / "cache.log").write_text("ignored")
        made = snapshot.add_worktree(
            top, place(top), base_of(top), links=["data", "pkg", "train.py"], checkout=top
        )
        assert set(made.linked) == {"data/big", "pkg/deep/cache.log"}
        assert made.notes == ("worktree.link: train.py is tracked by git: the worktree has its own copy",)
        assert not (made.path / "data" / "keep.txt").is_symlink()
        snapshot.remove_worktree(top, made.path)
        assert (top / "data" / "big" / "x").exists()

    def test_they_are_relative_to_the_campaigns_folder(self, top: Path) -> None:
        (top / "pkg" / "store.log").mkdir()
        made = snapshot.add_worktree(top, place(top), base_of(top), links=["store.log"], checkout=top / "pkg")
        assert made.linked == ("pkg/store.log",)
        assert os.readlink(made.path / "pkg" / "store.log") == str(top / "pkg" / "store.log")

    @pytest.mark.parametrize(
        "name", ["../x", "/etc", ".", "", ".git", ".git/hooks", "a/../../x", "runs", "runs/x", "out/file"]
    )
    def test_one_that_may_not_be_is_refused_and_nothing_is_left(
        self, top: Path, tmp_path: Path, name: str
    ) -> None:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere" / "file").touch()
        (top / "out").symlink_to("../elsewhere")
        with pytest.raises(GitError, match=r"worktree\.link") as caught:
            snapshot.add_worktree(top, place(top), base_of(top), links=[name], checkout=top)
        assert caught.value.next
        assert os.listdir(place(top).parent) == []


class TestSubmodules:
    @pytest.fixture
    def outer(self, tmp_path: Path) -> Path:
        """A repository with two submodules, one of which is not checked out."""
        make_repository(tmp_path / "lib", {"lib.py": "x = 1\n"})
        outer = make_repository(tmp_path / "outer", {"train.py": "1\n"})
        for name in ("libs/here", "libs/empty"):
            words = ("-c", "protocol.file.allow=always", "submodule", "--quiet", "add")
            git(outer, *words, str(tmp_path / "lib"), name)
        commit_all(outer)
        git(outer, "submodule", "--quiet", "deinit", "--force", "libs/empty")
        return outer

    def test_they_are_linked_and_no_part_of_a_change(self, outer: Path) -> None:
        (outer / "libs" / "here" / "lib.py").write_text("x = 2\n")
        before, commit = users(outer), base_of(outer)
        made = snapshot.add_worktree(outer, place(outer), commit)
        assert made.linked == ("libs/here",)
        assert (made.path / "libs" / "here" / "lib.py").read_text() == "x = 2\n"
        assert list((made.path / "libs" / "empty").iterdir()) == []
        assert change_in(made.path, commit).patch == b""
        (made.path / "libs" / "here" / "lib.py").write_text("x = 30\n")
        (made.path / "train.py").write_text("2\n")
        assert change_in(made.path, commit).files == ("train.py",)
        assert snapshot.changed_in_links(address(outer), made.path) == ["libs/here/lib.py"]
        (outer / "libs" / "here" / "lib.py").write_text("x = 2\n")
        snapshot.remove_worktree(outer, made.path)
        assert users(outer).keys() == before.keys()
        assert snapshot.difference(outer, commit, base_of(outer)) == b""

    def test_a_submodule_can_itself_be_the_checkout(self, outer: Path) -> None:
        inner = outer / "libs" / "here"
        (inner / "lib.py").write_text("x = 3\n")
        commit = base_of(inner)
        made = snapshot.add_worktree(inner, place(inner), commit)
        assert (made.path / "lib.py").read_text() == "x = 3\n"
        (made.path / "lib.py").write_text("x = 4\n")
        assert change_in(made.path, commit).files == ("lib.py",)
        snapshot.remove_worktree(inner, made.path)


def test_a_worktree_of_the_users_can_be_the_checkout(top: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    git(top, "worktree", "add", "--quiet", "-b", "topic", str(second))
    (second / "train.py").write_text("mine\n")
    before = users(top), users(second)
    commit = base_of(second)
    made = snapshot.add_worktree(second, place(second), commit)
    assert (made.path / "train.py").read_text() == "mine\n"
    snapshot.remove_worktree(second, made.path)
    assert (users(top), users(second)) == before
    assert worktrees(top) == [str(second)]


class TestInTheWay:
    def test_somebody_elses_folder_keeps_its_name(self, top: Path) -> None:
        place(top).mkdir(parents=True)
        (place(top) / "notes.txt").write_text("mine")
        commit = base_of(top)
        assert snapshot.remove_worktree(top, place(top)) == []
        for _ in range(2):
            made = snapshot.add_worktree(top, place(top), commit)
            assert made.path == place(top, "h1-2")
            assert made.notes == (
                f"{place(top)} is not gpudebug's: it was left there, and the worktree is {made.path}",
            )
        assert (began_with(place(top)), touched(place(top))) == (commit, False)
        (made.path / "train.py").write_text("x\n")
        assert change_in(place(top), commit).files == ("train.py",)
        snapshot.remove_worktree(top, place(top))
        assert left_over(top) == ["runs/worktrees/campaign/h1"]
        assert (place(top) / "notes.txt").read_text() == "mine"

    def test_a_worktree_of_the_users_is_never_removed(self, top: Path) -> None:
        git(top, "worktree", "add", "--quiet", "--detach", str(place(top)))
        assert snapshot.remove_worktree(top, place(top)) == []
        assert snapshot.repair(top, place(top).parent) == []
        assert worktrees(top) == [str(place(top))]

    def test_ours_at_another_commit(self, top: Path) -> None:
        snapshot.add_worktree(top, place(top), base_of(top))
        with pytest.raises(GitError, match="another commit"):
            snapshot.add_worktree(top, place(top), git(top, "rev-parse", "HEAD").strip())

    def test_no_such_commit(self, top: Path) -> None:
        with pytest.raises(GitError, match="0000000") as caught:
            snapshot.add_worktree(top, place(top), "0" * 40)
        assert caught.value.next
        assert snapshot.repair(top, place(top).parent) == []

    def test_a_checkout_that_needs_a_filter_which_fails(self, top: Path) -> None:
        """A repository where no worktree can be made: one line, and nothing is left."""
        (top / ".gitattributes").write_text("*.bin filter=vault\n")
        git(top, "config", "filter.vault.smudge", "false")
        git(top, "config", "filter.vault.clean", "cat")
        git(top, "config", "filter.vault.required", "true")
        commit = base_of(top)
        with pytest.raises(GitError, match=r"smudge filter vault failed") as caught:
            snapshot.add_worktree(top, place(top), commit)
        assert caught.value.next
        assert not place(top).exists()


def test_folders_that_may_not_be_written_go_too(top: Path) -> None:
    made = snapshot.add_worktree(top, place(top), base_of(top), links=[".venv"], checkout=top)
    (made.path / "pkg" / "deep").chmod(0o500)
    (made.path / "pkg").chmod(0o500)
    snapshot.remove_worktree(top, made.path)
    assert not made.path.exists()
    assert (top / ".venv" / "bin" / "python").exists()


def test_the_lock_that_a_killed_removal_left_goes_with_the_next(top: Path) -> None:
    made = snapshot.add_worktree(top, place(top), base_of(top))
    common = top / ".git"
    file = journal.file_of(common, place(top))
    snapshot.remove_worktree(top, made.path)
    (file.parent / "h1.held").touch()
    snapshot.remove_worktree(top, made.path)
    assert list(file.parent.iterdir()) == []


@pytest.fixture
def commit(top: Path) -> str:
    for n in range(40):
        (top / "pkg" / f"module{n}.py").write_text(f"n = {n}\n" * 50)
    return base_of(top)


def add(top: Path, commit: str, name: str = "h1") -> snapshot.Worktree:
    return snapshot.add_worktree(top, place(top, name), commit, links=[".venv"], checkout=top)


def killed_after(seconds: float, body: Callable[[], object], group: bool) -> None:
    """Run `body` in a process, and end it (or all that it started, too) by SIGKILL."""

    def alone() -> None:
        os.setpgid(0, 0)
        body()

    pid = fork(alone)
    with contextlib.suppress(PermissionError, ProcessLookupError):
        os.setpgid(pid, pid)
    time.sleep(seconds)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL) if group else os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def duration(body: Callable[[], object]) -> float:
    started = time.monotonic()
    pid = fork(body)
    os.waitpid(pid, 0)
    return time.monotonic() - started


@pytest.mark.slow
def test_a_kill_at_any_moment_of_making_is_mended(top: Path, commit: str) -> None:
    before = users(top)
    took = duration(lambda: add(top, commit))
    expected = lies(place(top))
    snapshot.remove_worktree(top, place(top))
    mended = 0
    for moment in range(MOMENTS):
        killed_after(took * 1.1 * moment / MOMENTS, lambda: add(top, commit), group=moment % 2 == 0)
        if moment % 3:
            told = snapshot.repair(top, place(top).parent)
            mended += bool(told)
            assert all(line == "h1: was left half-made; it is removed" for line in told)
        made = add(top, commit)
        assert lies(made.path) == expected
        assert (made.linked, made.notes) == ((".venv",), ())
        assert git(made.path, "status", "--porcelain") == ""
        assert snapshot.repair(top, place(top).parent) == []
        snapshot.remove_worktree(top, made.path)
        assert users(top) == before
        assert left_over(top) == []
    assert mended
    git(top, "fsck", "--connectivity-only")


def test_a_kill_at_any_moment_of_removing_is_mended(top: Path, commit: str) -> None:
    add(top, commit)
    took = duration(lambda: snapshot.remove_worktree(top, place(top)))
    for moment in range(8):
        made = add(top, commit)
        killed_after(took * moment / 8, lambda: snapshot.remove_worktree(top, place(top)), group=True)
        snapshot.repair(top, place(top).parent)
        if moment % 2:
            assert lies(add(top, commit).path).keys() >= {"train.py", "new.py"}
        snapshot.remove_worktree(top, made.path)
        assert left_over(top) == []


def test_a_kill_in_the_middle_of_a_snapshot_leaves_nothing_of_the_users_changed(top: Path) -> None:
    before = users(top)
    took = duration(lambda: snapshot.snapshot(top, ref=f"{REF}-0", label="l"))
    for moment in range(8):
        ref = f"{REF}-{moment}"
        killed_after(
            took * moment / 8, lambda ref=ref: snapshot.snapshot(top, ref=ref, label="l"), group=True
        )
        assert users(top) == before
        found = stored(top, ref)
        assert snapshot.snapshot(top, ref=ref, label="l") == (found or stored(top, ref))


def test_what_is_at_work_is_left_alone(top: Path, commit: str) -> None:
    """Not even the process counts, but who holds the journal: an orphaned git does so too."""
    path = place(top)
    ready, done = os.pipe(), os.pipe()
    record = journal.WorktreeRecord("making", commit, str(path))

    def at_work() -> None:
        path.parent.mkdir(parents=True)
        with journal.held(top / ".git", path) as ours:
            ours.write(record)
            path.mkdir()
            ours.write(replace(record, made=identity_of(os.stat(path))))
            os.write(ready[1], b".")
            os.close(done[1])
            os.read(done[0], 1)

    pid = fork(at_work)
    os.read(ready[0], 1)
    try:
        assert snapshot.repair(top, path.parent) == []
        with (
            pytest.raises(BusyError, match="another command"),
            journal.held(top / ".git", path, patience=0.05),
        ):
            pass
        assert path.is_dir()
    finally:
        os.close(done[1])
        os.waitpid(pid, 0)
    assert snapshot.repair(top, path.parent) == ["h1: was left half-made; it is removed"]
    for descriptor in (*ready, done[0]):
        os.close(descriptor)


class TestByHand:
    """Somebody removed a part of it."""

    def test_the_folder(self, top: Path, commit: str) -> None:
        made = add(top, commit)
        shutil.rmtree(made.path)
        told = snapshot.repair(top, made.path.parent, written=lambda name: True)
        assert told == ["h1: its folder was deleted; the worktree is forgotten"]
        assert add(top, commit).path.is_dir()

    def test_the_folder_and_nobody_repairs(self, top: Path, commit: str) -> None:
        made = add(top, commit)
        shutil.rmtree(made.path)
        assert lies(add(top, commit).path)["train.py"]
        shutil.rmtree(made.path)
        snapshot.remove_worktree(top, made.path)

    def test_all_of_runs(self, top: Path, commit: str) -> None:
        made, other = add(top, commit), add(top, commit, "h2")
        shutil.rmtree(top / "runs")
        told = snapshot.repair(top, made.path.parent)
        assert told == [f"{name}: its folder was deleted; the worktree is forgotten" for name in ("h1", "h2")]
        assert not (top / "runs").exists()
        add(top, commit, "h2")
        shutil.rmtree(top / "runs")
        snapshot.remove_worktree(top, other.path)

    @pytest.mark.parametrize("left", ["nothing", "a file", "a link"])
    def test_its_own_repository(self, top: Path, commit: str, left: str) -> None:
        made, other = add(top, commit), add(top, commit, "h2")
        (made.path / "train.py").write_text("work of hours\n")
        shutil.rmtree(made.path / ".git")
        if left == "a file":
            (made.path / ".git").write_text(f"gitdir: {top / '.git'}\n")
        elif left == "a link":
            (made.path / ".git").symlink_to(top / ".git")
        shutil.rmtree(other.path / ".git")
        before = users(top)
        told = snapshot.repair(top, made.path.parent, written=lambda name: name == "h1")
        assert told == ["h1: its own git repository was gone or led elsewhere; it is made again"]
        assert git(made.path, "status", "--porcelain") == " M train.py\n"
        assert change_in(made.path, commit).files == ("train.py",)
        assert snapshot.repair(top, made.path.parent, written=lambda name: True) != told
        assert users(top) == before

    def test_one_that_a_kill_left_half_made_again(self, top: Path, commit: str) -> None:
        made = add(top, commit)

        def mend() -> object:
            return snapshot.repair(top, made.path.parent, lambda name: True)

        def mended() -> bool:
            # The last process of those that were killed holds the worktree's lock until it has ended.
            mend()
            return git(made.path, "status", "--porcelain") == ""

        shutil.rmtree(made.path / ".git")
        took = duration(mend)
        for moment in range(8):
            shutil.rmtree(made.path / ".git")
            killed_after(took * moment / 8, mend, group=True)
            wait_for(mended, within=5)
            assert git(made.path, "rev-parse", "HEAD") == f"{commit}\n"

    def test_the_commit(self, top: Path) -> None:
        (top / "train.py").write_text("another\n")
        commit = snapshot.snapshot(top, ref=REF, label="l").commit
        made = add(top, commit)
        snapshot.forget(top, REF)
        git(top, "gc", "--quiet", "--prune=now")
        (told,) = snapshot.repair(top, made.path.parent, written=lambda name: True)
        assert "git has lost the commit" in told
        assert (made.path / "train.py").read_text() == "another\n"
        assert snapshot.repair(top, made.path.parent, written=lambda name: True) == []


def test_a_moved_repository(top: Path, commit: str) -> None:
    made = add(top, commit)
    (made.path / "train.py").write_text("work of hours\n")
    moved = top.with_name("moved")
    top.rename(moved)
    told = snapshot.repair(moved, place(moved).parent, written=lambda name: True)
    assert told == []
    assert git(place(moved), "status", "--porcelain") == " M train.py\n"
    assert change_in(place(moved), commit).files == ("train.py",)
    snapshot.remove_worktree(moved, place(moved))
    assert left_over(moved) == []


class TestALinkedWorktree:
    """As earlier versions had git make one: with a folder of git's in the user's repository."""

    @pytest.fixture
    def linked(self, top: Path, commit: str) -> Path:
        path, token = place(top), "0123456789abcdef"
        git(top, "worktree", "add", "--quiet", "--detach", str(path), commit)
        admin = top / ".git" / "worktrees" / f"h1-{token}"
        (top / ".git" / "worktrees" / "h1").rename(admin)
        (path / ".git").write_text(f"gitdir: {admin}\n")
        (admin / "gpudebug").write_text("{}")
        file = journal.file_of(top / ".git", path)
        file.parent.mkdir(parents=True, mode=0o700)
        made = journal.WorktreeRecord("ready", commit, str(path), identity_of(path.stat()), id=admin.name)
        record = asdict(replace(made, admin=identity_of(admin.stat()))) | {"token": token}
        del record["mending"]
        file.write_text(json.dumps(record))
        (path / "train.py").write_text("work of hours\n")
        return path

    def test_it_goes_on_as_one_with_a_repository_of_its_own(
        self, top: Path, linked: Path, commit: str
    ) -> None:
        git(linked, "commit", "--quiet", "--all", "--message", "Mine")
        assert began_with(linked) == commit
        assert touched(linked)
        assert change_in(linked, commit).files == ("train.py",)
        assert snapshot.repair(top, linked.parent, written=lambda name: True) == []
        assert not (top / ".git" / "worktrees").exists()
        assert git(linked, "status", "--porcelain") == "M  train.py\n"
        assert change_in(linked, commit).files == ("train.py",)
        snapshot.remove_worktree(top, linked)
        assert left_over(top) == []

    def test_a_kill_while_it_is_taken_over_is_mended(self, top: Path, linked: Path, commit: str) -> None:
        for moment in range(6):
            mend = lambda: snapshot.repair(top, linked.parent, lambda name: True)  # noqa: E731
            killed_after(0.03 * moment, mend, group=True)
            assert change_in(linked, commit).files == ("train.py",)
        snapshot.repair(top, linked.parent, lambda name: True)
        assert not (top / ".git" / "worktrees").exists()
        assert git(linked, "status", "--porcelain") == " M train.py\n"

    @pytest.mark.parametrize("state", ["making", "ready", "removing"])
    def test_it_is_removed_whole(self, top: Path, linked: Path, state: str) -> None:
        file = journal.file_of(top / ".git", linked)
        file.write_text(json.dumps({**json.loads(file.read_text()), "state": state}))
        snapshot.remove_worktree(top, linked)
        assert (left_over(top), (top / ".git" / "worktrees").exists()) == ([], False)

    def test_what_is_not_gits_folder_of_it_stays(self, top: Path, linked: Path) -> None:
        (admin,) = (top / ".git" / "worktrees").iterdir()
        shutil.copytree(admin, top / "aside")
        shutil.rmtree(admin)
        (top / "aside").rename(admin)
        snapshot.remove_worktree(top, linked)
        assert admin.is_dir()
