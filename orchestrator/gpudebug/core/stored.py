"""Whether a stored record has the shape that gpudebug writes; quicker than loading its model."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from gpudebug.core.words import VERDICTS, Result

_Check = Callable[[object], bool]
_STATUSES = frozenset(status.value for status in VERDICTS)
_RESULTS = frozenset(result.value for result in Result)


def is_verdict(found: object) -> bool:
    """Whether it is a verdict.json: every key that a reader uses holds what belongs there."""
    return isinstance(found, dict) and _has(found, _VERDICT, _MAYBE)


def _text(value: object) -> bool:
    return isinstance(value, str)


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _or_none(check: _Check) -> _Check:
    return lambda value: value is None or check(value)


def _each(check: _Check) -> _Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _has(found: Mapping[str, Any], needed: Mapping[str, _Check], more: Mapping[str, _Check]) -> bool:
    return all(key in found and check(found[key]) for key, check in needed.items()) and all(
        check(found[key]) for key, check in more.items() if key in found
    )


def _record(needed: Mapping[str, _Check], more: Mapping[str, _Check]) -> _Check:
    return lambda value: isinstance(value, dict) and _has(value, needed, more)


_ESTIMATE = _record({"value": _number}, {"low": _or_none(_number), "high": _or_none(_number)})
_GATE = _record(
    {
        "name": _text,
        "value": _text,
        "threshold": _text,
        "result": lambda value: isinstance(value, str) and value in _RESULTS,
    },
    {"note": _or_none(_text)},
)
_USED = _record(
    {"name": _text, "part": _text, "evidence_sha256": _text}, {"fresh": lambda value: isinstance(value, bool)}
)
_VERDICT: dict[str, _Check] = {
    "hypothesis": _whole,
    "status": lambda value: isinstance(value, str) and value in _STATUSES,
    "why": _text,
    "before": _or_none(_number),
    "after": _or_none(_number),
    "delta": _or_none(_ESTIMATE),
    "training": _text,
    "loss": _text,
    "gates": _each(_GATE),
}
_MAYBE: dict[str, _Check] = {
    "change_digest": _or_none(_text),
    "claim": _or_none(_text),
    "hollow": lambda value: isinstance(value, bool),
    "metric": _text,
    **{
        key: _or_none(_number)
        for key in ("metric_before", "metric_after", "throughput_before", "throughput_after")
    },
    "throughput_unit": _or_none(_text),
    "throughput_ratio": _or_none(_ESTIMATE),
    "notes": _each(_text),
    "remarks": _each(_text),
    "terms": _or_none(lambda value: isinstance(value, dict)),
    "runs": _each(_USED),
}
