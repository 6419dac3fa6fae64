"""The gates of a verdict, as the answers that show one list them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class GateRow:
    """One gate: `value`, None if it is unknown, and `threshold` are as printed.

    `result` is pass, fail, unknown or skipped. `source` is whose count a throughput is (`log`, `probe`,
    `both`), `unexplained` what does not fit between them; both are None of other gates.
    """

    name: str
    value: str | None
    threshold: str
    result: str
    note: str | None = None
    source: str | None = None
    unexplained: str | None = None
