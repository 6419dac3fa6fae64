"""A run's log and samples are read back: with their times, in any encoding, a flood without its middle."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudebug.core.samples.table import SampleTable
from gpudebug.engine.run import readings
from gpudebug.engine.run.readings import log_beside, read_log, read_run_samples, samples_beside

LINES = [f"step {n} loss {3 - n / 100:.2f}\n" for n in range(1, 101)]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_log_is_read_in_its_encoding(tmp_path: Path, encoding: str) -> None:
    log = tmp_path / "train.log"
    log.write_bytes("".join(LINES).encode(encoding))
    found = read_log(log, SampleTable(), {}, exit_status=None, signal=None)
    assert (found.steps, found.points, found.last) == (100, 100, 2.0)


def test_of_a_flood_the_middle_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readings, "_LOG_PART", len(LINES[0]) * 10)
    monkeypatch.setattr(readings, "_CHUNK", len(LINES[0]))
    log = tmp_path / "train.log"
    log.write_text("".join(LINES), "utf-8")
    found = read_log(log, SampleTable(), {}, exit_status=None, signal=None)
    assert found.first == 2.99 and found.last == 2.0
    assert 15 <= found.points <= 25


def test_what_is_beside_belongs_together(tmp_path: Path) -> None:
    for samples, log in (("samples.csv", "train.log"), ("f.csv", "f.log")):
        assert log_beside(tmp_path / samples) is None
        (tmp_path / log).touch()
        assert log_beside(tmp_path / samples) == tmp_path / log
        # Of no sampler's making.
        (tmp_path / samples).write_text("a,b\n1,2\n", "utf-8")
        assert samples_beside(tmp_path / log).rows == []
    assert read_run_samples(tmp_path / "missing.csv").rows == []
