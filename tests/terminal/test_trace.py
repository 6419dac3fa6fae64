"""A trace as text, as the command prints it."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support import traces
from tests.support.places import DATA
from tests.support.traces import device, host

from gpudebug.core.answers.analyze import TraceAnswer
from gpudebug.core.trace.gaps import CAUSES
from gpudebug.core.trace.summary import summarise
from gpudebug.terminal.trace import cause, trace

RECORDED = DATA / "trace_cpu.json.gz"


def analyze(*args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gpudebug", "analyze", *args]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_page_ranks_why_the_device_idles(tmp_path: Path) -> None:
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(traces.text(traces.training(20))))
    said = analyze(str(path))
    assert said.returncode == 0, said.stderr
    lines = said.stdout.splitlines()
    assert lines[0].startswith(f"{path}: trace of ")
    assert lines[0].endswith("20 steps, 5,000 events, rank 0 of 2")
    assert lines[1].startswith("device 0 (Synthetic GPU): busy ")
    ranked = [line for line in lines if line.lstrip()[:2] in ("1.", "2.", "3.")]
    assert "waiting for the data loader" in ranked[0]
    shares = [float(line.split("%")[0].split()[-1]) for line in ranked]
    assert shares == sorted(shares, reverse=True)
    assert any(line.startswith("Try first: more workers") for line in lines)
    for part in ("Steps:", "Longest gap", "Copies", "Calls that wait", "NCCL", "Kernels:"):
        assert any(line.startswith(part) for line in lines), part
    assert max(map(len, lines[1:])) <= 110
    answer = json.loads(analyze(str(path), "--json").stdout)
    assert answer["file"] == str(path)
    assert {"devices", "gaps", "kernels_per_step", "mean_kernel_us", "memcpy", "syncs", "operators"} <= set(
        answer
    )
    assert {"busy_share", "idle_s", "queue", "launches"} <= set(answer["devices"][0])


def test_a_trace_of_a_cpu_says_so_and_what_the_host_waited_for(tmp_path: Path) -> None:
    # Recognised by its content, not by its name.
    path = tmp_path / "profile.bin"
    shutil.copy(RECORDED, path)
    said = analyze(str(path))
    assert said.returncode == 0, said.stderr
    assert "device utilisation unknown: no device event in the trace" in said.stdout
    assert "in 4 fetches" in said.stdout
    assert "aten::addmm" in said.stdout


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b'{"traceEvents": []}', "has no events"),
        (b'{"traceEvents": [{"ph": "X", "na', "cut off before its first event"),
        (gzip.compress(b'{"traceEvents": [', mtime=0)[:-9], "cut off before its first event"),
    ],
)
def test_bad_traces_are_one_clear_line(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(content)
    said = analyze(str(path))
    assert said.returncode == 1
    assert says in said.stderr
    assert str(path) in said.stderr
    assert "torch.profiler" in said.stderr
    assert "Traceback" not in said.stderr


def test_a_bare_trace_has_no_empty_parts() -> None:
    answer = summarise([traces.text([device("k", 0, 5)], header={})]).answer
    page = trace(TraceAnswer(file="t.json", **answer))
    assert "unknown a step" in page
    assert "None" not in page
    assert "\n\n\n" not in page


def test_every_cause_has_its_words() -> None:
    assert all(cause(name) != name for name in CAUSES)


def test_frames_of_python_are_shown_as_they_are() -> None:
    events = [
        host("python_function", "train.py(8): <module>", 0, 200),
        host("python_function", "<built-in method item of Tensor object at 0x7f1bf085e6c0>", 8, 80),
        host("cpu_op", "aten::item", 10, 30),
    ]
    text = trace(TraceAnswer(file="t.json", **summarise([traces.text(events)]).answer))
    assert "1 in <built-in method item of Tensor> < train.py(8): <module>" in text
