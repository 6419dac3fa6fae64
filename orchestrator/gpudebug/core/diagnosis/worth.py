"""What a test is expected to bring for each second of the device."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gpudebug.core.diagnosis.model import Diagnosis, Ranked
from gpudebug.core.diagnosis.rank import UNKNOWN_SHARE, cost
from gpudebug.core.diagnosis.tested_causes import BY_TOUCH


def gain_of(cause: Ranked, *, points: bool) -> float:
    """What its fix is expected to bring if it is the one: points of utilisation, or relative throughput.

    If utilisation cannot show the cause, its relative gain counts, as points of 100.
    """
    relative = cause.exposed if cause.exposed is not None else UNKNOWN_SHARE
    if not points:
        return relative
    return cause.ceiling_pp if cause.ceiling_pp is not None else 100.0 * relative


def worth(
    diagnosis: Diagnosis,
    matches: Mapping[int, Mapping[str, float]],
    *,
    cost_s: float,
    points: bool = True,
    decided: Mapping[int, float] | None = None,
) -> dict[int, float]:
    """Expected gain a device-second of each hypothesis, by its number.

    `matches` are the causes that each one tests, with how well (0 to 1); `cost_s` is what a trial takes.
    `decided` is the share of the time in code that each one's change decides on: if it is no cause of the
    catalogue, a change of where the time goes is the best guess.
    """

    def gain(cause: Ranked) -> float:
        return cause.probability * gain_of(cause, points=points)

    found = _expected(diagnosis, matches, gain, decided, 100.0 if points else 1.0)
    return {number: value / max(cost_s, 1e-9) for number, value in found.items()}


def shares(
    diagnosis: Diagnosis,
    matches: Mapping[int, Mapping[str, float]],
    decided: Mapping[int, float] | None = None,
) -> dict[int, float]:
    """The share of the time (0 to 1) that each hypothesis is expected to bring, by its number: what orders
    the causes orders those that test them. The arguments are those of `worth`."""
    return _expected(diagnosis, matches, cost, decided, 1.0)


def _expected(
    diagnosis: Diagnosis,
    matches: Mapping[int, Mapping[str, float]],
    each: Callable[[Ranked], float],
    decided: Mapping[int, float] | None,
    whole: float,
) -> dict[int, float]:
    """What `each` cause promises of those that a hypothesis tests; `whole` is the gain of all the time."""
    causes = {cause.id: cause for cause in diagnosis.causes}
    none = max(0.0, 1.0 - sum(cause.probability for cause in diagnosis.causes))

    def expected(number: int, tested: Mapping[str, float]) -> float:
        named = sum(each(causes[name]) * weight for name, weight in sorted(tested.items()) if name in causes)
        return named + none * BY_TOUCH * whole * (decided or {}).get(number, 0.0)

    return {number: expected(number, tested) for number, tested in matches.items()}
