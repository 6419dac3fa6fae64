"""Lines of kind `stacks` of imaginary processes, and the evidence that they make."""

from __future__ import annotations

from typing import Any

from tests.support.probe_lines import line

from gpudebug.core.inside.probe import ProcessKey
from gpudebug.core.inside.stacks import read_stacks, stacks_evidence
from gpudebug.core.records import StacksEvidence, Window
from gpudebug.core.redaction.redact import Redactor

FRAMES = ["job/train.py:<module>", "job/train.py:main", "PIL/Image.py:Image.resize"]
STACKS = [["data", [0, 1, 2], 7, 0.5, 0.4, 20], ["other", [0, 1], 9, 0.25, 0.0, 10]]


def told(pid: int = 1, since: float = 2.0, at: float = 4.0, **more: Any) -> str:
    entries = {
        "t0": 1000.0,
        "of": "training",
        "since": 1000.0 + since,
        "s": 1.0,
        "cpu": 0.5,
        "n": 40,
        "frames": FRAMES,
        "stacks": STACKS,
        "code": {"1:7": "image.resize(size)", "1:9": "time.sleep(1)"},
    }
    return line("stacks", pid, at, **{**entries, **more})


def evidence(text: str, window: tuple[float, float] | None = None, main: int | None = None) -> StacksEvidence:
    bounds = Window(start_s=window[0], end_s=window[1], samples=9, rule="steps") if window else None
    key = None if main is None else ProcessKey(None, main)
    found = stacks_evidence(read_stacks(text), bounds, key, Redactor().redact)
    assert found is not None
    return found
