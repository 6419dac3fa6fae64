"""Names of sections as they are shown: a program may give any text."""

from __future__ import annotations


def short(name: str, width: int) -> str:
    """A name on one line, its middle left out if it is longer: what tells names apart is at their ends."""
    plain = "".join(c if c.isprintable() else "?" for c in name)
    if not plain:
        return "(no name)"
    if len(plain) <= width:
        return plain
    tail = (width - 1) // 2
    return f"{plain[: width - 1 - tail]}…{plain[-tail:]}"
