"""What is reported of collectives where PyTorch's flight recorder is on."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.probed import PROBE, lines_of

sys.path.append(str(PROBE))

from gpudebug_probe import flight

US = 1_795_674_105_457_731


def entry(number: int, **more: Any) -> dict[str, Any]:
    """One of PyTorch 2.14's dump of gloo."""
    known = {
        "collective_seq_id": number, "input_sizes": [[10, 100], []], "is_p2p": False, "op_id": number,
        "process_group": ["0", "default_pg"], "profiling_name": "gloo:all_reduce", "state": "scheduled",
        "time_created_ns": 1000 * (US + number), "time_discovered_started_ns": 0, "timeout_ms": 1_800_000,
    }  # fmt: skip
    return {**known, **more}


class Job:
    """A process whose flight recorder holds `entries`, and what it reported."""

    def __init__(self, folder: Path, world: int = 2, rank: int = 1) -> None:
        self.entries: list[Any] = []
        self.folder = folder
        self.asked: list[tuple[bool, bool]] = []
        bindings = SimpleNamespace(_dump_fr_trace_json=self.dump, _dump_fr_trace=None)
        torch = SimpleNamespace(_C=SimpleNamespace(_distributed_c10d=bindings))
        ranks = {"rank": rank, "world_size": world, "local_rank": rank}
        self.reports = flight.FlightReports(torch, SimpleNamespace(run=str(folder), ranks=lambda: ranks))

    def dump(self, collectives: bool, only_active: bool) -> bytes:
        self.asked.append((collectives, only_active))
        return json.dumps({"version": "2.10", "entries": self.entries}).encode()

    @property
    def rows(self) -> list[list[Any]]:
        return [line["rows"] for line in lines_of(self.folder) if line["kind"] == "collectives"]


@pytest.mark.parametrize(
    ("variables", "size"),
    [
        ({}, 0),
        ({"TORCH_FR_BUFFER_SIZE": "0"}, 0),
        ({"TORCH_FR_BUFFER_SIZE": "x"}, 0),
        ({"TORCH_FR_BUFFER_SIZE": "2000"}, 2000),
        ({"TORCH_NCCL_TRACE_BUFFER_SIZE": "300", "TORCH_FR_BUFFER_SIZE": "0"}, 300),
    ],
)
def test_it_is_off_unless_the_environment_says_otherwise(
    variables: dict[str, str], size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert flight.held(variables) == size
    for name in flight.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    called: list[str] = []
    names = ("on_begin", "on_end", "before_beat")
    recorder = SimpleNamespace(**{name: lambda _, name=name: called.append(name) for name in names})
    flight.install(SimpleNamespace(), recorder)
    assert bool(called) == (size > 0)
    monkeypatch.setenv(flight.VARIABLES[0], str(flight.LARGEST + 1))
    called.clear()
    flight.install(SimpleNamespace(), recorder)
    assert called == ["on_begin", "on_end"]


def test_each_collective_is_reported_once(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.reports.tell()
    assert job.rows == []
    job.entries = [entry(1), entry(2, is_p2p=True), entry(3, duration_ms=1.5)]
    job.reports.tell()
    job.entries.append(entry(4, process_group=["7", "tensor"]))
    job.reports.tell()
    job.reports.tell()
    assert job.rows == [
        [["0", 1, "gloo:all_reduce", US + 1, 1001, None], ["0", 3, "gloo:all_reduce", US + 3, 1001, 1.5]],
        [["7", 4, "gloo:all_reduce", US + 4, 1001, None]],
    ]
    assert set(job.asked) == {(True, False)}


@pytest.mark.parametrize(("world", "most"), [(2, flight.MOST), (512, 4)])
def test_ranks_report_the_same_ones_and_few_of_many(tmp_path: Path, world: int, most: int) -> None:
    job = Job(tmp_path, world)
    job.entries = [entry(n) for n in range(3 * flight.EVERY)]
    job.reports.tell()
    (rows,) = job.rows
    numbers = [row[1] for row in rows]
    assert len(numbers) == most
    assert all(n % flight.EVERY < flight.ROW for n in numbers)
    assert numbers[-1] == 2 * flight.EVERY + flight.ROW - 1


@pytest.mark.parametrize("odd", [[{"record_id": 1}], [7], [entry(1, process_group=None)]])
def test_a_dump_of_another_form_ends_it_quietly(tmp_path: Path, odd: list[Any]) -> None:
    job = Job(tmp_path)
    job.entries = odd
    job.reports.tell()
    job.entries = [entry(1)]
    job.reports.tell()
    assert (job.rows, len(job.asked)) == ([], 1)
