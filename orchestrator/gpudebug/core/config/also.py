"""`criteria.also`: further figures that a change must not make worse, such as the quality of answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gpudebug.core.config import values

ALLOWED = 1.03
"""How many times worse a figure may get: as throughput's `not_worse`, what a person would not notice."""
NOT_WORSE = "not_worse"
HIGHER, LOWER = "higher", "lower"
_EXAMPLE = "a mapping such as {log:success_rate: not_worse}"
_KEYS = frozenset({"direction", NOT_WORSE})
_LOWER = re.compile(
    r"loss|err(or)?s?(?![a-z])|latency|time|duration|(?<![a-z])(w|c)er(?![a-z])|fid(?![a-z])"
    r"|(?<![a-z])(mae|mape|r?mse|nll|ppl)(?![a-z])|perplexity|distance|miss|fail|violation|collision",
    re.IGNORECASE,
)
_LOGGED = r"""\b{name}\b["']?\s*[:=]\s*(?P<value>[-+0-9.eE]+)"""


def also(value: Any) -> dict[str, dict[str, Any]] | None:
    """Metric -> its `direction` and how many times worse it may get (`not_worse`), both complete."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise ValueError(f"expected {_EXAMPLE}, found {values.shown(value)}")
    return {name: _term(name, content) for name, content in value.items()}


def _term(name: Any, value: Any) -> dict[str, Any]:
    try:
        metric = values.metric(name)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    given = {} if value == NOT_WORSE else value
    if not isinstance(given, dict) or not given.keys() <= _KEYS:
        found = (
            values.shown(value) if not isinstance(given, dict) else ", ".join(sorted(given.keys() - _KEYS))
        )
        raise ValueError(
            f"{name}: expected not_worse, or {{direction: lower, not_worse: 1.05x}}, found {found}"
        )
    direction = given.get("direction", usual_direction(metric))
    if direction not in (HIGHER, LOWER):
        raise ValueError(f"{name}: direction: expected higher or lower, found {values.shown(direction)}")
    return {"direction": direction, NOT_WORSE: _allowed(name, given.get(NOT_WORSE, ALLOWED))}


def _allowed(name: str, value: Any) -> float:
    """Return how many times worse; as `1.05x` or as a number."""
    text = str(value).removesuffix("x").strip()
    if isinstance(value, bool) or not re.fullmatch(r"[0-9]{1,2}(\.[0-9]{1,6})?", text) or float(text) < 1:
        raise ValueError(f"{name}: not_worse: expected a ratio such as 1.05x, found {values.shown(value)}")
    return float(text)


def usual_direction(metric: str) -> str:
    """Which way a figure of this name is better: losses, errors, times, energies lower, all others higher."""
    if metric.startswith(values.LOWER_IS_BETTER):
        return LOWER
    if not metric.startswith("log:"):
        return HIGHER
    return LOWER if _LOWER.search(metric.removeprefix("log:")) else HIGHER


def patterns(log: Mapping[str, str], terms: Mapping[str, Any] | None) -> dict[str, str]:
    """`log:` complete: what `criteria.also` names without a pattern is read as `name: 0.93`, `name=0.93`."""
    names = [metric.removeprefix("log:") for metric in terms or () if metric.startswith("log:")]
    own = {name: _LOGGED.format(name=re.escape(name)) for name in names if name not in ("loss", "step")}
    return {**own, **log}
