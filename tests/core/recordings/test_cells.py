"""What the cells of a recording say."""

from __future__ import annotations

import pytest

from gpudebug.core.recordings.cells import dated, moment, number, pair, throttle


@pytest.mark.parametrize(
    ("cell", "quantity", "unit", "value"),
    [
        ("45 %", "gpu_util", None, 45),
        (' "530.12 W"', "power_w", None, 530.12),
        ("11180mW", "power_w", None, 11.18),
        ("2 GiB", "mem_used_mb", None, 2048),
        ("2", "mem_used_mb", "GiB", 2048),
        ("7585398784", "mem_used_mb", None, 7585398784 / 2**20),
        ("65000", "power_w", None, 65),
        ("43 °C", "temperature_c", None, 43),
        ("1700Mhz", "sm_clock_mhz", None, 1700),
        *(
            (cell, "power_w", None, None)
            for cell in ("[N/A]", "N/A", "[Not Supported]", "ERR!", "-", "", "nan")
        ),
        ("[GPU requires reset]", "gpu_util", None, None),
    ],
)
def test_figures(cell: str, quantity: str, unit: str | None, value: float | None) -> None:
    assert number(cell, quantity, unit) == pytest.approx(value)


@pytest.mark.parametrize(
    ("cell", "quantity"),
    [("45 %", "power_w"), ("530 W", "gpu_util"), ("x", ""), ("inf", ""), ("1e308", ""), ("1_0", "")],
)
def test_cells_of_other_columns_are_none(cell: str, quantity: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        number(cell, quantity)


def test_pairs_share_their_unit() -> None:
    assert pair("0.3/192.0 GB") == ("0.3 GB", "192.0 GB")
    assert pair("46W / 400W") == ("46W", "400W")
    assert pair("0000:07:00.0") is None


def test_masks_of_throttling() -> None:
    masks = ("0x0000000000000004", "0x0000000000000048", "0x0000000000000000", "0x0000000000001001", "[N/A]")
    names = ["sw_power_cap", "hw_slowdown+hw_thermal", "none", "gpu_idle+other", None]
    assert [throttle(mask) for mask in masks] == names
    assert throttle("Active") == "Active"


MARCH_9 = 1773065107.0
SAME = (
    *("2026/03/09 14:05:07.000", "2026-03-09T14:05:07Z", "2026-03-09 15:05:07+01:00", "20260309 14:05:07"),
    *(
        "03-09-2026 14:05:07",
        "3/9/2026 2:05:07 PM",
        "Mon Mar  9 14:05:07 2026",
        "Mon Mar 09 14:05:07 UTC 2026",
    ),
    *("Mon 09 Mar 2026 02:05:07 PM CST", "20260309-140507"),
)


@pytest.mark.parametrize("text", SAME)
def test_any_date_is_a_moment(text: str) -> None:
    assert moment(text) == (MARCH_9, True)


def test_a_time_of_day_is_no_date() -> None:
    assert moment("14:05:07.25") == (50707.25, False)
    for text in ("yesterday", "2025/99/27 01:48:28", "25:00:00", "1773065107", "0000:07:00.0"):
        assert moment(text) is None


def test_a_date_in_a_heading() -> None:
    assert dated("host  Mon Mar  9 14:05:07 2026  550.54.15") == "Mon Mar  9 14:05:07 2026"
    assert dated("==== Mon Mar  9 02:05:07 PM EDT 2026 ====") == "Mon Mar  9 02:05:07 PM EDT 2026"
    assert dated("2026-03-09 14:05:07 " + "word " * 20) is None
