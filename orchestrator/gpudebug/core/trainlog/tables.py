"""Tables in a log: heads that name their columns, and the rows below them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gpudebug.core.lazy import regex
from gpudebug.core.trainlog.names import Role, classify
from gpudebug.core.trainlog.text import NUMBER, Span, number, skeleton, total

MAX_COLUMNS = 200
_COUNTERS = ("step", "epoch", "other", "limit", "epochs")


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    role: Role
    start: int


TableRow = list[tuple[Column, float, float | None]]
"""(column, value, total of a `n/total` cell)"""


@dataclass(slots=True)
class Head:
    """A table's head: its delimiter and columns with the place where each begins.

    `sums`: losses are sums over the steps since the row before (spaCy's table, `E  #  LOSS NER …  SCORE`),
    which is that of step `at`.
    """

    sign: str
    columns: tuple[Column, ...]
    sums: bool = False
    at: float = -1.0

    @property
    def measures(self) -> bool:
        """Whether a row tells what was reached by its counter, and not of an evaluation alone."""
        return any(c.role.phase != "val" and c.role.kind not in _COUNTERS for c in self.columns)

    @property
    def evaluates(self) -> bool:
        """Whether a row has an evaluation, which shows what was made by the steps before it."""
        return any(c.role.phase == "val" and c.role.kind not in _COUNTERS for c in self.columns)

    def steps_since(self, row: TableRow) -> float:
        """Take a row in; return over how many steps its losses are sums. The first step's number is 0."""
        before = self.at
        self.at = next((value for column, value, _ in row if column.role.kind == "step"), before)
        return self.at - before if self.sums and self.at > before else 1.0


def read_head(text: bytes, sign: str, cells: tuple[Span, ...]) -> Head:
    columns = []
    names = [text[a:b].decode("ascii", "replace").strip("'\" ") for a, b in cells[:MAX_COLUMNS]]
    summed, since_row = sums_parts(names), names[:2] == ["E", "#"]
    for name, (start, _) in zip(names, cells, strict=False):
        total = summed and name.lower() == "total"
        role = Role("loss") if total else classify(skeleton(name.encode()).decode())
        columns.append(Column(name.lower(), role, start))
    return Head(sign, tuple(columns), since_row)


def read_row(head: Head, text: bytes, rows: tuple[tuple[str, tuple[Span, ...]], ...]) -> TableRow | None:
    """Return the cells of a row under `head`; None if it is no row of it."""
    for sign, cells in rows:
        if sign != head.sign:
            continue
        if len(cells) == len(head.columns):
            return _values(head, [text[a:b] for a, b in cells])
        if sign == " " and b"\t" in text and len(cells) > len(head.columns):
            return _values(head, [text[a:b] for a, b in cells[: len(head.columns)]])
        if sign == " " and cells and len(cells) < len(head.columns):
            return _values(head, _by_place(head, text))
    return None


def _by_place(head: Head, text: bytes) -> list[bytes]:
    """Cells by the columns' places, for fixed widths in which wide numbers touch."""
    edges = [column.start for column in head.columns[1:]]
    return [text[a:b].strip() for a, b in zip([0, *edges], [*edges, len(text)], strict=True)]


def _values(head: Head, cells: list[bytes]) -> TableRow | None:
    found: TableRow = []
    for column, cell in zip(head.columns, cells, strict=True):
        if not column.role.kind:
            continue
        text, slash, rest = cell.strip(b"'\": ").partition(b"/")
        value = total(text.strip(b"[]"))
        if value is None:
            if column.role.kind in ("step", "epoch", "other"):
                return None
            continue
        found.append((column, value, number(rest) if slash else None))
    return found if any(column.role.kind != "total" for column, _, _ in found) else None


_PIPES = regex(r"\|")
_WIDE = regex(r"\s{2,}|\t+")
_SPACES = regex(r"\s+")
_CELLNUMBER = regex(
    r"[+-]?[0.,]+(?:[eE][+-]?0+)?[A-Za-z%]*:?$|[+-]?(?:nan|inf)$|0+/0+$|0+:[0:]+$|\[[0.,e+\-naif ]+\]$", re.I
)


def _split(text: str, pattern: re.Pattern[str], offset: int) -> tuple[Span, ...]:
    spans: list[Span] = []
    at = 0
    for match in [*pattern.finditer(text), None]:
        end = match.start() if match else len(text)
        cell = text[at:end]
        left = len(cell) - len(cell.lstrip())
        if cell.strip():
            spans.append((offset + at + left, offset + at + len(cell.rstrip())))
        elif pattern is not _SPACES and pattern is not _WIDE and (match or pattern is _COMMAS) and at:
            spans.append((offset + at, offset + at))
        at = match.end() if match else at
    return tuple(spans)


_PARTS_OF_A_DETECTOR = frozenset(
    ("box", "obj", "cls", "giou", "iou", "dfl", "kpt", "pose", "seg", "mask", "l0")
)
_PERCENT = regex(r"\s0{1,3}%[ |]")
_COMMAS = regex(",")
_COMMENT = regex(r"^ *#(?= +[A-Za-z])")
_UNIT = regex(r"\[[a-z:%/]{1,8}\]")
_DELIMITERS = {"|": _PIPES, ",": _COMMAS, " ": _SPACES}


def find_header(text: str) -> tuple[str, tuple[Span, ...]] | None:
    """(delimiter, cells) where a line is the head of a table: its columns include a loss, or the first of
    three or more that are apart is a counter."""
    text = _UNIT.sub(lambda match: " " * len(match[0]), text) if "[" in text else text
    if len(text) > 600 or ":" in text or "=" in text or "'" in text or NUMBER.search(text):
        return None
    text = _COMMENT.sub(lambda match: " " * len(match[0]), text)
    aligned = len(_split(text, _WIDE, 0)) > 2
    for sign, pattern in (("|", _PIPES), (",", _COMMAS), (" ", _WIDE), (" ", _SPACES)):
        if sign != " " and sign not in text:
            continue
        cells = _split(text, pattern, 0)
        names = [text[a:b].strip("'\" ") for a, b in cells]
        if len(cells) < 2 or any(len(name) > 40 or len(name.split()) > 4 for name in names):
            continue
        kinds = [classify(name).kind for name in names]
        if pattern is _SPACES and kinds[0] not in ("step", "epoch", "other"):
            continue
        counted = any(kind in ("step", "epoch", "other") for kind in kinds)
        if counted and sums_parts(names):
            return sign, cells
        if "loss" in kinds and (counted or (sign == "," and len(cells) > 2)):
            return sign, cells
        if kinds[0] in ("step", "epoch", "other") and (
            sign == "," or "\t" in text or (sign == " " and aligned)
        ):
            return sign, cells
    return None


def sums_parts(names: Sequence[str]) -> bool:
    """Whether the columns are a detector's losses by their parts alone, with their total (YOLOv7's table)."""
    lower = {name.lower() for name in names}
    return "total" in lower and len(lower & _PARTS_OF_A_DETECTOR) > 1


def row_like(text: str) -> bool:
    start = text.lstrip(" |")[:1]
    return start == "0" or (start in "+-.ni" and "0" in text[:12]) or text.lstrip()[:1] == "|"


def find_rows(text: str, masked: bool) -> tuple[tuple[str, tuple[Span, ...]], ...]:
    """The ways in which a line may be a table's row, for the reader to match with the head in force."""
    bar = _PERCENT.search(text)
    cut = text.find("~") if masked else bar.start() if bar else -1
    body = text[:cut].rstrip(": ") if cut > 0 else text
    rows = []
    for sign, pattern in _DELIMITERS.items():
        if sign not in body and not (sign == " " and "\t" in body):
            continue
        cells = _split(body, pattern, 0)
        if sign == " " and "[" in body:
            cells = _split(body, _WIDE, 0)
        numeric = sum(1 for a, b in cells if _CELLNUMBER.match(body[a:b]))
        if (len(cells) >= 2 and numeric * 2 >= len(cells)) or (sign == "|" and len(cells) > 2 and numeric):
            rows.append((sign, cells))
    return tuple(rows)
