"""The order of untested hypotheses, as `next` or `diagnose` last recorded it: `status` shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from gpudebug.core.campaign.decide import Campaign
from gpudebug.core.words import Status

UNKNOWN = "no order is recorded yet: gpudebug diagnose"
NO_DIAGNOSIS = "no diagnosis is recorded yet: gpudebug diagnose"


@dataclass(frozen=True)
class HypothesisOrder:
    """What each waiting hypothesis is expected to bring, or what the catalogue offers if none waits.

    `when` is a time in UTC, `by` the command that recorded it, `baseline` the runs of the workload's baseline
    that it was made from. `shares` are of the time; None if no choice had to be made, and then `unweighed`
    may say why it could not be.
    """

    when: str
    by: str
    baseline: tuple[str, ...]
    metric: str
    unweighed: str | None = None
    offer: str | None = None
    shares: Mapping[int, float] | None = None

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def order_in(data: object) -> HypothesisOrder | None:
    """Return the order in a record; None if it is not what gpudebug writes."""
    if not isinstance(data, dict) or not all(isinstance(data.get(key), str) for key in _TEXTS):
        return None
    baseline, texts = data.get("baseline"), (data.get("unweighed"), data.get("offer"))
    if not isinstance(baseline, list) or not all(isinstance(name, str) for name in baseline):
        return None
    if not all(text is None or isinstance(text, str) for text in texts):
        return None
    return HypothesisOrder(
        data["when"], data["by"], tuple(baseline), data["metric"], *texts, _shares(data.get("shares"))
    )


def _shares(data: object) -> dict[int, float] | None:
    """None if that is not what gpudebug writes, since it orders and decides nothing."""
    if not isinstance(data, dict):
        return None
    return {int(k): float(v) for k, v in data.items() if k.isdecimal() and _number(v)}


_TEXTS = ("when", "by", "metric")


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def ordered(campaign: Campaign, order: HypothesisOrder | None) -> Campaign:
    """Return the campaign with what its untested hypotheses are expected to bring as it is recorded."""
    if order is None or (order.shares is None and order.unweighed is None):
        return replace(campaign, unweighed=UNKNOWN)
    shares = order.shares or {}
    hypotheses = tuple(
        replace(h, share=shares.get(h.number)) if h.status is Status.UNTESTED else h
        for h in campaign.hypotheses
    )
    return replace(campaign, hypotheses=hypotheses, unweighed=order.unweighed)
