"""Rows of `nvidia-smi --query-gpu` without their header."""

from __future__ import annotations

from tests.support import monitors

from gpudebug.core.recordings.headless import columns_of, looks_headerless


def lines(*fields: str, units: bool = True, gpus: int = 2) -> list[str]:
    return monitors.query(10, gpus, fields, header=False, units=units).splitlines()


def test_units_and_shapes_name_the_columns() -> None:
    rows = lines("timestamp", "name", "uuid", "power.draw", "utilization.gpu", "memory.used", "index")
    assert looks_headerless(rows)
    found, note = columns_of(rows)
    assert found is not None
    names = ("time", "uuid", "power_w", "gpu_util", "mem_used_mb", "index")
    assert {c: found.places[c] for c in names} == dict(zip(names, (0, 2, 3, 4, 5, 6), strict=True))
    assert "gpu_util from column 5" in note


def test_of_two_in_percent_the_first_is_the_gpus_and_of_two_others_none() -> None:
    rows = [f"2025/07/27 01:48:{s:02}.000, 0, 90 %, 40 %, 300.00 W, 700.00 W" for s in range(10)]
    found, note = columns_of(rows)
    assert found is not None
    assert (found.places["gpu_util"], "power_w" in found.quantities) == (2, False)
    assert "the first of several in %" in note


def test_without_units_or_rows_nothing_is_known() -> None:
    rows = lines("timestamp", "index", "utilization.gpu", "memory.used", units=False)
    assert looks_headerless(rows)
    assert columns_of(rows)[1] == "has no header and no units: which column is utilization.gpu?"
    assert columns_of(["killed by signal 9\n"]) == (None, "has no header and no whole row")


def test_a_number_that_does_not_count_the_gpus_is_no_index() -> None:
    found, _ = columns_of(lines("timestamp", "index", "utilization.gpu", gpus=1))
    assert found is not None
    assert not found.identity


def test_logs_do_not_look_so() -> None:
    for log in (
        ["2024-01-16 14:44:17,095 loss 0.5", "2024-01-16 14:44:18,095 loss 0.4"],
        ["1, 0.5, 0.25", "2, 0.4, 0.25"],
        ["epoch 1, 90 %", "epoch 2, 91 %"],
        ["step,loss", "1,0.5"],
        ["90 %"],
        [],
    ):
        assert not looks_headerless(log)
