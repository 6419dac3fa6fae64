"""Files: whole at every moment, never over somebody's save, regular ones only."""

from __future__ import annotations

import errno
import hashlib
import os
import random
import signal
import stat
import threading
import time
from pathlib import Path

import pytest
from tests.support.processes import fork

from gpudebug.core.errors import StoreError
from gpudebug.edges import store
from gpudebug.edges.store import files

OLD, NEW = b"old\n" * 20_000, b"new and longer\n" * 20_000


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file.md"
    path.write_bytes(OLD)
    return path


def replace(path: Path, data: bytes, expected: bytes | None = OLD, root: Path | None = None) -> None:
    told = None if expected is None else digest(expected)
    store.replace_file(path, data, root=root or path.parent, expected=told)


class TestReplace:
    def test_the_bytes_are_replaced_and_nothing_else_is_left(self, file: Path) -> None:
        replace(file, NEW)
        assert file.read_bytes() == NEW
        assert os.listdir(file.parent) == [file.name]

    def test_a_new_file_and_its_folders_are_made(self, tmp_path: Path) -> None:
        replace(tmp_path / "a" / "b.md", b"x", None, tmp_path)
        assert (tmp_path / "a" / "b.md").read_bytes() == b"x"

    @pytest.mark.parametrize("mode", [0o644, 0o600, 0o664, 0o755])
    def test_the_mode_is_kept(self, file: Path, mode: int) -> None:
        file.chmod(mode)
        replace(file, NEW)
        assert stat.S_IMODE(file.stat().st_mode) == mode

    def test_a_new_file_heeds_the_umask(self, tmp_path: Path) -> None:
        before = os.umask(0o027)
        try:
            replace(tmp_path / "new.md", b"x", None)
        finally:
            os.umask(before)
        assert stat.S_IMODE((tmp_path / "new.md").stat().st_mode) == 0o640

    def test_a_link_is_followed_and_its_target_replaced(self, file: Path) -> None:
        link = file.parent / "link.md"
        link.symlink_to(file.name)
        replace(link, NEW)
        assert link.is_symlink()
        assert file.read_bytes() == NEW

    def test_a_link_that_leaves_the_repository_is_refused(self, tmp_path: Path) -> None:
        outside = tmp_path / "outside.md"
        outside.write_bytes(OLD)
        root = tmp_path / "repo"
        root.mkdir()
        (root / "link.md").symlink_to("../outside.md")
        (root / "folder").symlink_to("..")
        for path in (root / "link.md", root / "folder" / "outside.md"):
            with pytest.raises(StoreError, match="leads out of the repository"):
                replace(path, NEW, OLD, root)
        assert outside.read_bytes() == OLD

    def test_links_in_a_circle_are_refused(self, tmp_path: Path) -> None:
        (tmp_path / "a").symlink_to("b")
        (tmp_path / "b").symlink_to("a")
        with pytest.raises(StoreError):
            replace(tmp_path / "a", NEW, None)

    @pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["a FIFO", "a folder"])
    def test_what_is_no_file_is_refused_at_once(self, tmp_path: Path, make: object) -> None:
        path = tmp_path / "thing"
        make(path)  # type: ignore[operator]
        with pytest.raises(StoreError, match="not a regular file"):
            replace(path, NEW, None)

    @pytest.mark.parametrize("expected", [b"something else", None])
    def test_a_save_in_between_is_never_overwritten(self, file: Path, expected: bytes | None) -> None:
        with pytest.raises(store.SavedInBetween) as caught:
            replace(file, NEW, expected)
        assert file.read_bytes() == OLD
        assert caught.value.next

    def test_a_file_that_went_away_is_noticed(self, file: Path) -> None:
        file.unlink()
        with pytest.raises(store.SavedInBetween):
            replace(file, NEW)
        assert not file.exists()

    def test_a_full_disk_leaves_the_old_file_and_no_other(self, file: Path) -> None:
        pid = fork(lambda: _replace_within(file, len(NEW) // 2))
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert file.read_bytes() == OLD
        assert os.listdir(file.parent) == [file.name]

    def test_killed_at_any_moment_a_reader_sees_the_old_file_or_the_new_one(self, file: Path) -> None:
        chance = random.Random(1)
        seen = set()
        for _ in range(60):
            file.write_bytes(OLD)
            pid = fork(lambda: replace(file, NEW))
            time.sleep(chance.uniform(0, 0.004))
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            seen.add(file.read_bytes())
            assert seen <= {OLD, NEW}
        assert len(seen) == 2 or seen == {OLD}

    def test_what_is_named_like_a_temporary_and_is_the_users_stays(self, file: Path) -> None:
        """However old it is: the name and the age of a file prove nothing."""
        names = (
            ".file.md.backup.tmp",
            ".file.md.abcdefgh.tmp",
            ".gpudebug-notes.tmp",
            ".gpudebug-1a2b-0123456789abcdef.tmp",
            f".gpudebug-new-{'0' * 32}.tmp",
        )
        for name in names:
            file.with_name(name).write_bytes(b"mine")
            os.utime(file.with_name(name), (1, 1))
        replace(file, NEW)
        assert {p.name for p in file.parent.iterdir()} == {*names, file.name}
        assert all(file.with_name(name).read_bytes() == b"mine" for name in names)

    def test_a_save_in_the_last_moment_is_never_overwritten(
        self, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sync = os.fsync

        def save_meanwhile(fd: int) -> None:
            sync(fd)
            file.write_bytes(b"a person's save")

        monkeypatch.setattr(os, "fsync", save_meanwhile)
        with pytest.raises(store.SavedInBetween):
            replace(file, NEW)
        assert file.read_bytes() == b"a person's save"
        assert os.listdir(file.parent) == [file.name]

    def test_a_file_that_was_replaced_is_never_called_unchanged(
        self, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sync = os.fsync

        def fail_on_folders(fd: int) -> None:
            if stat.S_ISDIR(os.fstat(fd).st_mode):
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            sync(fd)

        monkeypatch.setattr(os, "fsync", fail_on_folders)
        with pytest.raises(StoreError, match="was written, but the disk does not confirm it: Input/output"):
            replace(file, NEW)
        assert file.read_bytes() == NEW
        with pytest.raises(StoreError, match="was written, but the disk does not confirm it"):
            store.put_file(file, OLD)
        assert file.read_bytes() == OLD

    def test_a_reader_meanwhile_never_sees_a_part(self, file: Path) -> None:
        stop = threading.Event()
        seen: set[bytes] = set()

        def read() -> None:
            while not stop.is_set():
                seen.add(file.read_bytes())

        thread = threading.Thread(target=read)
        thread.start()
        try:
            for _ in range(20):
                replace(file, NEW)
                replace(file, OLD, NEW)
        finally:
            stop.set()
            thread.join()
        assert seen <= {OLD, NEW}


def _replace_within(file: Path, size: int) -> None:
    """In a process that may write no file above `size` bytes, which is how a full disk looks."""
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    try:
        replace(file, NEW)
    except StoreError as e:
        assert "it is unchanged" in e.message
        return
    raise AssertionError("it was written")


def test_the_nearest_config_above_counts(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (tmp_path / store.CONFIG).touch()
    assert store.find_root(deep) == tmp_path.resolve()
    (tmp_path / "a" / store.CONFIG).symlink_to("nowhere")
    assert store.find_root(deep) == (tmp_path / "a").resolve()


def test_what_another_host_put_there_is_looked_for_in_an_opened_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening it makes an NFS client ask what is new in it."""
    seen = list[str]()

    def opened(path: Path, flags: int) -> int:
        seen.append(str(path))
        os.mkdir(tmp_path / "answer")
        return os_open(path, flags)

    os_open = os.open
    monkeypatch.setattr(os, "open", opened)
    assert files.appeared(tmp_path / "answer")
    assert seen == [str(tmp_path)]
    monkeypatch.undo()
    assert not files.appeared(tmp_path / "none" / "answer")
