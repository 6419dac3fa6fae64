"""What the cells of a CSV without a header say of its columns."""

from __future__ import annotations

from tests.support import monitors

from gpudebug.core.recordings.headerless import columns_of, looks_headerless


def lines(*fields: str, units: bool = True, gpus: int = 2) -> list[str]:
    return monitors.query(10, gpus, fields, header=False, units=units).splitlines()


def test_units_and_shapes_name_the_columns() -> None:
    rows = lines("timestamp", "name", "uuid", "power.draw", "utilization.gpu", "memory.used", "index")
    assert looks_headerless(rows)
    found, note = columns_of(rows)
    assert found is not None
    names = ("elapsed", "gpu_uuid", "power_w", "gpu_util", "mem_used_mb", "gpu_index")
    assert {c: found.at[c] for c in names} == dict(zip(names, (0, 2, 3, 4, 5, 6), strict=True))
    assert "gpu_util from column 5" in note


def test_two_of_a_kind_are_not_guessed() -> None:
    rows = [f"2025/07/27 01:48:{s:02}.000, 0, 90 %, 40 %" for s in range(10)]
    assert looks_headerless(rows)
    assert columns_of(rows) == (None, "has no header and 2 columns in %: which column is utilization.gpu?")
    watts = [f"{row.rsplit(',', 1)[0]}, 300.00 W, 700.00 W" for row in rows]
    found, _ = columns_of(watts)
    assert found is not None
    assert "power_w" not in found.at


def test_without_units_nothing_is_known() -> None:
    rows = lines("timestamp", "index", "utilization.gpu", "memory.used", units=False)
    assert looks_headerless(rows)
    assert columns_of(rows)[1] == "has no header and no units: which column is utilization.gpu?"


def test_without_a_whole_row_nothing_is_known() -> None:
    assert columns_of([]) == (None, "has no header and no whole row")
    assert columns_of(["killed by signal 9\n"]) == (None, "has no header and no whole row")


def test_a_number_that_does_not_count_the_gpus_is_no_index() -> None:
    found, _ = columns_of(lines("timestamp", "index", "utilization.gpu", gpus=1))
    assert found is not None
    assert "gpu_index" not in found.at


def test_logs_do_not_look_so() -> None:
    for log in (
        ["2024-01-16 14:44:17,095 loss 0.5", "2024-01-16 14:44:18,095 loss 0.4"],
        ["1, 0.5, 0.25", "2, 0.4, 0.25"],
        ["epoch 1, 90 %", "epoch 2, 91 %"],
        ["step,loss", "1,0.5"],
        [],
    ):
        assert not looks_headerless(log)
