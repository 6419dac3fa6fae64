"""Locks that fail closed, and claims that die with their holders."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpudebug.core.errors import BusyError, StoreError
from gpudebug.edges import store


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


CLAIM = "store.Claim(path, {'pid': os.getpid(), 'command': 'gpudebug next', 'since': '2026-01-01T00:00:00'})"


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
            store.Claim(tmp_path / "claim", {})
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
                store.Claim(path, {})
            assert f"pid {other.pid}, `gpudebug next`, since 2026-01-01T00:00:00" in str(caught.value)
            assert caught.value.exit_code == 6
        assert not store.claimed(path)

    def test_a_claim_dies_with_its_holder(self, tmp_path: Path) -> None:
        path = tmp_path / ".claim"
        with holder(path, CLAIM) as other:
            other.kill()
            other.wait()
            with store.Claim(path, {"pid": os.getpid()}):
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
        with store.Claim(path, {"pid": os.getpid()}):
            assert time.monotonic() - began < 9

    @pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"pid": "x"}', b"\xff"])
    def test_a_claim_that_says_nothing_of_use_is_no_obstacle(self, tmp_path: Path, text: bytes) -> None:
        path = tmp_path / ".claim"
        path.write_bytes(text)
        with store.Claim(path, {"pid": os.getpid()}):
            assert json.loads(path.read_bytes()) == {"pid": os.getpid()}
        assert path.read_bytes() == b""
