"""A signal that arrives while garbage is collected ends a training that the probe watches."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import gpudebug

PROBE = str(Path(gpudebug.__file__).parent / "training" / "probe")

PROGRAM = """\
import gc, signal, sys, time
sys.path.insert(0, sys.argv[1])
from gpudebug_probe.raised import give_back

def watcher(phase, info):
    pass

gc.collect()
gc.callbacks.append(watcher)
give_back(watcher)
def ended(number, frame):
    raise RuntimeError("ended")
signal.signal(signal.SIGALRM, ended if sys.argv[2] == "own" else signal.default_int_handler)
kept = [[None] for _ in range(2_000_000)]
# It arrives in the collector's C, whose end calls the watcher first.
signal.setitimer(signal.ITIMER_REAL, 0.001)
gc.collect()
time.sleep(20)
print("went on")
"""


@pytest.mark.parametrize(
    ("handler", "raised"), [("own", "RuntimeError: ended"), ("pythons", "KeyboardInterrupt")]
)
def test_what_a_handler_raises_in_the_collector_is_raised(handler: str, raised: str, tmp_path: Path) -> None:
    words = [sys.executable, "-c", PROGRAM, PROBE, handler]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode != 0 and "went on" not in done.stdout
    assert done.stderr.strip().endswith(raised) and "ignored" not in done.stderr


def test_what_else_is_raised_there_is_shown_as_before(tmp_path: Path) -> None:
    code = PROGRAM.partition("def ended")[0].replace("    pass", "    1 / 0") + "gc.collect()\n"
    words = [sys.executable, "-c", code, PROBE, "own"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "ZeroDivisionError" in done.stderr
