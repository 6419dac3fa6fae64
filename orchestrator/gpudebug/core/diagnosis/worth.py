"""What a test is expected to bring, as a share of the time."""

from __future__ import annotations

from collections.abc import Mapping

from gpudebug.core.diagnosis.model import Diagnosis
from gpudebug.core.diagnosis.rank import cost


def shares(diagnosis: Diagnosis, matches: Mapping[int, Mapping[str, float]]) -> dict[int, float]:
    """Return the share of the time (0 to 1) that each hypothesis is expected to bring, by its number: what
    orders the causes orders those that test them.

    `matches` are the causes that each one tests, with how well (0 to 1).
    """
    costs = {cause.id: cost(cause) for cause in diagnosis.causes}
    return {
        number: sum(costs[name] * weight for name, weight in sorted(tested.items()) if name in costs)
        for number, tested in matches.items()
    }
