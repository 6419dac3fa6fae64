"""The order of untested hypotheses, as `next` or `diagnose` last recorded it: `status` shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from gpudebug.core.campaign.decide import Campaign
from gpudebug.core.words import Status

UNKNOWN = "no order is recorded yet: gpudebug diagnose"
NO_DIAGNOSIS = "no diagnosis is recorded yet: gpudebug diagnose"


@dataclass(frozen=True)
class HypothesisOrder:
    """What testing each waiting hypothesis is worth, or what the catalogue offers if none waits.

    `when` is a time in UTC, `by` the command that recorded it, `baseline` the runs of the workload's baseline
    that it was made from. `worths` is the expected gain a device-second in the unit of `metric`; None if no
    choice had to be made, and then `unweighed` may say why it could not be. `cost_s` is what one trial takes.
    `shares` are of the time, what each is expected to bring; None in records of 0.1.0 and without a choice.
    """

    when: str
    by: str
    baseline: tuple[str, ...]
    metric: str
    worths: Mapping[int, float] | None = None
    cost_s: float | None = None
    unweighed: str | None = None
    offer: str | None = None
    shares: Mapping[int, float] | None = None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def order_in(data: object) -> HypothesisOrder | None:
    """The order in a record; None if it is not what gpudebug writes."""
    if not isinstance(data, dict) or not all(isinstance(data.get(key), str) for key in _TEXTS):
        return None
    baseline, worths, cost = data.get("baseline"), data.get("worths"), data.get("cost_s")
    if not isinstance(baseline, list) or not all(isinstance(name, str) for name in baseline):
        return None
    if not (cost is None or _number(cost)) or not (worths is None or isinstance(worths, dict)):
        return None
    known = None
    if worths is not None:
        if not all(key.isdecimal() and _number(value) for key, value in worths.items()):
            return None
        known = {int(key): float(value) for key, value in worths.items()}
    texts = (data.get("unweighed"), data.get("offer"))
    if not all(text is None or isinstance(text, str) for text in texts):
        return None
    rest = (known, cost, *texts, _shares(data.get("shares")))
    return HypothesisOrder(data["when"], data["by"], tuple(baseline), data["metric"], *rest)


def _shares(data: object) -> dict[int, float] | None:
    """None if that is not what gpudebug writes, since it orders and decides nothing."""
    if not isinstance(data, dict):
        return None
    return {int(k): float(v) for k, v in data.items() if k.isdecimal() and _number(v)}


_TEXTS = ("when", "by", "metric")


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def ordered(campaign: Campaign, order: HypothesisOrder | None) -> Campaign:
    """The campaign with the worth of its untested hypotheses as it is recorded."""
    if order is None or (order.worths is None and order.unweighed is None):
        return replace(campaign, unweighed=UNKNOWN)
    worths, shares = order.worths or {}, order.shares or {}
    hypotheses = tuple(
        replace(h, worth=worths.get(h.number), share=shares.get(h.number), cost_s=order.cost_s)
        if h.status is Status.UNTESTED
        else h
        for h in campaign.hypotheses
    )
    return replace(campaign, hypotheses=hypotheses, unweighed=order.unweighed)
