"""Charts, bars and boxes of characters."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.terminal.panels import Pen, label, means

if TYPE_CHECKING:
    from gpudebug.engine.status.watch import WatchedDevice

PEN, ASCII = Pen(), Pen(unicode=False)


def test_a_chart_has_the_newest_at_the_right_and_shows_zero() -> None:
    assert PEN.chart([0, 50, 100, None, 12.5], 7)[0].plain == "  ▁▄█ ▁"
    assert [ln.plain for ln in PEN.chart([0, 50, 75, 100], 4, rows=2)] == ["  ▄█", "▁███"]
    assert ASCII.chart([0, 100], 2)[0].plain == ".@"
    assert PEN.chart([], 3)[0].plain == "   " and PEN.chart([5], 0)[0].plain == ""


@pytest.mark.parametrize(
    ("values", "count", "found"),
    [
        ([1, 2, 3], 5, [1, 2, 3]),
        ([1, 3, 5, 7], 2, [2, 6]),
        ([9, 1, 3, 5, 7], 3, [9, 2, 6]),
        ([None, None, 5, 7], 2, [None, 6]),
        ([], 2, []),
        ([1, 2], 0, [1, 2]),
    ],
)
def test_means(values: list[float | None], count: int, found: list[float | None]) -> None:
    assert means(values, count) == found


@given(st.lists(st.none() | st.floats(-10, 500)), st.integers(1, 90), st.integers(1, 6))
def test_a_chart_is_as_wide_and_as_high_as_asked(values: list[float | None], width: int, rows: int) -> None:
    for pen in (PEN, ASCII):
        assert [ln.cell_len for ln in pen.chart(values, width, rows)] == [width] * rows


@pytest.mark.parametrize(("share", "full"), [(0, 0), (0.5, 4), (1, 8), (7, 8), (-1, 0)])
def test_a_bar(share: float, full: int) -> None:
    assert PEN.bar(share, 8).plain == "━" * full + "─" * (8 - full)
    assert ASCII.bar(share, 8).plain == "#" * full + "-" * (8 - full)


@pytest.mark.parametrize("width", [5, 12, 40])
def test_every_line_of_a_box_is_as_wide(width: int) -> None:
    lines = PEN.box([PEN.text("模型 and more"), PEN.text("")], width, PEN.text("a title"), "a foot")
    assert [ln.cell_len for ln in lines] == [width] * 4
    assert [ln.plain[0] + ln.plain[-1] for ln in lines] == ["╭╮", "││", "││", "╰╯"]


def test_fields_flow() -> None:
    fields = [PEN.text(text) for text in ("one", "two", "a longer one", "end")]
    assert [ln.plain for ln in PEN.flow(fields, 15)] == ["one  two", "a longer one", "end"]
    assert [ln.plain for ln in PEN.flow(fields, 60)] == ["one   two   a longer one   end"]
    assert [ln.plain for ln in PEN.flow(fields, 5)] == ["one", "two", "a lo…", "end"]
    assert [ln.plain for ln in ASCII.flow(fields, 5)] == ["one", "two", "a lon", "end"]


def test_without_unicode_nothing_else_is_shown() -> None:
    assert ASCII.text("é… ·°模").plain == "?... -?"
    assert ASCII.rule("log", 10).plain == "-- log ---" and PEN.rule("log", 10).plain == "── log ───"


@pytest.mark.parametrize(
    ("uuid", "shown"), [("GPU-1", "GPU 0"), ("MIG-7", "GPU 0 (MIG-7)"), ("CPU", "CPU stand-in")]
)
def test_a_device_is_named_as_everywhere(uuid: str, shown: str) -> None:
    now = SimpleNamespace(index=0, uuid=uuid)
    assert label(cast("WatchedDevice", SimpleNamespace(now=now))) == shown
