"""SQLite files that others wrote, read without changing them or anything beside them."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

from gpudebug.core.errors import GpudebugError
from gpudebug.edges import opener

_PAGE_AT, _COUNT_AT = 16, 28
_HEADER = 100
# The name of a damaged table may stand in the message, which is then no UTF-8.
_BROKEN = (sqlite3.Error, UnicodeDecodeError)
_LONGEST_DEFAULT = 256
"""Characters: a row that was there before its column has the default, and takes no room in the file."""
_IN_THE_FILE = (0, 3)
"""Of `table_xinfo`: plain columns, and those that are computed when their row is written (`STORED`)."""
_STRUCTURE = "*** in database"
"""What `quick_check` begins with where a page lies in two places, in none, or is no page of its table."""
_AGAIN = "export it again, and wait until the export has ended"


class Database:
    """A file as tables and rows. GpudebugError from any method if the file is damaged or half-written.

    No row is asked for before each page was seen to belong to one of them: then all rows together hold no
    more than the file does.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._refuse_unfinished()
        try:
            # Immutable: no lock, and no journal beside the file is read or made.
            uri = f"file:{quote(os.path.abspath(path))}?mode=ro&immutable=1"
            self._connection = sqlite3.connect(uri, uri=True)
            self._connection.text_factory = lambda data: data.decode("utf-8", "replace")
        except _BROKEN as e:
            raise self._damaged(e) from None
        try:
            self._tables = self._checked()
        except GpudebugError:
            self._connection.close()
            raise

    def _checked(self) -> dict[str, frozenset[str]]:
        """Return the tables with their columns, of a file whose pages each belong to one of them."""
        names = self._all("SELECT name FROM sqlite_master WHERE type = 'table'")
        tables = {str(name): self._columns(str(name)) for (name,) in names}
        self._all("PRAGMA ignore_check_constraints = ON")
        for (message,) in self._all("PRAGMA quick_check(1)"):
            if str(message).startswith(_STRUCTURE):
                raise self._damaged(" ".join(str(message).removeprefix(_STRUCTURE).split()[2:]))
        return tables

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def tables(self) -> dict[str, frozenset[str]]:
        """Return the columns of each table, by its name."""
        return self._tables

    def _columns(self, table: str) -> frozenset[str]:
        rows = self._all(f"PRAGMA table_xinfo({_quoted(table)})")
        if any(len(str(default)) > _LONGEST_DEFAULT for _, _, _, _, default, *_ in rows):
            raise self._foreign(f"a column of {table} has a default of thousands of characters")
        if any(hidden not in _IN_THE_FILE for *_, hidden in rows):
            raise self._foreign(f"a column of {table} is computed")
        return frozenset(str(row[1]) for row in rows)

    def rows(
        self,
        table: str,
        columns: Sequence[str],
        order: str | None = None,
        within: tuple[str, int, int] | None = None,
    ) -> Iterator[tuple[Any, ...]]:
        """These columns of each row, by `order` ascending if it is given; `within` names a column, and the
        least and the greatest value that rows may have there."""
        query = f"SELECT {', '.join(map(_quoted, columns))} FROM {_quoted(table)}"
        if within is not None:
            query += f" WHERE {_quoted(within[0])} BETWEEN ? AND ?"
        if order is not None:
            query += f" ORDER BY {_quoted(order)}"
        try:
            yield from self._connection.execute(query, within[1:] if within else ())
        except _BROKEN as e:
            raise self._damaged(e) from None

    def _all(self, query: str) -> list[tuple[Any, ...]]:
        try:
            return list(self._connection.execute(query))
        except _BROKEN as e:
            raise self._damaged(e) from None

    def _foreign(self, why: str) -> GpudebugError:
        return GpudebugError(
            f"is no database that a profiler wrote: {why}", file=str(self._path), next=_AGAIN
        )

    def _damaged(self, why: Exception | str) -> GpudebugError:
        return GpudebugError(
            f"is a damaged or half-written SQLite file: {why}", file=str(self._path), next=_AGAIN
        )

    def _refuse_unfinished(self) -> None:
        """GpudebugError if the file is shorter than its own header says, or its journal lies beside it."""
        try:
            with opener.opened(self._path, follow=True) as f:
                head = f.read(_HEADER)
                size = os.fstat(f.fileno()).st_size
        except OSError as e:
            raise GpudebugError(f"cannot be read: {e.strerror}", file=str(self._path)) from None
        page = int.from_bytes(head[_PAGE_AT : _PAGE_AT + 2], "big")
        whole = int.from_bytes(head[_COUNT_AT : _COUNT_AT + 4], "big") * (65536 if page == 1 else page)
        if len(head) < _HEADER or size < whole:
            raise GpudebugError(
                f"is a half-written SQLite file: {size:,} of {whole:,} bytes are there",
                file=str(self._path),
                next=_AGAIN,
            )
        for ending in ("-journal", "-wal"):
            beside = self._path.with_name(self._path.name + ending)
            if beside.is_file() and beside.stat().st_size:
                raise GpudebugError(
                    f"is still being written: {beside.name} lies beside it", file=str(self._path), next=_AGAIN
                )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
