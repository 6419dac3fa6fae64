"""SQLite files of others."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from tests.support.campaigns import contents
from tests.support.nsys import shared_pages

from gpudebug.core.errors import GpudebugError
from gpudebug.edges.sqlite import Database


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "odd name?#.sqlite"
    with sqlite3.connect(path) as c:
        c.execute('CREATE TABLE "the calls" (start INTEGER, name TEXT, pid INTEGER)')
        rows = [(9 - n, f"call {n}", n % 3) for n in range(9)] * 2000
        c.executemany('INSERT INTO "the calls" VALUES (?, ?, ?)', rows)
    c.close()
    return path


def test_tables_and_rows(path: Path) -> None:
    before = contents(path.parent)
    with Database(path) as database:
        assert database.tables() == {"the calls": frozenset({"start", "name", "pid"})}
        rows = list(database.rows("the calls", ["name", "start"], "start"))
        assert (len(rows), rows[0], rows[-1]) == (18_000, ("call 8", 1), ("call 0", 9))
        assert {r for (r,) in database.rows("the calls", ["pid"], within=("pid", 1, 2))} == {1, 2}
    assert contents(path.parent) == before


@pytest.mark.parametrize("kept", [0.01, 0.5, 0.99])
def test_a_half_written_file_is_named(path: Path, kept: float) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * kept)])
    with pytest.raises(GpudebugError, match=r"is a half-written SQLite file: .* bytes are there") as told:
        Database(path)
    assert "export it again" in str(told.value.next)


def test_a_damaged_file_is_named(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4096:-4096] = bytes(len(data) - 8192)
    path.write_bytes(data)
    with pytest.raises(GpudebugError, match="is a damaged or half-written SQLite file"), Database(path) as d:
        list(d.rows("the calls", ["name"]))


def test_a_file_that_is_still_written_is_named(path: Path) -> None:
    path.with_name(path.name + "-journal").write_bytes(b"pages")
    with pytest.raises(GpudebugError, match="is still being written"):
        Database(path)


def test_a_damaged_schema_is_named(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data.replace(b'TABLE "the calls"', b'TABLE "th\xa4 calls"'.ljust(17)[:17]))
    damaged = path.read_bytes().replace(b"(start INTEGER", b"\xa4start INTEGER")
    path.write_bytes(damaged)
    with pytest.raises(GpudebugError, match="is a damaged or half-written SQLite file"):
        Database(path).tables()


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        (f"ADD COLUMN long TEXT DEFAULT '{'x' * 500_000}'", "a default of thousands of characters"),
        ("ADD COLUMN long TEXT AS (hex(zeroblob(500000000)))", "a column of the calls is computed"),
    ],
    ids=["default", "computed"],
)
def test_a_value_that_no_row_holds_is_not_read_for_each(path: Path, sql: str, says: str) -> None:
    with sqlite3.connect(path) as c:
        c.execute(f'ALTER TABLE "the calls" {sql}')
    c.close()
    with pytest.raises(GpudebugError, match=says):
        Database(path)


def test_a_column_that_was_computed_at_its_writing_is_read(tmp_path: Path) -> None:
    """MLflow 3.17 keeps the duration of a span so, in the database that holds its metrics."""
    path = tmp_path / "stored.sqlite"
    with sqlite3.connect(path) as c:
        c.execute("CREATE TABLE spans (a INTEGER, b INTEGER, took INTEGER AS (b - a) STORED)")
        c.execute("INSERT INTO spans VALUES (2, 5)")
    c.close()
    with Database(path) as database:
        assert list(database.rows("spans", ["took"])) == [(3,)]


def test_a_page_of_two_rows_is_named(tmp_path: Path) -> None:
    path = tmp_path / "shared.sqlite"
    shared_pages(path, 100_000)
    with sqlite3.connect(path) as c:
        assert len(c.execute("SELECT text FROM NVTX_EVENTS LIMIT 2").fetchall()[1][0]) > 50_000
    c.close()
    with pytest.raises(GpudebugError, match=r"damaged or half-written SQLite file: .*2nd reference to page"):
        Database(path)
