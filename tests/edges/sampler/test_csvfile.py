"""What the sampler counts of its file, and what a second sampler makes of a file that it finds."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.sampling import SamplerProcess

from gpudebug.core.samples.row import HEADER

CPU = {"kind": "cpu", "cores": 1.0}


def digest(data: bytes) -> dict[str, object]:
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def test_it_counts_what_it_wrote_whatever_is_in_the_file(tmp_path: Path) -> None:
    with SamplerProcess(tmp_path, CPU, interval=0.05) as run:
        assert run.answer["counted"] == digest(HEADER.encode())
        run.launch()
        run.wait_for_rows(5)
        data = run.csv.read_bytes()
        with run.csv.open("r+b") as file:
            file.seek(len(HEADER))
            file.write(b"9")
        assert run.stop() == 0
    counted = run.counted()
    assert counted["bytes"] == run.csv.stat().st_size > len(data)
    assert counted != digest(run.csv.read_bytes())
    counts = [message["counted"] for message in run.said() if "counted" in message]
    assert digest(data) in counts
    assert [c["bytes"] for c in counts] == sorted(c["bytes"] for c in counts)


ROWS = HEADER + "0,12,,,,0,CPU,,,,,,1,,,,,,,,\n0.1,13,,,,0,CPU,,,,,,1,,,,,,,,\n"


@pytest.mark.parametrize("more", ["", "0.2,99,,,,0,CPU,,,,,,1,,,,,,,,\n", "0.2,9"])
def test_it_resumes_what_was_counted_and_gives_up_what_was_not(tmp_path: Path, more: str) -> None:
    (tmp_path / "samples.csv").write_text(ROWS + more)
    with SamplerProcess(tmp_path, CPU, resume=True, restarts=1, counted=digest(ROWS.encode())) as run:
        run.launch(t0=time.monotonic() - 5)
        run.wait_for_rows(4)
        assert run.stop() == 0
    data = run.csv.read_bytes()
    assert data.startswith(ROWS.encode())
    assert b",99," not in data
    assert run.counted() == digest(data)


def another(path: Path) -> None:
    path.write_text(ROWS.replace("0.1,13", "0.1,99"))


def shorter(path: Path) -> None:
    path.write_text(HEADER)


def link(path: Path) -> None:
    path.with_name("elsewhere").write_text(ROWS)
    path.symlink_to("elsewhere")


@pytest.mark.parametrize("put", [another, shorter, link, os.mkfifo, Path.mkdir])
def test_it_resumes_nothing_else(tmp_path: Path, put: Callable[[Path], object]) -> None:
    put(tmp_path / "samples.csv")
    with SamplerProcess(tmp_path, CPU, resume=True, restarts=1, counted=digest(ROWS.encode())) as run:
        assert run.wait() == 4
    assert run.answer["error"]["message"] == "samples.csv was changed by another program"
