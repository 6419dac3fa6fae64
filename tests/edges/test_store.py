"""The owner of paths: whole files at every moment, locks that fail closed, run folders that are sealed."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import random
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.processes import fork

from gpudebug.core.errors import BusyError, StoreError
from gpudebug.core.models import RunRecord
from gpudebug.core.redact import Redactor
from gpudebug.edges import store

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
        with pytest.raises(StoreError, match="not a regular file"):
            store.read_file(path)
        with pytest.raises(StoreError, match="not a regular file"):
            store.read_head(path, 10)

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

    def test_what_a_killed_writer_left_is_removed_later(self, file: Path) -> None:
        left, fresh = file.with_name(".file.md.abcdefgh.tmp"), file.with_name(".file.md.12345678.tmp")
        other = file.with_name(".other.md.abcdefgh.tmp")
        for path in (left, fresh, other):
            path.write_bytes(b"part")
        for path in (left, other):
            os.utime(path, (1, 1))
        replace(file, NEW)
        assert sorted(p.name for p in file.parent.iterdir()) == [fresh.name, other.name, file.name]

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


class TestReading:
    def test_a_missing_file_is_one_clear_error(self, tmp_path: Path) -> None:
        with pytest.raises(StoreError, match="No such file") as caught:
            store.read_file(tmp_path / "nothing.md")
        assert caught.value.next == "check the path"

    def test_a_file_that_cannot_be_right_is_refused(self, tmp_path: Path) -> None:
        with open(tmp_path / "huge", "wb") as f:
            f.truncate(257 << 20)
        with pytest.raises(StoreError, match="larger than 256 MB"):
            store.read_file(tmp_path / "huge")
        assert store.read_head(tmp_path / "huge", 4) == b"\0\0\0\0"

    def test_the_nearest_config_above_counts(self, tmp_path: Path) -> None:
        deep = tmp_path / "a" / "b"
        deep.mkdir(parents=True)
        (tmp_path / store.CONFIG).touch()
        assert store.find_root(deep) == tmp_path.resolve()
        (tmp_path / "a" / store.CONFIG).symlink_to("nowhere")
        assert store.find_root(deep) == (tmp_path / "a").resolve()


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


def a_record(**changes: object) -> RunRecord:
    facts: dict[str, object] = {
        "name": "0001-x",
        "campaign": "c",
        "role": "h1",
        "command": "python train.py",
        "argv": ("python", "train.py"),
        "cwd": "/",
        "start": "2026-01-01T00:00:00",
        **changes,
    }
    return RunRecord.model_validate(facts)


class TestRunFolders:
    def test_numbers_go_up_and_are_never_used_twice(self, tmp_path: Path) -> None:
        workspace = store.Workspace(tmp_path)
        assert workspace.run_names() == []
        assert [workspace.new_run(n).name for n in ("a", "b", "a")] == ["0001-a", "0002-b", "0003-a"]
        (tmp_path / "runs" / "0041-by-hand").mkdir()
        (tmp_path / "runs" / "notes").mkdir()
        (tmp_path / "runs" / "0099-file").touch()
        assert workspace.new_run("c").name == "0042-c"
        (tmp_path / "runs" / "9999-last").mkdir()
        assert workspace.new_run("d").name == "10000-d"
        assert workspace.run_names()[-2:] == ["9999-last", "10000-d"]

    def test_a_name_that_is_taken_by_a_file_is_passed_over(self, tmp_path: Path) -> None:
        (tmp_path / "runs").mkdir()
        (tmp_path / "runs" / "0001-a").touch()
        assert store.Workspace(tmp_path).new_run("a").name == "0002-a"

    @pytest.mark.parametrize("make", [Path.touch, os.mkfifo], ids=["a file", "a FIFO"])
    def test_runs_that_is_no_folder_is_refused(self, tmp_path: Path, make: object) -> None:
        make(tmp_path / "runs")  # type: ignore[operator]
        with pytest.raises(StoreError) as caught:
            store.Workspace(tmp_path).new_run("a")
        assert caught.value.file == str(tmp_path / "runs")

    def test_a_sealed_run_has_the_digest_of_every_file(self, tmp_path: Path) -> None:
        workspace = store.Workspace(tmp_path)
        run = workspace.new_run("h1")
        run.write("run.json", a_record())
        run.log.write_bytes(b"\xff\x00 output\n")
        store.copy_into(run.samples, b"elapsed,gpu_util\n")
        assert not run.sealed
        workspace.seal(run)
        assert run.sealed
        manifest = run.read("manifest.json")
        assert manifest["run"] == run.name
        assert set(manifest["files"]) == {"run.json", "train.log", "samples.csv"}
        for name, said in manifest["files"].items():
            assert said == digest((run.path / name).read_bytes())
        run.log.write_bytes(b"edited\n")
        assert run.digests()["train.log"] != manifest["files"]["train.log"]

    def test_every_text_of_a_record_is_redacted(self, tmp_path: Path) -> None:
        token = "hf_" + "Ab3" * 12
        scrub = Redactor({"DB_PASSWORD": "correct-horse"}, ()).redact
        run = store.Workspace(tmp_path, scrub).new_run("h1")
        record = a_record(
            command=f"train --token {token}",
            argv=("train", token),
            identity={"command": f"x {token}"},
            reason="password was correct-horse",
            packages={"a": token},
        )
        run.write("run.json", record)
        text = (run.path / "run.json").read_text()
        assert token not in text
        assert "correct-horse" not in text
        assert text.count("[redacted]") == 5

    @pytest.mark.parametrize("data", [b"{", b"\xff", b""])
    def test_a_broken_record_is_one_clear_error(self, tmp_path: Path, data: bytes) -> None:
        run = store.Workspace(tmp_path).new_run("h1")
        (run.path / "run.json").write_bytes(data)
        with pytest.raises(StoreError, match="not readable as JSON") as caught:
            run.read("run.json")
        assert caught.value.file == str(run.path / "run.json")

    def test_logs_and_samples_are_private(self, tmp_path: Path) -> None:
        store.start_file(tmp_path / "F.log")
        store.copy_into(tmp_path / "F.csv", b"x")
        for name in ("F.log", "F.csv"):
            assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600

    @pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
    def test_output_into_what_is_no_file_is_refused(self, tmp_path: Path, make: object) -> None:
        make(tmp_path / "F.csv")  # type: ignore[operator]
        with pytest.raises(StoreError, match="not a regular file"):
            store.start_file(tmp_path / "F.csv")
