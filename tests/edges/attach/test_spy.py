"""py-spy is found and tried, and what it says is told apart."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.jobs import TRAINING, needs_spy, running

from gpudebug.edges.attach import spy

# As py-spy 0.4.3 prints them.
NOT_PYTHON = "Error: Failed to find python version from target process\n\nStack backtrace:\n   0: anyhow\n"
REFUSED = (
    "Error: Failed to get process executable name. Check that the process is running.\n\nCaused by:\n"
    "    0: Permission denied (os error 13)\n"
)
ADVISED = (
    "Permission Denied: Try running again with elevated permissions by going 'sudo env \"PATH=$PATH\" !!'\n"
)
GONE = (
    "Error: Failed to get process executable name. Check that the process is running.\n\nCaused by:\n"
    "    0: No such file or directory (os error 2)\n"
)


@pytest.mark.parametrize(
    ("status", "said", "result"),
    [
        (1, NOT_PYTHON, "unknown"),
        (1, "Error: Unsupported version of Python: 3.99.0\n", "unknown"),
        (1, REFUSED, "refused"),
        (1, ADVISED, "refused"),
        (1, GONE, "gone"),
        (-31, "", "refused"),
        (1, "Error: Broken pipe (os error 32)\n", "failed"),
    ],
)
def test_what_py_spy_says_is_told_apart(status: int, said: str, result: str) -> None:
    found = spy.judged(status, said)
    assert found.result == result
    assert "\n" not in found.said
    assert found.said
    assert not found.said.startswith("Error: ")


def test_without_py_spy_it_is_missing_and_a_program_that_is_none_fails(tmp_path: Path) -> None:
    assert spy.look_once(None, 1).result == "missing"
    assert spy.look_once(str(tmp_path / "none"), 1).result == "failed"
    odd = tmp_path / "odd"
    odd.write_text("#!/bin/sh\necho no json\n")
    odd.chmod(0o755)
    assert spy.look_once(str(odd), 1).result == "failed"


@needs_spy
def test_a_python_is_seen_and_another_program_is_not(tmp_path: Path) -> None:
    with running(TRAINING, tmp_path) as job:
        found = spy.look_once(spy.find(), job.pid)
        assert found.result == "seen"
        assert found.dump[0]["pid"] == job.pid
    other = subprocess.Popen(["sleep", "60"])
    try:
        assert spy.look_once(spy.find(), other.pid).result == "unknown"
    finally:
        other.kill()
        other.wait()
    assert spy.look_once(spy.find(), other.pid).result == "gone"


def test_a_recording_never_stops_the_process() -> None:
    argv = spy.recording("py-spy", 7, "/dev/null", rate=3, seconds=9, idle=True)
    assert "--nonblocking" in argv
    assert "--idle" in argv
    assert "--idle" not in spy.recording("py-spy", 7, "/dev/null", rate=3, seconds=9, idle=False)


# A filter as containers have: process_vm_readv (310 on x86_64) fails with EPERM, or kills.
FILTERED = """
import ctypes, json, struct, sys
from gpudebug.edges.attach import processes, spy
kinds = {"refused": 0x00050001, "killed": 0x80000000}
def rule(code, true, false, value): return struct.pack("HBBI", code, true, false, value)
code = b"".join([
    rule(0x20, 0, 0, 0), rule(0x15, 0, 1, 310),
    rule(0x06, 0, 0, kinds[sys.argv[2]]), rule(0x06, 0, 0, 0x7FFF0000),
])
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
text = ctypes.create_string_buffer(code)
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Program(4, ctypes.addressof(text))), 0, 0) == 0
print(json.dumps([processes.filtered(), *spy.look_once(spy.find(), int(sys.argv[1]))[:2]]))
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the filter names a system call by its number")
@needs_spy
def test_a_seccomp_filter_that_refuses_is_got_round_and_one_that_kills_is_told(tmp_path: Path) -> None:
    with running(TRAINING, tmp_path) as job:
        for kind in ("refused", "killed"):
            argv = [sys.executable, "-c", FILTERED, str(job.pid), kind]
            done = subprocess.run(argv, capture_output=True, text=True, check=True)
            filtered, result, said = json.loads(done.stdout)
            assert filtered
            if kind == "killed":
                assert (result, said) == ("refused", "it was killed by signal 31")
            else:
                # It reads /proc/PID/mem then.
                assert result == "seen"
