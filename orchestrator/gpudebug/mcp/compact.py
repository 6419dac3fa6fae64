"""An answer as a model reads it: the same keys, without what is empty, raw or repeated, figures rounded."""

from __future__ import annotations

import json
import math
from typing import Any

DIGITS = 4
"""Significant digits of a figure; the evidence of a run has all of them."""
LISTED = 12
"""Causes of the catalogue that are listed with titles and signs; of more the ids alone."""
RAW = frozenset(
    {"probe", "evidence", "facts", "sparks", "spark", "profile", "trace", "processes", "sections", "course"}
)
"""Keys of tables as they were recorded; a client reads them as resources."""


def compact(document: dict[str, Any]) -> dict[str, object]:
    """Return the answer without keys that are null or empty, without raw tables, and its figures rounded.

    A page has all of the diagnosis, so the page goes alone. Only the first cause has instructions for the
    code of a change, and none if the diagnosis abstains: `catalogue` has those of each.
    """
    repeated = {"diagnosis"} if document.get("brief") else set()
    if _count(document) > LISTED:
        document = {**document, "groups": [_ids(group) for group in document["groups"]]}
    causes = document.get("causes") or []
    detailed = 0 if document.get("abstains") else 1
    rows = [row if place < detailed else _without_instructions(row) for place, row in enumerate(causes)]
    short: dict[str, Any] = _short(
        {k: rows if k == "causes" else v for k, v in document.items() if k not in repeated}
    )
    return short


def _count(document: dict[str, Any]) -> int:
    return sum(len(group["causes"]) for group in document.get("groups") or ())


def _ids(group: dict[str, Any]) -> dict[str, object]:
    return {**group, "causes": [cause["id"] for cause in group["causes"]]}


def _without_instructions(cause: dict[str, Any]) -> dict[str, object]:
    test = cause.get("hypothesis") or {}
    return {**cause, "hypothesis": {k: v for k, v in test.items() if k != "instructions"}}


def as_text(document: dict[str, object]) -> str:
    """One line of JSON with nothing between its parts."""
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        parts = {k: _short(v) for k, v in value.items() if k not in RAW}
        return {k: v for k, v in parts.items() if v is not None and v not in ("", [], {})}
    if isinstance(value, (list, tuple)):
        # A missing bound of an interval has its place.
        return [_short(v) for v in value]
    return _rounded(value) if isinstance(value, float) else value


def _rounded(value: float) -> float | int:
    """At most `DIGITS` significant digits, and no fraction if it is large."""
    if value == 0 or not math.isfinite(value):
        return value
    places = max(0, DIGITS - 1 - math.floor(math.log10(abs(value))))
    made = round(value, places)
    return int(made) if made.is_integer() else made
