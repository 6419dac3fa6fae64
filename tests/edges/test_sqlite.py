"""SQLite files of others."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from tests.support.campaigns import contents

from gpudebug.core.errors import GpudebugError
from gpudebug.edges import sqlite
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


def test_a_default_that_no_row_holds_is_not_read_for_each(path: Path) -> None:
    with sqlite3.connect(path) as c:
        c.execute(f"ALTER TABLE \"the calls\" ADD COLUMN long TEXT DEFAULT '{'x' * 500_000}'")
    c.close()
    with (
        Database(path) as database,
        pytest.raises(GpudebugError, match="a default of thousands of characters"),
    ):
        database.tables()


def test_rows_take_no_more_than_their_file_can_hold(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "_BESIDE", -8 * path.stat().st_size + 50_000)
    with Database(path) as database:
        assert len(list(database.rows("the calls", ["start"]))) == 18_000
        with pytest.raises(GpudebugError, match="the rows of the calls hold more than the file can"):
            list(database.rows("the calls", ["name"]))
