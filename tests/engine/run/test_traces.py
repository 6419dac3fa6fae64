"""What a run's folder says of its trace, and where `sample` leaves it."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import gpudebug

from gpudebug.core.records import Evidence
from gpudebug.core.words import Outcome
from gpudebug.edges import removal
from gpudebug.engine.run.traces import keep_beside, located, slowed, trace_of

TOLD = {"kind": "torch_profile", "pid": 1, "file": "trace.json.gz", "steps": 4, "overhead": 0.5}
TRAINING = """
import time, torch

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(30):
    time.sleep(0.005)
    model(torch.ones(4)).backward()
    optimizer.step()
"""


def folder_of(tmp_path: Path, *told: dict[str, Any]) -> Path:
    lines = [{"kind": "start", "pid": 1, "t": 1.0}, *told]
    (tmp_path / "probe.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tmp_path


def test_a_run_without_a_profile_has_none(tmp_path: Path) -> None:
    assert trace_of(tmp_path) is None
    assert trace_of(folder_of(tmp_path)) is None
    assert located(None, tmp_path) is None


def test_a_trace_that_is_not_there_is_none(tmp_path: Path) -> None:
    folder_of(tmp_path, TOLD)
    found = trace_of(tmp_path)
    assert found == {"why": "trace.json.gz is not there"}
    assert located(found, tmp_path) is None


def test_what_was_told_of_one_that_is_and_what_it_says(tmp_path: Path) -> None:
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 1.0, "dur": 2.0}
    with gzip.open(folder_of(tmp_path, TOLD) / "trace.json.gz", "wt") as f:
        json.dump({"traceEvents": [event]}, f)
    found = trace_of(tmp_path)
    assert found is not None
    assert (found["steps"], found["overhead"]) == (4, 0.5)
    assert (found["analysis"]["events"], found["analysis"]["busy_share"]) == (1, None)
    assert [row["name"] for row in found["analysis"]["operators"]] == ["aten::add"]
    assert located(found, tmp_path) == {**found, "path": str(tmp_path / "trace.json.gz")}


def test_one_that_cannot_be_read_is_there_all_the_same(tmp_path: Path) -> None:
    (folder_of(tmp_path, {**TOLD, "why": "ended"}) / "trace.json.gz").write_bytes(b"no gzip")
    found = trace_of(tmp_path)
    assert found is not None
    assert (found["file"], found["analysis"]) == ("trace.json.gz", None)
    assert found["why"].startswith("ended; ")


def test_runs_that_were_profiled_are_named() -> None:
    plain = Evidence(run="0001-baseline-workload", role="baseline-workload", outcome=Outcome.COMPLETED)
    profiled = Evidence(run="0002-sample", role="sample", outcome=Outcome.COMPLETED, trace={"steps": 4})
    assert slowed([plain]) == []
    assert slowed([plain, profiled]) == ["PyTorch's profiler was in 0002-sample: it takes time of its own"]


def test_every_rank_goes_beside_the_samples(tmp_path: Path) -> None:
    told, beside = tmp_path / "told", tmp_path / "run.csv"
    told.mkdir()
    folder_of(told, TOLD, {**TOLD, "pid": 2, "file": "trace.rank1.json.gz"})
    for name in ("trace.json.gz", "trace.rank1.json.gz"):
        (told / name).write_text(name)
    evidence = Evidence(run="run", role="sample", outcome=Outcome.COMPLETED, trace=trace_of(told))
    with removal.folder(told) as folder:
        kept = keep_beside(evidence, folder, beside).trace
    assert kept is not None
    assert kept["files"] == ["run.trace.json.gz", "run.trace.rank1.json.gz"]
    assert (tmp_path / "run.trace.rank1.json.gz").read_text() == "trace.rank1.json.gz"


@pytest.mark.slow
def test_sample_leaves_the_trace_beside_the_samples_and_the_status_alone(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "fit.py").write_text(TRAINING + "raise SystemExit(3)\n")
    words = ["-o", "run.csv", "--torch-profile", "wait=2,warmup=1,active=2", "--json"]
    done = gpudebug(tmp_path, "sample", *words, "--", sys.executable, "fit.py").expect(3)
    trace = done.json["trace"]
    assert trace["path"] == str(tmp_path / "run.trace.json.gz")
    assert trace["steps"] == 2
    assert {p.name for p in tmp_path.iterdir()} == {"fit.py", "run.csv", "run.log", "run.trace.json.gz"}


def test_nothing_is_profiled_that_nobody_asked_to(tmp_path: Path) -> None:
    """A variable of the shell that gpudebug was started from is no request."""
    code = "import os; print(os.environ.get('GPUDEBUG_TORCH_PROFILE'))"
    env = {"GPUDEBUG_TORCH_PROFILE": "wait=0,warmup=0,active=1"}
    done = gpudebug(tmp_path, "sample", "--json", "--", sys.executable, "-c", code, env=env).expect(0)
    assert done.json["trace"] is None
    assert Path(done.json["log"]).read_text() == "None\n"


@pytest.mark.parametrize(
    ("spec", "said"),
    [("activ=4", "did you mean active?"), ("active=0", "at least 1"), ("", "a part of it is empty")],
)
def test_what_cannot_be_meant_starts_nothing(tmp_path: Path, spec: str, said: str) -> None:
    done = gpudebug(tmp_path, "sample", "--torch-profile", spec, "--", "touch", "started").expect(125)
    assert said in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_command_that_trains_nothing_is_told_to_have_no_trace(tmp_path: Path) -> None:
    done = gpudebug(tmp_path, "sample", "--torch-profile", "default", "--", "true").expect(0)
    assert "note: no trace: the probe saw no process of the command" in done.out
