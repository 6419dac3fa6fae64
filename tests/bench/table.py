"""Rows of a benchmark's table: a figure beside the bound that it must keep."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import NamedTuple


class Row(NamedTuple):
    """One figure with its bound (at most; infinite: none) and unit."""

    name: str
    figure: float
    bound: float
    unit: str


def print_table(rows: Iterable[Row]) -> bool:
    """Print the rows; True where every figure keeps its bound."""
    kept = True
    print(f"{'':<44} {'measured':>9} {'at most':>8}")
    for row in rows:
        within = row.figure <= row.bound
        kept = kept and within
        mark = "" if within else "  OVER"
        bound = f"{row.bound:.2f}" if isfinite(row.bound) else ""
        print(f"{row.name:<44} {row.figure:>9.3f} {bound:>8} {row.unit}{mark}", flush=True)
    return kept
