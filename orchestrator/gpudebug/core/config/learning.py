"""`criteria.learning`: what learning is judged by, and which way is better."""

from __future__ import annotations

from typing import Any

from gpudebug.core.config import values

METRICS = {"auto": "", "loss": "lower", "reward": "higher", "return": "higher"}
_EXAMPLE = "loss, reward, log:NAME, or {metric: log:success_rate, direction: higher}"


def learning(value: Any) -> dict[str, str]:
    """`metric` and `direction`, complete: `reward` alone is `{metric: reward, direction: higher}`."""
    given = value if isinstance(value, dict) else {"metric": value}
    if not given.keys() <= {"metric", "direction"} or "metric" not in given:
        raise ValueError(f"expected {_EXAMPLE}, found {values.shown(value)}")
    metric, direction = given["metric"], given.get("direction")
    own = isinstance(metric, str) and metric.startswith("log:") and len(metric) > len("log:")
    if not own and metric not in METRICS:
        raise ValueError(f"expected {_EXAMPLE}, found {values.shown(metric)}")
    if direction not in (None, "higher", "lower"):
        raise ValueError(f"direction: expected higher or lower, found {values.shown(direction)}")
    if own and direction is None:
        raise ValueError(f"direction is missing: write {{metric: {metric}, direction: higher}}, or lower")
    name = "reward" if metric == "return" else str(metric)
    return {"metric": name, "direction": direction or METRICS.get(name, "")}
