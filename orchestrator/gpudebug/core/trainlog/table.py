"""Tables whose names stand in a head and whose rows are numbers alone."""

from __future__ import annotations

from dataclasses import dataclass

from gpudebug.core.trainlog.names import Role, classify
from gpudebug.core.trainlog.shape import Span
from gpudebug.core.trainlog.text import number, skeleton

MAX_COLUMNS = 200


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    role: Role
    start: int


@dataclass(frozen=True, slots=True)
class Head:
    """A table's head: its delimiter and columns with the place where each begins."""

    sign: str
    columns: tuple[Column, ...]


def read_head(text: bytes, sign: str, cells: tuple[Span, ...]) -> Head:
    columns = []
    for start, end in cells[:MAX_COLUMNS]:
        name = text[start:end].decode("ascii", "replace").strip("'\" ")
        role = classify(skeleton(name.encode()).decode())
        columns.append(Column(name.lower(), role, start))
    return Head(sign, tuple(columns))


def read_row(
    head: Head, text: bytes, rows: tuple[tuple[str, tuple[Span, ...]], ...]
) -> list[tuple[Column, float, float | None]] | None:
    """(column, value, total of a `n/total` cell) of a row under `head`; None where it is no row of it."""
    for sign, cells in rows:
        if sign != head.sign:
            continue
        if len(cells) == len(head.columns):
            return _values(head, [text[a:b] for a, b in cells])
        if sign == " " and cells and len(cells) < len(head.columns):
            return _values(head, _by_place(head, text))
    return None


def _by_place(head: Head, text: bytes) -> list[bytes]:
    """Cells by the columns' places, for fixed widths in which wide numbers touch."""
    edges = [column.start for column in head.columns[1:]]
    return [text[a:b].strip() for a, b in zip([0, *edges], [*edges, len(text)], strict=True)]


def _values(head: Head, cells: list[bytes]) -> list[tuple[Column, float, float | None]] | None:
    found: list[tuple[Column, float, float | None]] = []
    for column, cell in zip(head.columns, cells, strict=True):
        if not column.role.kind:
            continue
        text, slash, rest = cell.strip(b"'\": ").partition(b"/")
        value = number(text)
        if value is None:
            if column.role.kind in ("step", "epoch", "other"):
                return None
            continue
        found.append((column, value, number(rest) if slash else None))
    return found if any(column.role.kind != "total" for column, _, _ in found) else None
