"""The warden's running digests: what a job wrote once is known, whatever it does to the file later."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.support.processes import Driver, sampler_for, spec_for, wait_until

from gpudebug.edges.launcher import launch
from gpudebug.edges.launcher.warden import digests


def digest(data: bytes) -> dict[str, Any]:
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def counted(folder: Path, statement: str) -> dict[str, Any]:
    (folder / "records").mkdir(parents=True)
    argv = (sys.executable, "-c", f"import os, time\n{statement}")
    return dict(launch(spec_for(argv, folder, records=str(folder / "records"))).counted)


def test_the_log_is_counted_as_it_grows(tmp_path: Path) -> None:
    found = counted(tmp_path, "os.write(1, b'a\\n'); time.sleep(0.6); os.write(1, b'b\\n')")
    assert found == {"train.log": digest(b"a\nb\n")}


def test_what_was_seen_stays_counted(tmp_path: Path) -> None:
    statement = "os.write(1, b'first\\n'); time.sleep(0.8); os.truncate('train.log', 0); os.write(1, b'x\\n')"
    assert counted(tmp_path, statement) == {"train.log": digest(b"first\n")}
    assert (tmp_path / "train.log").read_bytes() == b"x\n"


def test_the_probe_record_is_counted_once_it_is_there(tmp_path: Path) -> None:
    statement = "time.sleep(0.3); open('records/probe.jsonl', 'w').write('{}\\n'); time.sleep(0.4)"
    assert counted(tmp_path, statement)["probe.jsonl"] == digest(b"{}\n")


@pytest.mark.parametrize(
    "put", ["os.symlink('train.log', 'records/probe.jsonl')", "os.mkfifo('records/probe.jsonl')"]
)
def test_what_is_no_file_is_not_followed(tmp_path: Path, put: str) -> None:
    assert set(counted(tmp_path, f"{put}; time.sleep(0.6)")) == {"train.log"}


def test_a_flood_is_caught_up_with_at_the_end(tmp_path: Path) -> None:
    statement = "for _ in range(60): os.write(1, b'y' * 1048576)"
    found = counted(tmp_path, statement)["train.log"]
    assert found == digest((tmp_path / "train.log").read_bytes())
    (tmp_path / "train.log").unlink()


def test_without_a_folder_nothing_is_counted(tmp_path: Path) -> None:
    assert launch(spec_for(("true",), tmp_path)).counted == {}


def test_a_look_takes_in_a_bounded_part(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"z" * 1000)
    fd = os.open(tmp_path / "log", os.O_RDONLY)
    counter = digests.Counter(fd)
    assert counter.follow(600)
    assert counter.counted() == digest(b"z" * 600)
    assert not counter.follow(600)
    assert counter.counted() == digest(b"z" * 1000)
    os.close(fd)


def test_others_cannot_speak_in_the_name_of_warden_and_sampler(tmp_path: Path) -> None:
    """A pipe could be opened through /proc by every process that may look there, root's jobs among them."""
    driver = Driver(spec_for(("sleep", "30"), tmp_path, sampler=sampler_for(tmp_path)))
    wait_until(driver.sampler)
    time.sleep(0.2)
    warden, sampler = driver.warden(), driver.sampler()
    assert warden is not None
    assert sampler is not None
    for process in (warden, sampler):
        for number in (0, 1):
            with pytest.raises(OSError, match=r"No such device|Permission denied"):
                os.close(os.open(f"/proc/{process.pid}/fd/{number}", os.O_WRONLY))
    driver.kill()
    wait_until(lambda: not warden.is_running())
