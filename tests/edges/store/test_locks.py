"""Locks that fail closed, and claims that die with their holders."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.holders import all_end, holding
from tests.support.processes import fork

from gpudebug.core.errors import BusyError, StoreError
from gpudebug.edges import host, store
from gpudebug.edges.store import locks


@contextlib.contextmanager
def holder(path: Path, statement: str) -> Iterator[subprocess.Popen[bytes]]:
    """Another process inside `with STATEMENT`, until the end of the block."""
    program = (
        "import os, sys; from pathlib import Path; from gpudebug.edges import store\n"
        f"path = Path({str(path)!r})\n"
        f"with {statement}:\n    print('held', flush=True); sys.stdin.read()\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    try:
        yield process
    finally:
        process.communicate()


CLAIM = (
    "store.RunClaim(path, {'pid': os.getpid(), 'command': 'gpudebug next', 'since': '2026-01-01T00:00:00'})"
)


class TestLocks:
    def test_a_lock_waits_for_its_holder(self, tmp_path: Path) -> None:
        path = tmp_path / "runs" / ".lock"
        with holder(path, "store.locked(path)") as other:
            taken = threading.Event()

            def take() -> None:
                with store.locked(path):
                    taken.set()

            thread = threading.Thread(target=take)
            thread.start()
            assert not taken.wait(0.2)
            other.communicate()
            assert taken.wait(10)
            thread.join()

    @pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
    def test_without_locks_nothing_is_written(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
    ) -> None:
        def refuse(*_: object) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(fcntl, "flock", refuse)
        entered = False
        with pytest.raises(StoreError, match="cannot lock files") as caught, store.locked(tmp_path / "lock"):
            entered = True
        assert not entered
        assert "flock" in str(caught.value.next)
        with pytest.raises(StoreError, match="cannot lock files"):
            store.RunClaim(tmp_path / "claim", {})
        with pytest.raises(StoreError, match="cannot lock files"):
            store.check_locks(tmp_path)

    @pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda p: os.symlink("/etc/hostname", p)])
    def test_a_lock_file_that_is_none_is_refused(self, tmp_path: Path, make: object) -> None:
        path = tmp_path / "lock"
        make(path)  # type: ignore[operator]
        with pytest.raises(StoreError) as caught, store.locked(path):
            pass
        assert caught.value.next

    def test_check_locks_leaves_nothing(self, tmp_path: Path) -> None:
        store.check_locks(tmp_path)
        assert os.listdir(tmp_path) == []


class TestClaim:
    def test_a_held_claim_names_its_holder_and_since_when(self, tmp_path: Path) -> None:
        path = tmp_path / "runs" / ".claim"
        assert not store.claimed(path)
        with holder(path, CLAIM) as other:
            assert store.claimed(path)
            with pytest.raises(BusyError) as caught:
                store.RunClaim(path, {})
            assert f"pid {other.pid}, `gpudebug next`, since 2026-01-01T00:00:00" in str(caught.value)
            assert caught.value.exit_code == 6
        assert not store.claimed(path)

    def test_a_claim_dies_with_its_holder(self, tmp_path: Path) -> None:
        path = tmp_path / ".claim"
        with holder(path, CLAIM) as other:
            other.kill()
            other.wait()
            with store.RunClaim(path, {"pid": os.getpid()}):
                assert store.claimed(path)

    def test_whoever_was_handed_the_claim_keeps_it_for_a_dead_holder(self, tmp_path: Path) -> None:
        """A warden that is still ending what was left: the next one waits for it, not refused."""
        path = tmp_path / ".claim"
        program = (
            "import os, subprocess, sys; from pathlib import Path; from gpudebug.edges import store\n"
            f"path = Path({str(path)!r})\nclaim = {CLAIM}\n"
            "subprocess.Popen(['sleep', '0.5'], pass_fds=[claim.fd])\n"
            "os.kill(os.getpid(), 9)\n"
        )
        subprocess.run([sys.executable, "-c", program], check=False)
        assert store.claimed(path)
        began = time.monotonic()
        with store.RunClaim(path, {"pid": os.getpid()}):
            assert time.monotonic() - began < 9

    @pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"pid": "x"}', b"\xff"])
    def test_a_claim_that_says_nothing_of_use_is_no_obstacle(self, tmp_path: Path, text: bytes) -> None:
        path = tmp_path / ".claim"
        path.write_bytes(text)
        with store.RunClaim(path, {"pid": os.getpid()}):
            place = {"host": os.uname().nodename, "boot": host.boot_id()}
            assert json.loads(path.read_bytes()) == {"pid": os.getpid(), "place": place}
        assert path.read_bytes() == b""


SINCE = "2026-01-01T00:00:00+00:00"
SAID = {"pid": 12, "session": "a1", "command": "gpudebug next", "since": SINCE}
# Larger than any number that Linux gives a process.
NO_PID = 1 << 22


@contextlib.contextmanager
def dead_holder(path: Path, said: dict[str, object], ending: float) -> Iterator[int]:
    """A holder killed by `kill -9`; yields the pid of what inherited its claim, for `ending` seconds."""
    note = path.with_name("heir")

    def hold() -> None:
        claim = store.RunClaim(path, said)
        # Whatever can be inherited is, as by a helper that is started without care.
        heir = subprocess.Popen(["sleep", str(ending)], pass_fds=[claim.fd], close_fds=False)
        note.write_text(str(heir.pid))
        os.kill(os.getpid(), signal.SIGKILL)

    assert all_end([fork(hold)]).popitem()[1] == -signal.SIGKILL
    heir = int(note.read_text())
    try:
        yield heir
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(heir, signal.SIGKILL)


class TestNoPidIsGuessed:
    @pytest.mark.parametrize(
        "pid", [os.getpid(), 1, NO_PID, "x", None], ids=["ours", "init", "nobody", "text", "none"]
    )
    def test_a_dead_holder_is_waited_for_whatever_number_it_had(self, tmp_path: Path, pid: object) -> None:
        """The number may be another process's by now, or one of another container."""
        path = tmp_path / ".claim"
        with dead_holder(path, {**SAID, "pid": pid}, ending=60) as heir:
            assert store.claimed(path)
            assert store.held_by(path) == {}
            threading.Timer(0.15, os.kill, (heir, signal.SIGKILL)).start()
            with store.RunClaim(path, {"pid": 13}):
                assert store.held_by(path) == {"pid": 13}

    @pytest.mark.parametrize("pid", [NO_PID, "x", None])
    def test_a_living_holder_is_busy_whatever_number_it_says(self, tmp_path: Path, pid: object) -> None:
        path = tmp_path / ".claim"
        with holding(lambda: store.RunClaim(path, {**SAID, "pid": pid})):
            began = time.monotonic()
            with pytest.raises(BusyError):
                store.RunClaim(path, {})
            assert time.monotonic() - began < locks.ENDING_S / 2

    def test_patience_with_the_dead_ends_too(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(locks, "ENDING_S", 0.2)
        path = tmp_path / ".claim"
        with dead_holder(path, SAID, ending=60) as heir:
            with pytest.raises(BusyError) as caught:
                store.RunClaim(path, {})
            assert caught.value.message == (
                "what a gpudebug that is gone left here is still ending: "
                f"pid 12, session a1, `gpudebug next`, since {SINCE}"
            )
            assert caught.value.next
            assert store.held_by(path) == {}
            os.kill(heir, signal.SIGKILL)
            monkeypatch.undo()
            with store.RunClaim(path, SAID):
                assert store.held_by(path) == SAID


WORDS: dict[str, tuple[dict[str, object], str]] = {
    "all": (SAID, f": pid 12, session a1, `gpudebug next`, since {SINCE}"),
    "a person": ({**SAID, "session": None}, f": pid 12, `gpudebug next`, since {SINCE}"),
    "of another version": ({"since": SINCE, "colour": "red"}, f": since {SINCE}"),
    "nothing": ({}, ""),
    "too much": ({"command": "x" * 5000}, f": `{'x' * 199}…`"),
}


class TestHeldBy:
    @pytest.mark.parametrize(("said", "words"), WORDS.values(), ids=WORDS)
    def test_the_holder_is_named_by_what_it_says(
        self, tmp_path: Path, said: dict[str, object], words: str
    ) -> None:
        path = tmp_path / ".claim"
        with holding(lambda: store.RunClaim(path, said)):
            assert store.held_by(path) == said
            with pytest.raises(BusyError) as caught:
                store.RunClaim(path, {})
        assert caught.value.message == f"another gpudebug runs here{words}"

    def test_nobody_holds_what_was_never_held_or_was_released_or_died(self, tmp_path: Path) -> None:
        path = tmp_path / "runs" / ".claim"
        assert store.held_by(path) is None
        assert list(tmp_path.iterdir()) == []
        with holding(lambda: store.RunClaim(path, SAID)) as other:
            other.release()
            assert store.held_by(path) is None
        with holding(lambda: store.RunClaim(path, SAID)) as other:
            other.kill()
            assert store.held_by(path) is None
            assert path.read_bytes()

    def test_to_ask_changes_nothing(self, tmp_path: Path) -> None:
        path = tmp_path / ".claim"
        with holding(lambda: store.RunClaim(path, SAID)):
            before = {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in tmp_path.iterdir()}
            assert store.held_by(path) == SAID
            assert before == {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in tmp_path.iterdir()}

    @pytest.mark.parametrize("text", [b"", b"{", b"[1]", b"\xff", b"[" * 60000])
    def test_a_holder_that_says_nothing_of_use_is_no_name(self, tmp_path: Path, text: bytes) -> None:
        path = tmp_path / ".claim"
        with holding(lambda: store.RunClaim(path, SAID)):
            path.write_bytes(text)
            assert store.held_by(path) == {}
            with pytest.raises(BusyError) as caught:
                store.RunClaim(path, {})
        assert caught.value.message == "another gpudebug runs here"


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda p: os.symlink("/etc/hostname", p)])
def test_a_second_lock_that_is_none_is_refused_and_the_first_let_go(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    path = tmp_path / ".claim"
    make(tmp_path / ".claim.holder")
    with pytest.raises(StoreError) as caught:
        store.RunClaim(path, SAID)
    assert caught.value.next
    assert not store.claimed(path)


def test_a_second_lock_that_somebody_keeps_is_busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "ENDING_S", 0.1)
    path = tmp_path / ".claim"
    with holding(lambda: store.locked(tmp_path / ".claim.holder")):
        with pytest.raises(BusyError) as caught:
            store.RunClaim(path, SAID)
        assert "pid" not in caught.value.message
        assert not store.claimed(path)


def test_whoever_looks_keeps_nobody_from_the_claim(tmp_path: Path) -> None:
    path = tmp_path / ".claim"

    def look() -> None:
        while True:
            store.claimed(path)
            store.held_by(path)

    lookers = [fork(look) for _ in range(4)]
    try:
        for n in range(100):
            with store.RunClaim(path, {"pid": n}):
                assert store.held_by(path) == {"pid": n}
    finally:
        for pid in lookers:
            os.kill(pid, signal.SIGKILL)
        all_end(lookers)


@contextlib.contextmanager
def alone(marker: Path) -> Iterator[None]:
    """Raises where another process is in such a block: by a lock of another kind, which dies with us too."""
    with marker.open("a") as f:
        fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def test_of_16_that_fight_one_has_the_claim_and_the_killed_are_no_obstacle(tmp_path: Path) -> None:
    path, marker = tmp_path / ".claim", tmp_path / "marker"

    def fight(number: int) -> None:
        dice, entered = random.Random(number), 0
        while entered < 3:
            try:
                with store.RunClaim(path, {**SAID, "pid": number}), alone(marker):
                    entered += 1
                    held = store.held_by(path)
                    assert held is not None and held["pid"] == number
                    if entered == 2 and number % 4 == 0:
                        os.kill(os.getpid(), signal.SIGKILL)
                    time.sleep(0.002)
            except BusyError as e:
                assert e.message.startswith("another gpudebug runs here")
                time.sleep(dice.uniform(0.001, 0.02))

    fighters = {fork(lambda n=n: fight(n)): n for n in range(16)}  # type: ignore[misc]
    ends = all_end(list(fighters))
    assert {fighters[pid]: status for pid, status in ends.items()} == {
        n: -signal.SIGKILL if n % 4 == 0 else 0 for n in range(16)
    }
    assert store.held_by(path) is None
