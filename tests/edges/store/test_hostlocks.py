"""Locks of devices: one run on a GPU at a time, whatever repository and user it is of."""

from __future__ import annotations

import errno
import fcntl
import os
import random
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from tests.support.holders import all_end, as_user, holding
from tests.support.processes import fork

from gpudebug.core.errors import BusyError, StoreError
from gpudebug.edges import store
from gpudebug.edges.store import hostlocks, locks

A, B = "GPU-0a1b2c3d-0000-1111-2222-333344445555", "GPU-ffffffff-0000-1111-2222-333344445555"
MIG = "MIG-7c1a0b2e-1234-5678-9abc-def012345678"
SINCE = "2026-11-21T10:00:00+00:00"
HOLDER = {
    "path": "/home/a/repo",
    "campaign": "c",
    "session": None,
    "since": SINCE,
    "command": "gpudebug next",
}
NAMES = {A: "NVIDIA H200"}
NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user, which only root may")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the locks will be; not there yet."""
    path = tmp_path / "locks"
    monkeypatch.setenv(hostlocks.VARIABLE, str(path))
    return path


@pytest.fixture
def open_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The same where every user may go."""
    above = Path(tempfile.mkdtemp(prefix="gpudebug-test-", dir="/tmp"))
    above.chmod(0o755)
    monkeypatch.setenv(hostlocks.VARIABLE, str(above / "locks"))
    yield above / "locks"
    shutil.rmtree(above)


def lock(*uuids: str, **changes: object) -> AbstractContextManager[tuple[int, ...]]:
    return store.device_locks(uuids, {**HOLDER, **changes}, NAMES)


def busy(*uuids: str) -> str:
    """The message of whoever holds one of these devices."""
    with pytest.raises(BusyError) as caught, lock(*uuids):
        pass
    assert caught.value.exit_code == 6
    assert str(caught.value.next).startswith("wait for it to end")
    return caught.value.message


def free(*uuids: str) -> bool:
    with lock(*uuids) as fds:
        return len(fds) == len(uuids)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


class TestDevices:
    def test_a_device_in_use_is_refused_at_once_and_its_holder_named(self, folder: Path) -> None:
        with holding(lambda: lock(A)) as other:
            began = time.monotonic()
            assert busy(A) == (
                f"device {A} (NVIDIA H200) is in use by `gpudebug next` in /home/a/repo, campaign c, "
                f"since {SINCE}"
            )
            assert time.monotonic() - began < locks.ENDING_S / 2
            assert free(B)
            other.release()
            assert free(A, B)

    def test_a_session_is_named_too(self, folder: Path) -> None:
        with holding(lambda: lock(B, session="a1", campaign=None)):
            assert busy(A, B) == (
                f"device {B} is in use by `gpudebug next` in /home/a/repo, session a1, since {SINCE}"
            )
            assert free(A)

    def test_a_part_of_a_gpu_is_a_device(self, folder: Path) -> None:
        with holding(lambda: lock(MIG)):
            assert MIG in busy(MIG)
            assert free(A)

    def test_a_device_named_twice_is_taken_once(self, folder: Path) -> None:
        with lock(B, A, B) as fds:
            assert len(fds) == 2
            assert [os.readlink(f"/proc/self/fd/{fd}") for fd in fds] == [
                str(folder / f"{uuid}.lock") for uuid in (A, B)
            ]

    def test_nothing_is_left_open_or_held(self, folder: Path) -> None:
        before = os.listdir("/proc/self/fd")
        with lock(A, B):
            pass
        with holding(lambda: lock(B)):
            busy(A, B)
        assert free(A, B)
        assert os.listdir("/proc/self/fd") == before

    def test_what_a_holder_says_is_cut(self, folder: Path) -> None:
        with holding(lambda: lock(A, path="/" + "x" * 100_000, command="")):
            assert len(busy(A)) < 500

    @pytest.mark.parametrize("text", [b"", b"{", b"[1]", b"\xff", b"[" * 60000, b'{"path": {"a": [1]}}'])
    def test_a_holder_that_says_nothing_of_use_is_another_gpudebug(self, folder: Path, text: bytes) -> None:
        with holding(lambda: lock(A)):
            (folder / f"{A}.{os.geteuid()}.holder").write_bytes(text)
            assert busy(A).startswith(f"device {A} (NVIDIA H200) is in use by another gpudebug")


class TestKills:
    def test_a_killed_holder_holds_nothing_and_is_not_named(self, folder: Path) -> None:
        with holding(lambda: lock(A, session="killed")) as other:
            other.kill()
        with holding(lambda: lock(A, session="later")):
            assert "session later" in busy(A)
        assert free(A)

    def test_a_dead_holders_warden_is_waited_for(self, folder: Path, tmp_path: Path) -> None:
        with inherited(tmp_path / "heir", A) as heir:
            threading.Timer(0.15, os.kill, (heir, signal.SIGKILL)).start()
            assert free(A)

    def test_patience_with_the_dead_ends_too(
        self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(locks, "ENDING_S", 0.1)
        with inherited(tmp_path / "heir", A):
            assert busy(A) == f"device {A} (NVIDIA H200) is in use by an unknown process"
            assert free(B)

    def test_of_16_that_fight_for_two_devices_one_has_them(self, folder: Path, tmp_path: Path) -> None:
        """In whatever order they ask, nobody waits for ever; the killed are no obstacle."""
        marker = tmp_path / "marker"

        def fight(number: int) -> None:
            dice, entered = random.Random(number), 0
            while entered < 2:
                try:
                    with lock(*((A, B) if number % 2 else (B, A))), marker.open("a") as f:
                        fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        entered += 1
                        if entered == 2 and number % 4 == 0:
                            os.kill(os.getpid(), signal.SIGKILL)
                        time.sleep(0.002)
                except BusyError:
                    time.sleep(dice.uniform(0.001, 0.02))

        fighters = {fork(lambda n=n: fight(n)): n for n in range(16)}  # type: ignore[misc]
        ends = all_end(list(fighters))
        assert {fighters[pid]: status for pid, status in ends.items()} == {
            n: -signal.SIGKILL if n % 4 == 0 else 0 for n in range(16)
        }
        assert free(A, B)


@contextmanager
def inherited(note: Path, *uuids: str) -> Iterator[int]:
    """A holder killed by `kill -9`; yields the pid of what inherited its locks as a warden does."""

    def hold() -> None:
        with lock(*uuids) as fds:
            # Whatever can be inherited is, as by a helper that is started without care.
            note.write_text(str(subprocess.Popen(["sleep", "60"], pass_fds=fds, close_fds=False).pid))
            os.kill(os.getpid(), signal.SIGKILL)

    assert all_end([fork(hold)]).popitem()[1] == -signal.SIGKILL
    heir = int(note.read_text())
    try:
        yield heir
    finally:
        with suppress(ProcessLookupError):
            os.kill(heir, signal.SIGKILL)


UNSAFE: dict[str, tuple[Callable[[Path], object], str]] = {
    "a link to a good folder": (lambda p: (p.parent / "good").mkdir() or p.symlink_to("good"), "is a link"),
    "a link to nothing": (lambda p: p.symlink_to("nothing"), "is a link"),
    "a file": (Path.touch, "is no folder"),
    "a FIFO": (os.mkfifo, "is no folder"),
    "everybody may remove what is in it": (lambda p: p.mkdir() or p.chmod(0o777), "has mode 0777"),
    "its group may": (lambda p: p.mkdir() or p.chmod(0o775), "has mode 0775"),
}


class TestFolder:
    @pytest.mark.parametrize("umask", [0, 0o022, 0o077, 0o177])
    def test_it_is_open_to_all_users_but_for_each_others_files(self, folder: Path, umask: int) -> None:
        before = os.umask(umask)
        try:
            with lock(A):
                assert mode(folder) == 0o1777
                assert {p.name: mode(p) for p in folder.iterdir()} == {
                    f"{A}.lock": 0o666,
                    f"{A}.{os.geteuid()}.holder": 0o644,
                }
        finally:
            os.umask(before)

    @pytest.mark.parametrize(("make", "words"), UNSAFE.values(), ids=UNSAFE)
    def test_what_is_not_safe_is_refused(
        self, folder: Path, make: Callable[[Path], object], words: str
    ) -> None:
        make(folder)
        before = sorted(folder.parent.rglob("*"))
        with pytest.raises(StoreError, match=words) as caught, lock(A):
            raise AssertionError("entered")
        assert hostlocks.VARIABLE in str(caught.value.next)
        assert caught.value.file == str(folder)
        assert sorted(folder.parent.rglob("*")) == before

    @pytest.mark.parametrize("kept", [0o700, 0o755, 0o1777, 0o3770])
    def test_a_folder_that_was_there_stays_as_it_is(self, folder: Path, kept: int) -> None:
        folder.mkdir()
        folder.chmod(kept)
        assert free(A)
        assert mode(folder) == kept

    def test_a_folder_that_means_another_one_everywhere_is_refused(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(hostlocks.VARIABLE, "locks")
        with pytest.raises(StoreError, match="not an absolute path") as caught, lock(A):
            raise AssertionError("entered")
        assert caught.value.next

    def test_a_folder_in_nothing_is_refused(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(hostlocks.VARIABLE, str(folder / "deeper"))
        with pytest.raises(StoreError, match="cannot make") as caught, lock(A):
            raise AssertionError("entered")
        assert hostlocks.VARIABLE in str(caught.value.next)

    @pytest.mark.parametrize(("left", "then"), [(0o755, 0o1777), (0o700, 0o1777), (0o3770, 0o3770)])
    def test_the_usual_folder_is_opened_where_a_kill_left_it_closed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: int, then: int
    ) -> None:
        usual = tmp_path / "usual"
        monkeypatch.delenv(hostlocks.VARIABLE)
        monkeypatch.setattr(hostlocks, "FOLDER", usual)
        usual.mkdir()
        usual.chmod(left)
        assert free(A)
        assert mode(usual) == then


STEMS = ["GPU-1", "GPU_1", "GPU/1", "MIG-GPU-1/2/0", "MIG-GPU-1_2_0", "..", "../x", "", " ", "é", "a.0"]
STEMS += ["x" * 100, "x" * 101, "x" * 5000, "\x00", "GPU-1\n", "\ud800", "CPU"]


def test_every_uuid_has_a_files_name_of_its_own() -> None:
    stems = [hostlocks.file_stem(uuid) for uuid in STEMS]
    assert len(set(stems)) == len(STEMS)
    for stem in stems:
        assert 0 < len(stem) < 120
        assert all(c.isascii() and (c.isalnum() or c in "-_") for c in stem)
    assert hostlocks.file_stem(A) == A


@pytest.mark.parametrize("uuid", [u for u in STEMS if u != "CPU"])
def test_any_uuid_can_be_locked(folder: Path, uuid: str) -> None:
    with holding(lambda: lock(uuid)):
        busy(uuid)
    assert len(list(folder.iterdir())) == 2
    assert free(uuid)


class TestFiles:
    @pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda p: os.symlink("/etc/hostname", p)])
    def test_a_lock_that_is_none_is_refused(self, folder: Path, make: Callable[[Path], None]) -> None:
        assert free(B)
        make(folder / f"{A}.lock")
        with pytest.raises(StoreError) as caught, lock(A):
            raise AssertionError("entered")
        assert caught.value.next
        assert caught.value.file == str(folder / f"{A}.lock")

    @pytest.mark.parametrize("make", [os.mkdir, os.mkfifo, os.link, os.symlink])
    def test_a_holders_file_that_is_not_its_own_is_not_written(
        self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[..., None]
    ) -> None:
        """The device is held all the same; by whom, nobody is told."""
        monkeypatch.setattr(locks, "ENDING_S", 0.1)
        precious = tmp_path / "precious"
        precious.write_text("mine")
        precious.chmod(0o600)
        assert free(B)
        theirs = folder / f"{A}.{os.geteuid()}.holder"
        make(precious, theirs) if make in (os.link, os.symlink) else make(theirs)
        with holding(lambda: lock(A)):
            assert busy(A).endswith("by an unknown process")
        assert precious.read_text() == "mine"
        assert mode(precious) == 0o600

    @pytest.mark.parametrize(("text", "links", "then"), [("", 1, 0o666), ("mine", 1, 0o600), ("", 2, 0o600)])
    def test_a_lock_is_opened_to_all_where_a_kill_left_it_closed(
        self, folder: Path, text: str, links: int, then: int
    ) -> None:
        assert free(B)
        path = folder / f"{A}.lock"
        path.write_text(text)
        path.chmod(0o600)
        if links == 2:
            os.link(path, folder / "other")
        assert free(A)
        assert (mode(path), path.read_text()) == (then, text)

    def test_a_lock_that_was_removed_meanwhile_holds_nobody(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As by a cleaner of /tmp: who gets a file that has no name any more asks for the new one."""
        assert free(A)
        path = folder / f"{A}.lock"
        done = threading.Event()

        def enter() -> None:
            with lock(A):
                done.set()

        with path.open() as old:
            fcntl.flock(old, fcntl.LOCK_EX)
            waiting = threading.Thread(target=enter)
            waiting.start()
            time.sleep(0.1)
            path.unlink()
            path.touch()
            with path.open() as new:
                fcntl.flock(new, fcntl.LOCK_EX)
                old.close()
                assert not done.wait(0.2)
        assert done.wait(9)
        waiting.join()

    def test_without_locks_nothing_is_entered(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: object) -> None:
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

        monkeypatch.setattr(fcntl, "flock", refuse)
        with pytest.raises(StoreError, match="cannot lock files") as caught, lock(A):
            raise AssertionError("entered")
        assert "flock" in str(caught.value.next)

    def test_a_file_that_is_there_is_never_opened_as_if_to_be_made(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Linux refuses that for other users' files in such a folder, by fs.protected_regular."""
        assert free(A)
        opened = os.open

        def protected(path: str, flags: int, *rest: int, **more: int) -> int:
            if flags & os.O_CREAT and not flags & os.O_EXCL and (folder / path).exists():
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
            return opened(path, flags, *rest, **more)

        monkeypatch.setattr(os, "open", protected)
        assert free(A)


@needs_root
class TestUsers:
    def test_each_is_kept_out_by_the_other_and_told_by_whom(self, open_folder: Path) -> None:
        with holding(lambda: lock(A)):
            assert as_user(NOBODY, lambda: _expect(A, "by `gpudebug next` of user root in /home/a/repo")) == 0
            assert as_user(NOBODY, lambda: free(B)) == 0
        with holding(lambda: lock(A, path="/home/n"), NOBODY) as other:
            assert "by `gpudebug next` of user nobody in /home/n" in busy(A)
            other.kill()
            assert free(A)
        assert as_user(NOBODY, lambda: free(A, B)) == 0

    def test_a_folder_made_by_any_user_serves_all(self, open_folder: Path) -> None:
        open_folder.parent.chmod(0o777)
        with holding(lambda: lock(A), NOBODY):
            assert open_folder.stat().st_uid == NOBODY
            assert mode(open_folder) == 0o1777
            busy(A)
            assert free(B)
        assert as_user(12345, lambda: free(A, B)) == 0

    def test_a_lock_that_one_may_only_read_is_one(self, open_folder: Path) -> None:
        assert free(A)
        (open_folder / f"{A}.lock").write_text("not empty, so that nobody opens it to all")
        (open_folder / f"{A}.lock").chmod(0o644)
        with holding(lambda: lock(A, path="/home/n"), NOBODY):
            assert "of user nobody in /home/n" in busy(A)
        with holding(lambda: lock(A)):
            assert as_user(NOBODY, lambda: _expect(A, "of user root")) == 0

    def test_a_folder_that_one_may_only_read_holds_and_names_nobody_wrong(
        self, open_folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(locks, "ENDING_S", 0.1)
        assert free(A)
        open_folder.chmod(0o755)
        with holding(lambda: lock(A), NOBODY):
            assert busy(A).endswith("by an unknown process")
        assert as_user(NOBODY, lambda: _refused(B)) == 0

    def test_nobody_speaks_for_another_user(self, open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A file with root's number that is not root's: root does not write it, and nobody reads it."""
        monkeypatch.setattr(locks, "ENDING_S", 0.1)
        assert free(B)

        def forge() -> None:
            path = open_folder / f"{A}.0.holder"
            path.write_text('{"path": "/forged"}')
            path.chmod(0o666)

        assert as_user(NOBODY, forge) == 0
        with holding(lambda: lock(A)), ExitStack() as held:
            assert busy(A).endswith("by an unknown process")
            forged = held.enter_context((open_folder / f"{A}.0.holder").open())
            fcntl.flock(forged, fcntl.LOCK_EX)
            assert busy(A).endswith("by an unknown process")
        assert (open_folder / f"{A}.0.holder").read_text() == '{"path": "/forged"}'

    def test_a_folder_that_is_closed_is_an_error(self, open_folder: Path) -> None:
        open_folder.mkdir()
        open_folder.chmod(0o700)
        assert as_user(NOBODY, lambda: _refused(A)) == 0


def _expect(uuid: str, words: str) -> None:
    assert words in busy(uuid)


def _refused(uuid: str) -> None:
    with pytest.raises(store.NotPermitted) as caught, lock(uuid):
        raise AssertionError("entered")
    assert hostlocks.VARIABLE in str(caught.value.next)
