"""Recordings in files, run by run."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support import monitors

from gpudebug.core.errors import GpudebugError
from gpudebug.core.samples.table import read_samples
from gpudebug.engine.run.recordings import one_run, recording

FOREIGN = {
    "smi.csv": (monitors.query().encode(), "nvidia-smi --query-gpu"),
    "bare.csv": (monitors.query(header=False).encode(), "nvidia-smi --query-gpu"),
    "dmon.txt": (monitors.dmon().encode(), "nvidia-smi dmon"),
    "dcgmi.txt": (monitors.dcgmi().encode(), "dcgmi dmon"),
    "run.wandb": (monitors.wandb_run(), "W&B system metrics"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_recordings_become_samples_of_ours(tmp_path: Path, name: str) -> None:
    data, source = FOREIGN[name]
    (tmp_path / name).write_bytes(data)
    found = recording(tmp_path / name)
    assert found.source == source
    run = one_run(found, None, name)
    assert run.text is not None
    assert read_samples(run.text.splitlines(keepends=True), "x").rows == run.samples.rows
    assert [d[0] for d in run.samples.devices] == [0, 1]
    assert {r.gpu_util for r in run.samples.rows} == {20, 90}


def test_a_csv_that_was_always_read_stays_as_it_is(tmp_path: Path) -> None:
    text = "elapsed,gpu_util,mem_util,mem_used_mb,mem_total_mb\n0.5,40,1,2,3\n1.0,41,1,2,3\n"
    (tmp_path / "seed.csv").write_text(text)
    (run,) = recording(tmp_path / "seed.csv").runs
    assert run.text is None
    assert run.samples.rows == read_samples(text.splitlines(keepends=True), "x").rows


def test_of_several_runs_one_must_be_named(tmp_path: Path) -> None:
    path = tmp_path / "two.csv"
    path.write_text(monitors.query(60) + monitors.query(40, header=False, start=300))
    found = recording(path)
    with pytest.raises(
        GpudebugError, match=r"holds 2 runs \(1: 0.0 to 59.0 s; 2: 300.0 to 339.0 s\)"
    ) as told:
        one_run(found, None, str(path))
    assert told.value.next == "say which one: --run N"
    assert len(one_run(found, 2, str(path)).samples.rows) == 80
    with pytest.raises(GpudebugError, match="has no run 3: it holds 2 runs"):
        one_run(found, 3, str(path))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"PAR1" + bytes(50), "is a Parquet table, not text"),
        ("step 1 loss 2\n".encode("utf-16"), "is text in UTF-16, not text"),
        (b"<html>404</html>", "is an HTML page"),
        (b"step 1 loss 2\n", "not a samples CSV"),
        (b":W&B\xe1\xbe\x00", "has no rows of system metrics yet"),
    ],
)
def test_what_is_no_recording_is_refused(tmp_path: Path, data: bytes, said: str) -> None:
    (tmp_path / "f").write_bytes(data)
    with pytest.raises(GpudebugError, match=said):
        recording(tmp_path / "f")
