"""An interrupt below pipes, parents and forwarders: a training gets one, and what it prints then arrives."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.support.processes import Driver, nobody_left, spec_for, wait_until

from gpudebug.edges.launcher.warden import interrupt
from gpudebug.edges.launcher.warden.processes import Proc

TRAINING = """
import signal, sys, time
from pathlib import Path
got = []
signal.signal(signal.SIGINT, lambda *_: got.append(1))
print("loss 1", flush=True)
Path("ready").touch()
until = time.monotonic() + 20
while not got and time.monotonic() < until: time.sleep(0.02)
time.sleep(0.6)
print("loss saved", len(got), flush=True)
"""
CAPTURES = "import subprocess, sys; print(subprocess.run(sys.argv[1:], stdout=-1, text=True).stdout)"
FORWARDS = """
import signal, subprocess, sys
child = subprocess.Popen(sys.argv[1:])
signal.signal(signal.SIGINT, lambda *_: child.send_signal(2))
sys.exit(child.wait())
"""
COMMANDS = {
    "alone": "exec TRAINING",
    "a shell that dies of it": "TRAINING; true",
    "a filter": "TRAINING | grep loss",
    "a filter in a script of its own": "sh -c 'TRAINING' | sed s/loss/loss/",
    "a parent that captures": f"PYTHON -c '{CAPTURES}' TRAINING",
    "a forwarder": "./uv TRAINING",
    "timeout": "timeout 30 TRAINING",
    "timeout in a shell": "timeout 30 TRAINING; true",
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_the_training_is_interrupted_once_and_what_it_prints_arrives(tmp_path: Path, command: str) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    (tmp_path / "uv").write_text(f"#!{sys.executable}\n{FORWARDS}")
    (tmp_path / "uv").chmod(0o755)
    text = command.replace("TRAINING", f"{sys.executable} train.py").replace("PYTHON", sys.executable)
    with nobody_left([tmp_path]):
        spec = spec_for(("sh", "-c", text), tmp_path, cgroup="off", timeout=1.5, ladder=(6.0, 1.0))
        driver = Driver(spec)
        wait_until((tmp_path / "ready").exists)
        assert driver.wait() == 0
    result = driver.launched()
    assert (tmp_path / "train.log").read_text().split()[-3:] == ["loss", "saved", "1"]
    assert (result["outcome"], result["ladder"], result["leaked"]) == ("TIMED_OUT", "interrupt", 0)


def test_a_reader_is_told_in_time_though_its_writer_heeds_nothing(tmp_path: Path) -> None:
    """It may be the training itself, and the writer a helper."""
    deaf = "trap '' INT; echo loss; exec sleep 30"
    reads = "import sys\ntry: sys.stdin.read()\nexcept KeyboardInterrupt: print('saved')"
    text = f'sh -c "{deaf}" | {sys.executable} -c "{reads}"'
    with nobody_left([tmp_path]):
        spec = spec_for(("sh", "-c", text), tmp_path, cgroup="off", timeout=1.0, ladder=(2.0, 0.5))
        assert Driver(spec).wait() == 0
    assert (tmp_path / "train.log").read_text() == "saved\n"


@pytest.mark.parametrize(("ran", "expected"), [(50, {2}), (500, set())], ids=["a filter", "a training"])
def test_who_reads_and_worked_far_more_is_no_filter(
    monkeypatch: pytest.MonkeyPatch, ran: int, expected: set[int]
) -> None:
    monkeypatch.setattr(interrupt.os, "readlink", lambda path: "pipe:[1]")
    monkeypatch.setattr(interrupt.os, "listdir", lambda path: ["0"])
    monkeypatch.setattr(interrupt, "_is_read", lambda pid, number: pid == 2)
    writer, reader = (
        Proc(pid, 1, session=1, start=1, state="S", threads=1, cpu=cpu) for pid, cpu in ((1, 20), (2, ran))
    )
    assert interrupt._readers([writer, reader]) == expected
