"""What the devices of a run show beside each other -> signals: work, waiting, and who is waited for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpudebug.core.diagnosis.ofprobe import mean
from gpudebug.core.evidence import together
from gpudebug.core.evidence.together import awaited_in, awaited_of, awaited_text
from gpudebug.core.statistics.across import LEAST, WORKING, across
from gpudebug.core.words import SignalValue

Record = Mapping[str, Any]


def signals(evidence: Sequence[Record]) -> dict[str, SignalValue | None]:
    """Of several runs the means. A device is waited for if it is the same one in every run that shows one.

    That none is waited for is a share of 0; where power does not tell, it is unknown.
    """
    share = mean([e.get("working") for e in evidence])
    busy = mean([e.get("utilisation") for e in evidence if e.get("working") is not None])
    told = [e for e in evidence if _shows(e)]
    waited = awaited_in(told)
    shares = [one.share if waited and (one := awaited_of(e)) else 0.0 for e in told]
    return {
        "working_share": share,
        "busy_waiting_share": None if share is None or busy is None else max(0.0, busy / 100 - share),
        "awaited_share": mean(shares),
        "awaited_device": awaited_text(waited) if waited is not None else None,
    }


def telling(evidence: Sequence[Record], judged_by: str | None = None) -> dict[str, SignalValue | None]:
    """Return the utilisation of several devices that does not mislead, in percent, and which it is:
    `judged_by`, criteria.devices, if that is not their mean; else what tells. Nothing if the mean does."""
    chosen = judged_by if judged_by in (LEAST, WORKING) else together.telling(evidence)
    util: float | None = None
    if chosen == WORKING:
        share = mean([e.get("working") for e in evidence])
        util = None if share is None else 100 * share
    elif chosen == LEAST:
        figures = across(*(e.get("devices") or () for e in evidence))
        util = next((one.least.value for one in figures if one.figure == "gpu_util"), None)
    return {} if util is None else {"telling_util": util, "telling_devices": chosen}


def _shows(e: Record) -> bool:
    """Tell whether power tells of every one of several devices, and what it tells can be read."""
    told = e.get("working") is not None and len(e.get("devices") or ()) > 1
    return told and (not e.get("awaited") or awaited_of(e) is not None)
