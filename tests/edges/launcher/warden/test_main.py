"""The warden's process as such: small, quick, alone, and gone when nobody holds its lifeline."""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from gpudebug.core.text.shell_words import isolated_argv
from gpudebug.edges import launcher
from gpudebug.edges.launcher.link import STATEMENT

FOLDER = Path(launcher.__file__).parent
ARGV = isolated_argv(sys.executable, [str(FOLDER)], STATEMENT)


def request(tmp_path: Path, *argv: str) -> bytes:
    spec = {
        "path": argv[0],
        "argv": argv,
        "env": {},
        "cwd": str(tmp_path),
        "log": str(tmp_path / "log"),
        "marker": str(tmp_path),
        "timeout": None,
        "max_output": None,
        "ladder": [0.2, 0.2],
        "grace": 1.0,
        "give_up": 5.0,
        "cgroup": "off",
        "sampler": None,
    }
    return json.dumps(spec).encode() + b"\n"


def start() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ARGV, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )


@pytest.mark.parametrize("said", [b"", b'{"path": "/bin/touch", "argv": ["touch", "x"]'])
def test_a_lifeline_cut_before_the_specification_is_whole_starts_nothing(tmp_path: Path, said: bytes) -> None:
    warden = start()
    out, err = warden.communicate(said, timeout=30)
    assert (out, err, warden.returncode) == (b"", b"", 0)


def test_events_are_lines_of_json(tmp_path: Path) -> None:
    warden = start()
    assert warden.stdin is not None and warden.stdout is not None
    warden.stdin.write(request(tmp_path, "/bin/sh", "-c", "exit 3"))
    warden.stdin.flush()
    started, ended = (json.loads(warden.stdout.readline()) for _ in range(2))
    assert (started["event"], ended["event"], ended["exit_status"]) == ("started", "ended", 3)
    assert ended["t0"] == started["t0"]
    assert warden.wait(10) == 0
    warden.communicate()


def test_commands_that_arrive_in_pieces(tmp_path: Path) -> None:
    warden = start()
    assert warden.stdin is not None and warden.stdout is not None
    whole = request(tmp_path, "/bin/sleep", "60") + b"nonsense\nstop TIMED_OUT because of m\xc3\xa4rz\n"
    for position in range(0, len(whole), 50):
        warden.stdin.write(whole[position : position + 50])
        warden.stdin.flush()
        time.sleep(0.005)
    events = [json.loads(line) for line in warden.stdout]
    assert (events[-1]["outcome"], events[-1]["reason"]) == ("TIMED_OUT", "because of märz")
    warden.communicate()


def test_terminal_signals_do_not_reach_it(tmp_path: Path) -> None:
    warden = start()
    assert warden.stdin is not None and warden.stdout is not None
    warden.stdin.write(request(tmp_path, "/bin/sleep", "60"))
    warden.stdin.flush()
    warden.stdout.readline()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        warden.send_signal(number)
    time.sleep(0.2)
    assert warden.poll() is None
    assert len(psutil.Process(warden.pid).children()) == 1
    out, _ = warden.communicate()
    assert json.loads(out.splitlines()[-1])["outcome"] == "INTERRUPTED"


def test_nobody_listening_does_not_keep_it_from_ending_the_job(tmp_path: Path) -> None:
    warden = start()
    assert warden.stdin is not None and warden.stdout is not None
    warden.stdin.write(request(tmp_path, "/bin/sleep", "60"))
    warden.stdin.flush()
    warden.stdout.readline()
    job = psutil.Process(warden.pid).children()[0]
    warden.stdout.close()
    warden.stdin.close()
    assert warden.wait(10) == 0
    assert not job.is_running()
    assert warden.stderr is not None
    assert warden.stderr.read() == b""
    warden.stderr.close()


def test_it_waits_without_working(tmp_path: Path) -> None:
    warden = start()
    assert warden.stdin is not None and warden.stdout is not None
    warden.stdin.write(request(tmp_path, "/bin/sleep", "60"))
    warden.stdin.flush()
    warden.stdout.readline()
    process = psutil.Process(warden.pid)
    before = process.cpu_times(), process.num_ctx_switches().voluntary
    time.sleep(0.5)
    assert process.cpu_times() == before[0]
    assert process.num_ctx_switches().voluntary - before[1] <= 2
    assert process.num_threads() == 1
    assert process.memory_info().rss < 30e6
    warden.communicate()


def test_it_imports_nothing_but_the_standard_library() -> None:
    """And little of that: what it loads is loaded at every launch."""
    for path in sorted((FOLDER / "warden").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names, path
    statement = "from warden import main; print(len(sys.modules), 'site' in sys.modules, 're' in sys.modules)"
    argv = isolated_argv(sys.executable, [str(FOLDER)], statement)
    count, site, _ = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()
    assert site == "False"
    assert int(count) < 90


def test_it_runs_beside_modules_of_the_same_names(tmp_path: Path) -> None:
    """A training folder may hold a json.py; the warden must not load it."""
    for name in ("json", "signal", "warden"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('loaded the wrong module')\n")
    done = subprocess.run(
        ARGV,
        input=b"",
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
