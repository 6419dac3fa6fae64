"""The door of every failure, in a process of its own: what reaches whom, and with which status."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.campaigns import GPUDEBUG, environment, make_campaign

PROGRAM = """
import sys
from dataclasses import dataclass
from typing import Any
from gpudebug.core.answers.answer import Answer
from gpudebug.terminal import output
from gpudebug.core.errors import *
@dataclass(frozen=True)
class Example(Answer):
    a: Any
def command():
    {}
    return 0
sys.exit(output.run(command, json=lambda: {}, debug=lambda: {}))
"""


def run(
    body: str,
    tmp_path: Path,
    *,
    as_json: bool = False,
    debug: bool = False,
    env: dict[str, str | None] | None = None,
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.format(body, as_json, debug)],
        env=environment(env or {"TMPDIR": str(tmp_path)}),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ("ConfigError('m', file='f', line=3, next='n')", 1),
        ("UsageError('m', file='f', line=3, next='n')", 2),
        ("BusyError('m', file='f', line=3, next='n')", 6),
        ("InterruptedRun('m', file='f', line=3, next='n')", 130),
        ("LaunchError('m', status=127, file='f', line=3, next='n')", 1),
    ],
)
def test_an_expected_error_is_a_line_or_an_object(tmp_path: Path, error: str, status: int) -> None:
    done = run(f"raise {error}", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (status, "", "gpudebug: f:3: m; next: n\n")
    done = run(f"raise {error}", tmp_path, as_json=True)
    assert (done.returncode, done.stderr) == (status, "")
    said = json.loads(done.stdout)["error"]
    assert (said["message"], said["file"], said["line"], said["next"]) == ("m", "f", 3, "n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("debug", [False, True])
def test_a_defect_leaves_a_log(tmp_path: Path, debug: bool) -> None:
    done = run("raise KeyError('oh \\udcff')", tmp_path, debug=debug)
    assert (done.returncode, done.stdout) == (3, "")
    (log,) = tmp_path.iterdir()
    assert str(log) in done.stderr
    assert "KeyError" in log.read_text()
    assert ("Traceback" in done.stderr) is debug


def test_what_the_machine_refuses_is_no_defect(tmp_path: Path) -> None:
    done = run("raise OSError(28, 'No space left', '/a/b')", tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "gpudebug: /a/b: No space left: b; next: free some space, then run it again\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("status --json", "cannot write to standard output: No space left on device"),
        ("status", "cannot write to standard output: No space left on device"),
        ("show 1 --json", "there is no hypothesis 1"),
    ],
)
def test_a_full_device_is_said_on_standard_error(tmp_path: Path, command: str, said: str) -> None:
    campaign = make_campaign(tmp_path / "repo")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*GPUDEBUG, *command.split()],
            cwd=campaign.folder,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode in (1, 2)
    (line,) = done.stderr.splitlines()
    assert line.startswith("gpudebug: ") and said in line


@pytest.mark.parametrize("command", ["show {}", "next --more {}", "why --pid {}", "wait --for {}"])
def test_a_number_of_thousands_of_digits_gets_a_line_of_ours(tmp_path: Path, command: str) -> None:
    campaign = make_campaign(tmp_path / "repo")
    done = campaign.run(*command.format("9" * 5000).split()).expect(2)
    assert len(done.err.splitlines()) == 1 and len(done.err) < 250
    assert "limit" not in done.err and "parse" not in done.err


def test_a_defect_is_said_where_no_log_can_be_written(tmp_path: Path) -> None:
    nowhere = "import tempfile; tempfile.tempdir = '/no/such/folder'; raise KeyError(1)"
    done = run(nowhere, tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("gpudebug: a defect in gpudebug: KeyError; next: ")
    assert len(done.stderr.splitlines()) == 1


def test_a_message_over_several_lines_is_one(tmp_path: Path) -> None:
    done = run("raise ConfigError('a\\nb\\x1b[2Jc\\udcff', file='d\\ne', next='f')", tmp_path)
    assert done.stderr == "gpudebug: d\\ne: a\\nb\\x1b[2Jc\\udcff; next: f\n"


def test_ctrl_c_is_130(tmp_path: Path) -> None:
    done = run("raise KeyboardInterrupt", tmp_path)
    assert (done.returncode, done.stderr) == (130, "gpudebug: interrupted\n")


def test_a_reader_that_left_is_141(tmp_path: Path) -> None:
    body = "output.print_answer(Example(1), str, None, as_json=False)"
    with subprocess.Popen(["true"], stdin=subprocess.PIPE) as gone:
        assert gone.stdin is not None
        gone.wait()
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM.format(body, False, False)],
            stdout=gone.stdin,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, b"")


def test_control_characters_stay_out_of_text_and_in_json(tmp_path: Path) -> None:
    body = (
        "output.print_answer(Example(['x\\x1b[2Jy\\u202ez', {'b': 1}]), lambda e: e.a[0], None, as_json=%s)"
    )
    assert run(body % False, tmp_path).stdout == "x[2Jyz\n"
    assert json.loads(run(body % True, tmp_path).stdout) == {"a": ["x\x1b[2Jy\u202ez", {"b": 1}]}


def test_what_is_no_number_in_json_is_a_defect_and_not_broken_json(tmp_path: Path) -> None:
    done = run("output.print_answer(Example(float('nan')), str, None, as_json=True)", tmp_path, as_json=True)
    assert done.returncode == 3
    assert json.loads(done.stdout)["error"]["code"] == "defect"


TOKEN = "hf_" + "Ab3dEf6h" * 3


@pytest.mark.parametrize("debug", [False, True])
def test_no_failure_tells_a_secret(tmp_path: Path, debug: bool) -> None:
    env = {"TMPDIR": str(tmp_path), "WANDB_API_KEY": "correct-horse"}
    for error in ("UsageError('{0} {1}', file='{0}', next='{1}')", "KeyError('{0}', '{1}')"):
        raising = f"raise {error.format(TOKEN, 'correct-horse')}"
        for as_json in (False, True):
            done = run(raising, tmp_path, as_json=as_json, debug=debug, env=env)
            said = [done.stdout, done.stderr, *(log.read_text() for log in tmp_path.iterdir())]
            assert not any(TOKEN in text or "correct-horse" in text for text in said)
            assert "[redacted]" in "".join(said)
